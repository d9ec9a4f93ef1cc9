"""Home: a folder is run by its own code, in an environment of its own, or not at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replication.run.folder import require_home
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]
#: Stands for Python: notes how it is called, and makes environments of itself.
PYTHON = """#!/bin/sh
echo "$PWD: $*" >> "$CALLS"
env | grep ^PYTHON >> "$CALLS"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *"-r requirements.lock") [ ! -e fail ] ;;
esac
"""


def run(*words, cwd, **variables):
    done = subprocess.run(
        words,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def replicate(*words, cwd=ROOT, **variables):
    return run(sys.executable, "-m", "replication.cli", *words, cwd=cwd, **variables)


@pytest.fixture
def copy(tmp_path):
    """Return a folder with the project's code, which has to be told from ours."""
    package = tmp_path / "copy" / "workflow" / "replication"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('the code of the copy')\n")
    shutil.copytree(ROOT / "workflow" / "rules", package.parent / "rules")
    shutil.copy2(ROOT / "Snakefile", package.parents[1])
    return package.parents[1]


def test_a_copy_is_not_run_by_the_originals_commands(copy, tmp_path):
    for code, said in (
        replicate("metrics", cwd=copy),
        replicate("validate", "--root", str(copy), cwd=tmp_path),
    ):
        assert code == 2 and said.startswith("error: ") and said.count("\n") == 1
        assert f"{copy}: has code of its own" in said and "make setup" in said


def test_a_copy_is_not_run_by_the_originals_snakemake(copy):
    snakemake = (sys.executable, "-P", "-m", "snakemake", "--cores", "1", "--dry-run")
    code, said = run(*snakemake, cwd=copy)
    assert code == 2 and "Traceback" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert f"{copy}: " in line and "make setup" in line


def test_code_that_is_the_same_by_another_path_is_at_home(tmp_path):
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    require_home(tmp_path)
    require_home(ROOT)


def test_a_folder_of_results_alone_takes_any_code(tmp_path):
    require_home(tmp_path)


def test_modules_from_beside_the_locked_packages_are_refused(tmp_path, monkeypatch):
    (tmp_path / "yaml.py").write_text("from ruamel.yaml import *\n")
    for paths in (str(tmp_path), f"{ROOT / 'workflow'}:{tmp_path}", f"{ROOT / 'workflow'}:"):
        monkeypatch.setenv("PYTHONPATH", paths)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=r"PYTHONPATH: .* unset it"):
            require_home(ROOT)
    for paths in ("", str(ROOT / "workflow"), os.path.relpath(ROOT / "workflow")):
        monkeypatch.setenv("PYTHONPATH", paths)
        require_home(ROOT)


@pytest.mark.parametrize("name", ["yaml", "replication", "typing"])
def test_make_lets_no_module_in(name, tmp_path):
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('a foreign module')\n")
    code, said = run(
        *("make", "plan", "-o", "setup", "TIER=quick", "STUDIES=saxena", "ENGINES=ns3"),
        cwd=ROOT,
        PYTHONPATH=str(tmp_path),
    )
    assert code == 0 and "tier quick" in said, said


class Folder:
    """A folder that `make setup` makes an environment in, with stand-ins for Python and locks."""

    def __init__(self, root):
        self.root, self.calls = root / "project", root / "calls"
        self.root.mkdir()
        shutil.copy2(ROOT / "Makefile", self.root)
        for name in ("requirements.lock", "pyproject.toml"):
            (self.root / name).touch()
        self.python = root / "python"
        self.python.write_text(PYTHON)
        self.python.chmod(0o755)

    def setup(self, **variables):
        """Set up; return what was said and which calls of Python there were."""
        self.calls.write_text("")
        words = ("make", "setup", f"PYTHON={self.python}")
        self.code, said = run(*words, cwd=self.root, CALLS=str(self.calls), **variables)
        return said, self.calls.read_text()


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    assert "making the environment" in folder.setup()[0] and folder.code == 0
    assert folder.setup()[1] == "", "a second time there is nothing to do"
    return folder


@pytest.mark.parametrize("way", ["copied", "moved", "cut short", "without Python"])
def test_an_environment_that_is_not_the_folders_own_is_made_anew(folder, tmp_path, way):
    before = folder.root
    if way == "copied":
        folder.root = shutil.copytree(before, tmp_path / "other", symlinks=True)
    elif way == "moved":
        folder.root = before.rename(tmp_path / "other")
    elif way == "cut short":
        (folder.root / "fail").touch()
        (folder.root / "requirements.lock").write_text("changed")
        folder.setup()
        assert folder.code != 0
        (folder.root / "fail").unlink()
    else:
        (folder.root / ".venv" / "bin" / "python").unlink()
    said, calls = folder.setup()
    assert folder.code == 0
    assert "made for another folder, or is not whole" in said
    assert f"{folder.root}: -m venv .venv" in calls and "-e ." in calls
    assert folder.setup()[1] == ""
    if way == "copied":
        folder.root = before
        assert folder.setup()[1] == "", "the original keeps its own"


def test_a_changed_lock_is_installed_into_the_same_environment(folder):
    (folder.root / "requirements.lock").write_text("changed")
    _, calls = folder.setup()
    assert "requirements.lock" in calls and "-m venv" not in calls


def test_what_a_shell_tells_python_does_not_reach_the_environment(folder):
    (folder.root / "requirements.lock").write_text("changed")
    _, calls = folder.setup(PYTHONPATH="/foreign", PYTHONHOME="/foreign", PYTHONOPTIMIZE="2")
    assert "foreign" not in calls and "PYTHONOPTIMIZE" not in calls
    assert {"PYTHONSAFEPATH=1", "PYTHONNOUSERSITE=1", "PYTHONHASHSEED=0"} <= set(calls.split())
