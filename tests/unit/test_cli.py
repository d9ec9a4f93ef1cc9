"""The command line: help with examples, plain errors, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = ("validate", "plan", "metrics", "schemas", "design", "simulate", "evaluate", "run")


def replicate(*words, cwd=ROOT):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow"), "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "replication.cli", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_the_commands():
    text = replicate("--help").stdout
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize(
    "command", ["validate", "plan", "run", "design", "evaluate", "compare-traces"]
)
def test_help_of_a_command_shows_an_example(command):
    assert f"Example: replicate {command}" in replicate(command, "--help").stdout


def test_every_study_in_the_repository_is_valid():
    done = replicate("validate")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": valid") >= 5


@pytest.mark.parametrize(
    ("words", "mention"),
    [
        (("plan", "--tier", "huge"), "tier"),
        (("plan", "--studies", "nobody"), "nobody"),
        (("plan", "--engines", "ns4"), "engines"),
        (("evaluate", "nobody"), "nobody"),
        (("run", "0" * 16), "scenario"),
        (("run", "0" * 16, "--engine", "abacus"), "abacus"),
        (("plan", "--root", "/nonexistent"), "/nonexistent"),
        (("render", "--data", "/nonexistent"), "/nonexistent"),
        (("simulate",), "Missing option"),
    ],
)
def test_bad_input_is_exit_code_two_without_a_traceback(words, mention):
    done = replicate(*words)
    assert done.returncode == 2
    assert mention in done.stderr
    assert "Traceback" not in done.stderr


def test_metrics_come_with_units():
    lines = replicate("metrics").stdout.splitlines()
    assert len(lines) > 20
    assert all("[" in line and "]: " in line for line in lines)
