"""The scripts of the rules: what reaches the terminal, what the log, and how errors end them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
HEAD = """
import os, sys
from types import SimpleNamespace
from replication.cli.script import job
from replication.study.errors import InputError
snakemake = SimpleNamespace(log="the.log")
"""


def run(tmp_path, body):
    """Run a script; return its exit code, what the terminal shows and what the log holds."""
    text = f"{HEAD}\nwith job(snakemake, 'judging'):\n    {body}\n"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr, (tmp_path / "the.log").read_text()


def test_what_a_script_and_its_children_print_goes_to_the_log_alone(tmp_path):
    body = "print('mine'); sys.stdout.flush(); os.system('echo theirs >&2')"
    assert run(tmp_path, body) == (0, "judging\n", "mine\ntheirs\n")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("InputError('x.yaml: is wrong')", 2, "error: x.yaml: is wrong"),
        ("KeyError('a defect')", 1, "KeyError: 'a defect'"),
    ],
)
def test_an_error_is_in_the_log_and_on_the_terminal(tmp_path, error, code, line):
    found, shown, log = run(tmp_path, f"raise {error}")
    assert found == code
    assert shown == f"judging\n{log}"
    assert shown.splitlines()[-1].startswith(line) or line in shown
    assert ("Traceback" in shown) == ("defect" in error)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_is_there(path):
    lines = path.read_text("utf-8").splitlines()
    exec("\n".join(line for line in lines if re.match(r"(from|import) ", line)))
