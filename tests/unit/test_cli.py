"""The command line and the rules' scripts: plain errors, logs, exit codes."""

import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from replication.cli.main import app, main
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from typer.testing import CliRunner

from tests.unit.conftest import ROOT, missing_from


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
        judged = re.search(r"^saxena\b.*\bpaper\b.*\bns3\b.*", words, re.MULTILINE)[0]
        assert not missing_from(judged, "81 of 81 numbers", "6 of 6 claims")


@pytest.mark.parametrize(
    ("words", "mention"),
    [
        (("plan", "--studies", "nobody"), "nobody"),
        (("run", "0" * 16), "scenario"),
        (("render", "--data", "/nonexistent"), "/nonexistent"),
        (("run",), "Missing argument"),
    ],
)
def test_bad_input_ends_with_exit_code_two_and_no_traceback(replicate, words, mention):
    done = replicate(*words)
    assert done.returncode == 2
    assert mention in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("given", "engine", "tables"),
    [("--engine=linux", "linux", 1), ("--engine=ns2", "ns2", 1), ("--engine=ns3", "ns3", 1),
     ("--like=kapadia", "linux", 0)],
)  # fmt: skip
def test_a_new_study_runs_on_its_engine_and_quotes_no_other_paper(
    tmp_path, monkeypatch, given, engine, tables
):
    for name in ("configs/templates", "configs/studies/kapadia"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    title = 'Reno: "fast" or not? # a question'
    done = CliRunner().invoke(app, ["new-study", "smith_2004", "--title", title, given])
    assert done.exit_code == 0, done.output
    study = load_study(tmp_path, "smith_2004")
    assert (study.id, study.title) == ("smith_2004", title)
    assert (study.original_system.engine, len(study.tables)) == (engine, tables)
    runs = design_study(study, load_tier(ROOT, "quick"), [engine])
    assert runs and not any(run.refusal for run in runs)
    text = (tmp_path / "configs/studies/smith_2004/study.yaml").read_text(encoding="utf-8")
    assert "quote: Three parallel" not in text and "Harsh" not in text
    rows = (tmp_path / "data/published/smith_2004.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {table.id for table in study.tables}


SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
HEAD = """
import os, sys
from types import SimpleNamespace
from replication.cli.script import job
from replication.base.errors import InputError
snakemake = SimpleNamespace(log="the.log")
"""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("InputError('x.yaml: is wrong')", 2, "error: x.yaml: is wrong"),
        ("KeyError('a defect')", 1, "KeyError: 'a defect'"),
    ],
)
def test_an_error_is_written_to_the_log_and_the_terminal(tmp_path, error, code, line):
    text = f"{HEAD}\nwith job(snakemake, 'judging'):\n    raise {error}\n"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    log = (tmp_path / "the.log").read_text()
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"judging\n{log}")
    assert line in log and ("Traceback" in log) == ("defect" in error)


def test_a_finished_job_succeeds_though_a_library_aborts_at_exit(tmp_path):
    lines = "import atexit\natexit.register(os.abort)\nwith job(snakemake):\n    print('done')\n"
    text = f"{HEAD}\n{lines}"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "the.log").read_text() == "done\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_of_a_rule_can_import_its_modules(path):
    lines = path.read_text("utf-8").splitlines()
    exec("\n".join(line for line in lines if re.match(r"(from|import) ", line)))
