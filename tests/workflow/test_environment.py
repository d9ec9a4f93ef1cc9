"""The environment: the caller's variables that reach the project, its folders and accounts.

Make runs in a folder with the Makefile, the list of variables and a workflow of one rule.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest
from replication.base import environment
from replication.base.errors import InputError
from replication.report.provenance import commit_of

ROOT = Path(__file__).parents[2]
STRANGERS = (
    "IPYTHONDIR",
    "JUPYTER_PATH",
    "JUPYTER_CONFIG_DIR",
    "NBCONVERT_X",
    "PYDEVD_X",
    "MPLBACKEND",
    "PYTHONSTARTUP",
    "PYTHONOPTIMIZE",
    "PYTHONWARNINGS",
    "PYTHONUSERBASE",
    "PIP_TARGET",
    "CPATH",
    "LIBRARY_PATH",
    "CXXFLAGS",
    "CXX",
    "LD_PRELOAD",
    "TCLLIBPATH",
    "OMP_NUM_THREADS",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_CONFIG_GLOBAL",
    "BASH_ENV",
    "ENV",
    "SNAKEMAKE_PROFILE",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
)
WANTED = ("LC_ALL", "PIP_INDEX_URL", "https_proxy", "DOCKER_HOST", "SLURM_CONF", "DISPLAY", "CI")
#: A workflow whose only job records its environment.
SNAKEFILE = 'rule all:\n    output: "made"\n    shell: "env > made"\n'
INTERRUPTED = "interrupted; run the same command again"
ODD = " $'\"#[];&\\:(*?|<!`,%"


def furnish(path):
    """Put the files that make and Snakemake need into a folder."""
    path.mkdir(exist_ok=True)
    shutil.copytree(ROOT / "workflow/profiles", path / "workflow/profiles")
    (path / "configs").mkdir()
    for name in ("Makefile", "configs/environment.yaml"):
        shutil.copy(ROOT / name, path / name)
    (path / "Snakefile").write_text(SNAKEFILE)
    (path / ".venv").symlink_to(sys.prefix)
    return path


@pytest.fixture
def folder():
    """Return such a folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="environment-") as name:
        Path(name).chmod(0o755)
        yield furnish(Path(name))


def run(words, cwd, **variables):
    """Run a command with further variables; a variable that is None is not set."""
    merged = os.environ | variables
    kept = {name: value for name, value in merged.items() if value is not None}
    return subprocess.run(
        words, cwd=cwd, env=kept, capture_output=True, text=True, check=False, timeout=300
    )


def make(folder, *words, **variables):
    return run(["make", "-o", "setup", *words], folder, **variables)


def made(folder):
    lines = (folder / "made").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def refused(done, *words):
    """Assert that a command ended in one line that has these words, with code 2."""
    (line,) = [x for x in done.stderr.splitlines() if not x.startswith("Using ")]
    assert done.returncode == 2 and all(word in line for word in words), done.stderr


def test_only_listed_variables_of_the_caller_reach_a_job(folder, tmp_path):
    strange = dict.fromkeys(STRANGERS, str(tmp_path)) | {"PYTHONPATH": str(tmp_path)}
    wanted = dict.fromkeys(WANTED, "a 'b' $c") | {"LC_ALL": "C.UTF-8"}
    (tmp_path / "yaml.py").write_text("raise RuntimeError('a module from elsewhere')\n")
    home = {"HOME": str(tmp_path), "REPLICATION_HOME": None}  # which `make test` has set
    done = make(folder, "report", **strange, **wanted, **home)
    assert done.returncode == 0 and "report: " in done.stdout, done.stderr
    seen = made(folder)
    assert {name: seen[name] for name in WANTED} == wanted
    assert [name for name in seen if seen[name] == str(tmp_path)] == ["REPLICATION_HOME"]
    assert seen["HOME"] == f"{folder}/.cache/home"
    assert seen["PYTHONPATH"] == f"{folder}/workflow"


def test_python_gets_the_variables_of_make_and_simulators_only_the_core(monkeypatch, tmp_path):
    def kept(environment):
        return {name for name, value in environment.items() if value == "strange"}

    for name in (*STRANGERS, *WANTED):
        monkeypatch.setenv(name, "strange")
    assert kept(environment.core()) == {"LC_ALL"}
    with mock.patch.dict(os.environ):
        environment.enter(tmp_path)
        assert kept(os.environ) == set(WANTED)


@pytest.mark.parametrize("sign", ODD)
def test_a_folder_with_a_special_character_in_its_name_is_refused(sign, tmp_path):
    path = furnish(tmp_path / f"a{sign}b")
    refused(run(["make", "report"], path), "in its name", "move the project")
    assert not (path / ".cache").exists()
    with pytest.raises(InputError, match="in its name"):
        environment.require_usable(path)


def test_the_message_calls_a_space_in_the_folders_name_a_space(tmp_path):
    refused(run(["make", "report"], furnish(tmp_path / "a b")), "a space in its name")


@pytest.mark.parametrize("flags", ["-i", "-k", "-ik", "--ignore-errors"])
def test_flags_of_make_never_hide_an_error(flags, folder):
    (folder / "Snakefile").write_text('rule all:\n    output: "made"\n    shell: "false"\n')
    done = make(folder, "report", MAKEFLAGS=flags)
    assert done.returncode != 0 and "report:" not in done.stdout


#: A workflow whose only job takes long, and its script.
SLOW = """\
from pathlib import Path
from replication.base.environment import enter_workflow
from replication.base.lifetime import SHELL_PREFIX, handle_signals
enter_workflow(Path())
shell.prefix(SHELL_PREFIX)
onstart: handle_signals()
rule all:
    output: "made"
    log: "log"
    script: "slow.py"
"""
SCRIPT = """\
import os, time
from pathlib import Path
from replication.cli.script import job
with job(snakemake):
    Path("started.new").write_text(str(os.getpid()))
    Path("started.new").rename("started")
    time.sleep(300)
"""


@pytest.fixture
def started(folder):
    """Start `make report` in a new session, as in a terminal, and wait for its job."""
    (folder / "Snakefile").write_text(SLOW)
    (folder / "slow.py").write_text(SCRIPT)
    shutil.rmtree(folder / "workflow")
    (folder / "workflow").symlink_to(ROOT / "workflow")
    words = ["make", "-o", "setup", "report"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with psutil.Popen(words, cwd=folder, start_new_session=True, **pipes) as process:
        while not (folder / "started").exists() and process.poll() is None:
            time.sleep(0.05)
        yield process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def last_lines(errors):
    """Return what follows Snakemake's last announcement, without make's line on its end."""
    lines = [line for line in errors.splitlines() if not line.startswith("make: ***")]
    announced = [
        n for n, line in enumerate(lines) if re.match("Using|Building|Select|Execute", line)
    ]
    return lines[announced[-1] + 1 :]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_one_line_and_can_be_repeated(number, started, folder):
    os.killpg(started.pid, number)
    output, errors = started.communicate(timeout=60)
    assert started.returncode == -number
    assert (output, last_lines(errors)) == ("", [INTERRUPTED])
    (folder / "Snakefile").write_text(SNAKEFILE)
    assert make(folder, "report").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_job_ends_if_its_workflow_is_killed(number, started, folder):
    job = psutil.Process(int((folder / "started").read_text()))
    (workflow,) = started.children()
    workflow.send_signal(number)
    with contextlib.suppress(psutil.NoSuchProcess):
        until = time.monotonic() + 20
        while job.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until, "the job goes on"
            time.sleep(0.05)


def test_a_second_run_in_a_folder_names_make_unlock_in_one_line(started, folder):
    (line,) = last_lines(make(folder, "report").stderr)
    assert line.startswith("error: ") and "make unlock" in line


COMMITTED = """git init -q other; git init -q own; cd own; git add .
git -c user.name=a -c user.email=a@b commit -qm c; git rev-parse HEAD"""


@pytest.fixture
def committed(tmp_path):
    """A repository with one study, and the hash of its commit."""
    study = tmp_path / "own/configs/studies/a/study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text("id: a\n")
    done = run(["sh", "-ec", COMMITTED], tmp_path, GIT_DIR=None, GIT_WORK_TREE=None)
    return tmp_path / "own", done.stdout.strip()


def git(root, *words):
    run(["git", *words], root, GIT_DIR=None, GIT_WORK_TREE=None)


def test_the_recorded_commit_is_that_of_the_projects_repository_or_none(
    committed, tmp_path, monkeypatch
):
    repository, head = committed
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert commit_of(repository) == head != ""
    assert commit_of(repository / "configs") is None
    assert commit_of(tmp_path) is None


def test_the_recorded_commit_marks_ignored_studies_and_hidden_changes(committed):
    repository, head = committed
    study, name = repository / "configs/studies/a/study.yaml", "configs/studies/a/study.yaml"
    (repository / ".git/info/exclude").write_text("build/\n")
    ignored = repository / "configs/studies/build/study.yaml"
    ignored.parent.mkdir()
    ignored.touch()
    uncommitted = ", not committed: configs/studies/build/study.yaml"
    assert commit_of(repository) == head + uncommitted
    for flag in ("assume-unchanged", "skip-worktree"):
        git(repository, "update-index", f"--{flag}", name)
        study.write_text("id: b\n")
        assert commit_of(repository) == f"{head}, changed: {name}{uncommitted}"
        study.write_text("id: a\n")
    study.unlink()
    for number in range(500):
        ignored.with_name(f"{number}.yaml").touch()
    assert commit_of(repository).startswith(f"{head}, changed: {name}, not committed: ")
    assert commit_of(repository).endswith(" and 496 more")


def test_reading_the_commit_executes_no_program_of_the_repository(committed, tmp_path):
    repository, head = committed
    program = f"touch {tmp_path / 'ran'}; cat"
    for key in ("core.fsmonitor", "filter.a.clean", "filter.a.process"):
        git(repository, "config", key, program)
    (repository / ".git/info/attributes").write_text("* filter=a\n")
    (repository / "configs/studies/a/study.yaml").write_text("id: b\n")
    assert commit_of(repository).startswith(f"{head}, changed: ")
    assert not (tmp_path / "ran").exists()
