"""The command line: help with examples, plain errors, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from replication.cli.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
COMMANDS = ("validate", "plan", "run", "render", "release", "engines", "metrics", "schemas")
#: What only rules and make call.
STEPS = ("design", "simulate", "evaluate", "provenance", "install-engines")


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


def listed(text):
    """Return the commands that a help text lists."""
    _, _, after = text.partition("Commands:\n")
    return [line.split()[0] for line in after.splitlines() if line.strip()]


def test_help_lists_what_users_call_with_examples_and_nothing_else():
    text = replicate("--help").stdout
    assert set(COMMANDS) <= set(listed(text)) and len(listed(text)) <= 12
    assert set(STEPS).isdisjoint(listed(text))
    assert sum(line.strip().startswith("replicate ") for line in text.splitlines()) >= 3
    assert set(STEPS[:-1]) <= set(listed(replicate("step", "--help").stdout))


def test_help_of_every_command_shows_an_example():
    for command in COMMANDS:
        done = CliRunner().invoke(app, [command, "--help"])
        assert f"Example: replicate {command}" in done.output, command


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
        (("step", "evaluate", "nobody"), "nobody"),
        (("run", "0" * 16), "scenario"),
        (("run", "0" * 16, "--engine", "abacus"), "abacus"),
        (("plan", "--root", "/nonexistent"), "/nonexistent"),
        (("render", "--data", "/nonexistent"), "/nonexistent"),
        (("step", "simulate"), "Missing option"),
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
