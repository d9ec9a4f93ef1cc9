"""The command line: help with examples, plain errors, exit codes."""

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from replication.cli.main import app, main
from typer.main import get_command

ROOT = Path(__file__).parents[2]


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


def commands(group, *words):
    """Yield the words that call each command, and the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *words, name)
        else:
            yield (*words, name), command


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_example_of_a_command_is_one_that_it_takes(words, monkeypatch):
    monkeypatch.chdir(ROOT)
    first, _, example = (COMMANDS[words].help or "").partition("Example: ")
    assert first.strip(), "it does not say what it does"
    if example:
        given = shlex.split(example)
        given = given[given.index("replicate") + 1 :]
        assert tuple(given[: len(words)]) == words
        COMMANDS[words].make_context(words[-1], given[len(words) :])


def test_every_study_in_the_repository_is_valid(replicate):
    done = replicate("validate")
    assert done.returncode == 0, done.err
    assert done.out.count(": valid") >= 5


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
