"""The Makefile: what a wrong setting says, how a run is ended, and what reaches the environment.

A folder with the Makefile alone, a workflow of one rule, and stand-ins for what takes minutes.
REPLICATION_MAKEFILE names another Makefile to be tested.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = Path(os.environ.get("REPLICATION_MAKEFILE", ROOT / "Makefile"))
#: A job that would take minutes, in a process of its own.
SLOW = """\
rule all:
    output: "made"
    shell: "touch half; sleep 301; mv half made"
"""
#: Prints what it was told.
SAY = """\
import sys
print("studies", repr(config.get("studies")), file=sys.stderr)
rule all:
"""
NOTHING = ("-o", "setup", "-o", "setup-profile", "-o", "compiler")


@pytest.fixture
def folder():
    """Return a folder that every user may enter, with the Makefile and its profiles."""
    path = Path(tempfile.mkdtemp(prefix="makefile-"))
    path.chmod(0o755)
    shutil.copy(MAKEFILE, path / "Makefile")
    shutil.copytree(ROOT / "workflow/profiles", path / "workflow/profiles")
    yield path
    shutil.rmtree(path)


def command(*words):
    return ["make", "--no-print-directory", *NOTHING, *words]


def start(folder, *words, snakefile=SLOW, **variables):
    """Start make in the folder, in the environment of this checkout."""
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "Snakefile").write_text(snakefile)
    return psutil.Popen(
        command(*words),
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(folder, *words, **options):
    """Return what make said and its exit code."""
    process = start(folder, *words, **options)
    said, _ = process.communicate(timeout=120)
    return said, process.returncode


def stand_in(folder, name, text):
    """Put a program of that name into the folder's environment."""
    path = folder / ".venv" / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(folder, *words, **variables):
    """Run make in a folder whose environment is stand-ins; return the finished process."""
    environment = os.environ | variables
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("number", "to_all"),
    [
        (signal.SIGTERM, False),
        (signal.SIGINT, False),
        (signal.SIGKILL, False),
        (signal.SIGINT, True),
    ],
)
def test_what_ends_make_ends_all_that_it_started(number, to_all, folder):
    make = start(folder, "report")
    started = []
    while not any("sleep" in process.name() for process in started):
        assert make.poll() is None, make.communicate()[0]
        time.sleep(0.05)
        started = make.children(recursive=True)
    assert (folder / "half").exists()
    if to_all:
        os.killpg(make.pid, number)
    else:
        make.send_signal(number)
    try:
        make.wait(timeout=60)
        _, alive = psutil.wait_procs(started, timeout=60)
        assert alive == []
        assert not (folder / "made").exists()
        assert not list((folder / ".snakemake/locks").glob("*"))
    finally:
        for process in started:
            if process.is_running():
                process.kill()


@pytest.mark.parametrize("cores", ["0", "x"])
def test_a_wrong_number_of_cores_is_said_at_once(cores, folder):
    said, code = ended(folder, "report", f"CORES={cores}", snakefile=SAY)
    assert code == 2
    assert f"CORES: '{cores}' must be a whole number of at least 1, or all" in said


def test_an_unknown_profile_is_said_with_those_that_there_are(folder):
    said, code = ended(folder, "report", "PROFILE=nowhere", snakefile=SAY)
    assert code == 2
    assert "PROFILE: 'nowhere' is unknown; there are default, slurm" in said


@pytest.mark.parametrize("studies", ["saxena, nishitha", "it's", "$HOME; `id`"])
def test_a_setting_is_one_word_whatever_is_in_it(studies, folder):
    said, code = ended(folder, "report", f"STUDIES={studies.replace('$', '$$')}", snakefile=SAY)
    assert f"studies {studies + ','!r}" in said
    assert code == 0


def test_an_error_of_snakemake_is_shown(folder):
    snakefile = 'rule all:\n    input: "nowhere"\n'
    said, code = ended(folder, "report", snakefile=snakefile)
    assert code == 2
    assert "Missing input files" in said and "nowhere" in said


def test_a_clock_set_back_is_said_with_what_helps(folder):
    (folder / "old").touch()
    os.utime(folder / "old", (time.time() + 86400,) * 2)
    snakefile = 'rule all:\n    input: "old"\n    output: "new"\n    shell: "touch new"\n'
    said, code = ended(folder, "report", snakefile=snakefile)
    assert code == 2
    assert said.count("the clock was set back") == 1 and "touch -h" in said


def test_a_failed_job_is_said_in_a_line_beside_its_own_words(folder):
    snakefile = 'rule all:\n    output: "new"\n    shell: "echo why >&2; exit 3"\n'
    said, code = ended(folder, "report", snakefile=snakefile)
    assert code == 2
    assert "\nwhy\n" in said
    assert "ended with code 3" in said and "set -euo" not in said


def test_too_few_open_files_are_said(folder):
    words = " ".join(command("report"))
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "Snakefile").write_text(SAY)
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 64; {words}"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "ulimit -n: 64 open files are too few; allow 256 or more" in done.stderr


def test_settings_of_python_and_pip_stay_outside_but_where_packages_come_from(folder):
    stand_in(folder, "replicate", "env")
    told = {"PYTHONOPTIMIZE": "2", "PIP_USER": "1", "PIP_TARGET": "t", "PIP_INDEX_URL": "u"}
    lines = run(folder, "plan", **told).stdout.splitlines()
    assert "PIP_INDEX_URL=u" in lines
    assert "PIP_USER=0" in lines
    assert not [line for line in lines if line.startswith(("PYTHONOPTIMIZE=", "PIP_TARGET="))]


def test_an_environment_that_was_cut_short_is_made_anew(folder):
    # As it is when make was killed before pip was there.
    stand_in(folder, "python", "echo No module named pip >&2; exit 1")
    for name in ("requirements.lock", "pyproject.toml"):
        (folder / name).touch()
    python = folder / "python"
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && exit\n'
        'mkdir -p "$3/bin"; printf "#!/bin/sh\\n" > "$3/bin/python"; chmod +x "$3/bin/python"\n'
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "setup", f"PYTHON={python}"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's privileges")
def test_root_leaves_nothing_of_its_own_in_anothers_folder(folder):
    stand_in(folder, "replicate", 'echo "$1 as $(id -u)"; touch "$1"')
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 12345, 12345)
    assert run(folder, "plan").stdout == "plan as 12345\n"
    assert (folder / "plan").stat().st_uid == 12345
    # apt-get alone needs root.
    assert "install-engines as 0\n" in run(folder, "packages").stdout
