"""The environment: what of the caller's reaches the project, in which folders and accounts it runs.

Where no results are needed, make and Snakemake run in a folder with the Makefile, the list of
variables and a workflow of one rule.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from replication.report.notebooks.notebook import execute
from replication.report.provenance import commit_of
from replication.simulate import environment
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]
STRANGERS = (
    *("IPYTHONDIR", "JUPYTER_PATH", "JUPYTER_CONFIG_DIR", "NBCONVERT_X", "PYDEVD_X", "MPLBACKEND"),
    *("PYTHONSTARTUP", "PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONUSERBASE", "PIP_TARGET"),
    *("CPATH", "LIBRARY_PATH", "CXXFLAGS", "CXX", "LD_PRELOAD", "TCLLIBPATH", "OMP_NUM_THREADS"),
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_GLOBAL", "BASH_ENV", "ENV"),
    *("SNAKEMAKE_PROFILE", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME"),
)
WANTED = ("LC_ALL", "PIP_INDEX_URL", "https_proxy", "DOCKER_HOST", "SLURM_CONF", "DISPLAY", "CI")
#: A workflow whose only job writes down its environment.
SNAKEFILE = 'rule all:\n    output: "made"\n    shell: "env > made"\n'
ODD = " $'\"#[];&\\:(*?|<!`,%"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


def furnish(path):
    """Put what make and Snakemake need into a folder."""
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
    """Run a command with variables laid over ours; one that is None is not set."""
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


def test_of_the_callers_environment_only_what_is_listed_reaches_a_job(folder, tmp_path):
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


def test_python_keeps_what_make_keeps_and_simulators_the_core_alone(monkeypatch, tmp_path):
    def kept(environment):
        return {name for name, value in environment.items() if value == "strange"}

    for name in (*STRANGERS, *WANTED):
        monkeypatch.setenv(name, "strange")
    assert kept(environment.core()) == {"LC_ALL"}
    with mock.patch.dict(os.environ):
        environment.enter(tmp_path)
        assert kept(os.environ) == set(WANTED)


CELLS = (
    "# + tags\nstudy = 'x'",
    "import os, sys\nimport pandas as pd\n1 / 3\n2",
    "pd.DataFrame({'a': [1 / 3] * 5}), sorted(n for n in os.environ if 'STR' in n)",
)
PROFILE = {
    "startup/10-mine.py": "import pandas as pd\npd.options.display.precision = 1\nprint('mine')\n",
    "ipython_config.py": "get_config().InteractiveShell.ast_node_interactivity = 'all'\n",
}
KERNEL = '{"argv": ["/bin/false", "{connection_file}"], "language": "python", "display_name": "x"}'


def test_no_ipython_profile_and_no_kernel_of_the_caller_changes_a_notebook(tmp_path, monkeypatch):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    notebook.cells[0].metadata.tags = ["parameters"]
    nbformat.write(notebook, tmp_path / "a.ipynb")
    execute(tmp_path / "a.ipynb", tmp_path / "plain.ipynb", {"study": "saxena"})
    profile = {f"home/.ipython/profile_default/{name}": text for name, text in PROFILE.items()}
    for name, text in (profile | {"jupyter/kernels/python3/kernel.json": KERNEL}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    strange = {"HOME": "home", "IPYTHONDIR": "home/.ipython", "JUPYTER_DATA_DIR": "jupyter"}
    for name, value in (strange | {"JUPYTER_PATH": "jupyter", "STRANGE": ""}).items():
        monkeypatch.setenv(name, str(tmp_path / value))
    execute(tmp_path / "a.ipynb", tmp_path / "strange.ipynb", {"study": "saxena"})
    assert (tmp_path / "strange.ipynb").read_bytes() == (tmp_path / "plain.ipynb").read_bytes()
    assert "STRANGE" in os.environ


def test_plain_snakemake_refuses_a_profile_and_modules_from_elsewhere(tmp_path):
    (tmp_path / "config.yaml").write_text("dry-run: true\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run", "--nolock"]
    done = run(command, ROOT, SNAKEMAKE_PROFILE=str(tmp_path), PYTHONPATH=None)
    refused(done, "SNAKEMAKE_PROFILE", str(tmp_path), "unset")
    refused(run(command, ROOT, PYTHONPATH=str(tmp_path)), "PYTHONPATH", str(tmp_path), "unset")


def test_a_profile_of_the_user_is_none_of_makes(folder, tmp_path):
    profile = tmp_path / "snakemake/mine"
    profile.mkdir(parents=True)
    (profile / "config.yaml").write_text("dry-run: true\n")
    done = make(folder, "report", "PROFILE=mine", XDG_CONFIG_HOME=str(tmp_path))
    refused(done, "PROFILE: mine is unknown; there are", "default", "slurm")
    done = make(folder, "report", XDG_CONFIG_HOME=str(tmp_path), SNAKEMAKE_PROFILE="mine")
    assert done.returncode == 0 and (folder / "made").is_file()


@pytest.mark.parametrize("what", ["TIER=nowhere", "CORES=0", "STUDIES=it's"])
def test_a_setting_is_one_word_and_a_wrong_one_makes_nothing(what, folder):
    (folder / "Snakefile").write_text("import sys\nprint(config)\nsys.exit(3)\n")
    done = make(folder, "report", what)
    assert done.returncode == 2 and "report: " not in done.stdout
    name, value = what.split("=")
    assert value in done.stdout or f"{name}: must be at least 1" in done.stderr


@pytest.mark.parametrize("home", ["/", None, "/nowhere"])
def test_an_account_without_home_and_name_runs(home, folder):
    nobody = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]
    names = dict.fromkeys(("USER", "LOGNAME", "USERNAME", "LNAME"))
    done = run([*nobody, "make", "-o", "setup", "report"], folder, HOME=home, **names)
    assert done.returncode == 0, done.stderr
    assert made(folder)["LOGNAME"] == "12345"


@as_root
def test_root_leaves_nothing_in_anothers_folder(folder):
    os.chown(folder, 12345, 12345)
    before = sorted(folder.rglob("*"))
    for target in ("report", "plan", "setup", "clean"):
        refused(make(folder, target), str(folder), "belongs to user 12345")
    assert make(folder, "help").returncode == 0
    assert sorted(folder.rglob("*")) == before
    with pytest.raises(InputError, match="belongs to 12345"):
        environment.require_usable(folder)


@pytest.mark.parametrize("sign", ODD)
def test_a_folder_that_cannot_work_is_refused_at_once(sign, tmp_path):
    path = furnish(tmp_path / f"a{sign}b")
    refused(run(["make", "report"], path), "in its name", "move the project")
    assert not (path / ".cache").exists()
    with pytest.raises(InputError, match="in its name"):
        environment.require_usable(path)


def test_every_other_sign_may_stand_in_a_folders_name(tmp_path):
    path = furnish(tmp_path / "a-b_c.d@e~f+g=hüj日")
    assert make(path, "report").returncode == 0 and made(path)["HOME"] == f"{path}/.cache/home"
    environment.require_usable(path)


COMMITTED = """git init -q other; git init -q own; cd own; git add .
git -c user.name=a -c user.email=a@b commit -qm c; git rev-parse HEAD"""


def test_the_commit_is_that_of_the_projects_own_repository_or_none(tmp_path, monkeypatch):
    own = tmp_path / "own"
    study = own / "configs/studies/a.yaml"
    study.parent.mkdir(parents=True)
    study.write_text("id: a\n")
    done = run(["sh", "-ec", COMMITTED], tmp_path, GIT_DIR=None, GIT_WORK_TREE=None)
    head = done.stdout.strip()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert commit_of(own) == head != ""
    study.with_name("b.yaml").touch()
    assert commit_of(own) == f"{head}, untracked: configs/studies/b.yaml"
    study.write_text("id: b\n")
    assert commit_of(own).startswith(f"{head} with changes, untracked")
    assert commit_of(own / "configs") is None
    assert commit_of(tmp_path) is None
