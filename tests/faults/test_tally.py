"""The harness counts what it saw: a trial that nobody looked at is none that ended well."""

import contextlib
import subprocess

import pytest

from tests.faults.conftest import Tally


def counted(act):
    """Return tried, right, refused and wrong after one trial, which may fail."""
    tally = Tally()
    with contextlib.suppress(AssertionError), tally.trial("faults", "x", "a trial") as trial:
        act(trial)
    (entry,) = tally.entries()
    return entry.tried, entry.right, entry.refused, entry.wrong


def finished(code, said):
    return subprocess.CompletedProcess([], code, stdout=None, stderr=said)


def ends_in(trial, error):
    with trial.refusal(ValueError, "ours"):
        raise error


RIGHT, REFUSED, WRONG = (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("act", "counts"),
    [
        (lambda trial: trial.right(True), RIGHT),
        (lambda trial: trial.right(False), WRONG),
        (lambda trial: ends_in(trial, ValueError("ours")), REFUSED),
        (lambda trial: ends_in(trial, ValueError("another")), WRONG),
        (lambda trial: trial.refused(finished(2, "error: full"), "full"), REFUSED),
        (lambda trial: trial.refused(finished(0, "error: full"), "full"), WRONG),
        (lambda trial: trial.refused(finished(-9, "error: full"), "full"), WRONG),
        (lambda trial: trial.refused(finished(1, "Traceback full"), "full"), WRONG),
        (lambda trial: trial.exited(0), RIGHT),
        (lambda trial: trial.exited(2), REFUSED),
        (lambda trial: trial.exited(139), WRONG),
        (lambda trial: trial.attempt(dict, ValueError), RIGHT),
        (lambda trial: trial.attempt(lambda: int("x"), ValueError), REFUSED),
        (lambda trial: trial.said([["a b"], ["b"]], "b"), REFUSED),
        (lambda trial: trial.said([["a b"], []], "b"), WRONG),
        # Refused, and then something was found to be wrong all the same.
        (lambda trial: (trial.exited(2), trial.right(False)), WRONG),
        (lambda trial: None, WRONG),
    ],
)
def test_a_trial_counts_as_what_was_seen_of_its_end(act, counts):
    assert counted(act) == counts
