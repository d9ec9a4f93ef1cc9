"""The command line and the rules' scripts: plain errors, logs, exit codes."""

import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from replication.cli.main import app, main
from replication.design.config import load_study
from typer.testing import CliRunner

from tests.unit.conftest import ROOT


@pytest.fixture
def replicate(monkeypatch, capsys):
    """Return a function that runs a command in the checkout, as its process does."""

    def run(*words):
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["replicate", *words])
        with pytest.raises(SystemExit) as left:
            main()
        return SimpleNamespace(returncode=left.value.code, **capsys.readouterr()._asdict())

    return run


def test_every_study_in_the_repository_is_valid(replicate):
    done = replicate("validate")
    assert done.returncode == 0, done.err
    assert done.out.count(": valid") >= 5
    # One count, whatever engines are there.
    for words in (done.out, replicate("plan", "--tier", "paper", "--studies", "saxena").out):
        assert re.search(r"^saxena: .*\b81 points", words, re.MULTILINE)
        assert "saxena, tier paper: ns3 can judge 81 of 81 numbers and 6 of 6 claims\n" in words


@pytest.mark.parametrize(
    ("words", "mention"),
    [
        (("plan", "--studies", "nobody"), "nobody"),
        (("run", "0" * 16), "scenario"),
        (("render", "--data", "/nonexistent"), "/nonexistent"),
        (("run",), "Missing argument"),
    ],
)
def test_bad_input_is_exit_code_two_without_a_traceback(replicate, words, mention):
    done = replicate(*words)
    assert done.returncode == 2
    assert mention in done.err
    assert "Traceback" not in done.err


# -- replicate run --------------------------------------------------------------------------------


# -- replicate new-study --------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path):
    """A project with the guide and one study."""
    for name in ("configs/README.md", "configs/studies/saxena/study.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "data" / "published").mkdir(parents=True)
    return tmp_path


def test_what_is_written_is_a_valid_study_under_its_id_title_and_type(project, monkeypatch):
    monkeypatch.chdir(project)
    title = 'Reno: "fast" or not? # a question'
    command = ["new-study", "--id", "smith_2004", "--title", title]
    # The type is asked for, with what there is to choose.
    done = CliRunner().invoke(app, command, input="queuing\n")
    assert done.exit_code == 0 and "cbr_sweep" in done.output
    study = load_study(project, "smith_2004")
    assert (study.id, study.title, study.experiments[0].type) == ("smith_2004", title, "queuing")
    document = project / "configs/studies/smith_2004/study.yaml"
    assert "make report TIER=quick STUDIES=smith_2004" in document.read_text(encoding="utf-8")
    numbers = (project / "data/published/smith_2004.csv").read_text(encoding="utf-8")
    assert {line.split(",")[0] for line in numbers.splitlines()[1:]} == {study.tables[0].id}


# -- scripts of rules -----------------------------------------------------------------------------

SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
HEAD = """
import os, sys
from types import SimpleNamespace
from replication.cli.script import job
from replication.study.errors import InputError
snakemake = SimpleNamespace(log="the.log")
"""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("InputError('x.yaml: is wrong')", 2, "error: x.yaml: is wrong"),
        ("KeyError('a defect')", 1, "KeyError: 'a defect'"),
    ],
)
def test_an_error_is_in_the_log_and_on_the_terminal(tmp_path, error, code, line):
    text = f"{HEAD}\nwith job(snakemake, 'judging'):\n    raise {error}\n"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    log = (tmp_path / "the.log").read_text()
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"judging\n{log}")
    assert line in log and ("Traceback" in log) == ("defect" in error)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_is_there(path):
    lines = path.read_text("utf-8").splitlines()
    exec("\n".join(line for line in lines if re.match(r"(from|import) ", line)))
