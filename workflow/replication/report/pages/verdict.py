"""Verdicts as the report shows, counts of them, and answers in sentences."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from replication.report.pages.number import percent
from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import DEFAULT, Judged


class Badge(NamedTuple):
    """A word of a verdict or of another judgement; `slug` names its symbol and its colour."""

    word: str
    slug: str
    meaning: str


BADGES = (
    Badge(Verdict.REPRODUCED, "reproduced", "inside the tolerance that was set before the run"),
    Badge(Verdict.DIRECTION_ONLY, "direction", "sign or order holds, the size does not"),
    Badge(Verdict.NOT_REPRODUCED, "failed", "outside the tolerance, or the other way round"),
    Badge(
        Verdict.NOT_TESTABLE,
        "untestable",
        "the paper, or what was run, gives too little to decide",
    ),
    Badge(
        Verdict.IMPOSSIBLE,
        "impossible",
        "the published value breaks a physical bound of the paper's own set-up",
    ),
)
_BY_WORD = {badge.word: badge for badge in BADGES}


def badge(word: str) -> Badge:
    """Return the badge of a verdict; InputError for any other word."""
    try:
        return _BY_WORD[word]
    except KeyError:
        known = ", ".join(_BY_WORD)
        raise InputError(f"verdict {word!r} is unknown; there are {known}") from None


class Tally:
    """Verdicts counted: `shares` has every badge with its number."""

    def __init__(self, words: Iterable[str]) -> None:
        counted = Counter(badge(word).word for word in words)
        self.shares = [(one, counted[one.word]) for one in BADGES]
        self.total = counted.total()

    def count(self, word: str) -> int:
        """Return how many have the verdict `word`."""
        return dict(self.shares)[badge(word)]

    @property
    def tested(self) -> int:
        """Return how many could be tested."""
        return self.total - self.count(Verdict.NOT_TESTABLE)


def beside(rows: Iterable[Judged], headline: str) -> Judged | None:
    """Return the default engine's row if it has a verdict and that of the headline has none."""
    found = {row["engine"]: row for row in rows}
    own, other = found.get(headline), found.get(DEFAULT)
    if own is None or own["verdict"] != Verdict.NOT_TESTABLE or other is None:
        return None
    return None if other["verdict"] == Verdict.NOT_TESTABLE else other


def answer(numbers: Tally, claims: Tally, deviations: Sequence[float]) -> list[str]:
    """Return a sentence on the numbers and one on the claims; neither where there is none.

    `deviations` are the relative ones of the numbers that were reproduced.
    """
    return [*_of_numbers(numbers, deviations), *_of_claims(claims)]


def _of_numbers(numbers: Tally, deviations: Sequence[float]) -> list[str]:
    if not numbers.total:
        return []
    untested = numbers.total - numbers.tested
    if numbers.tested:
        inside = numbers.count(Verdict.REPRODUCED)
        said = f"{inside} of {numbers.tested} printed numbers are inside their tolerance"
        said += f"; {untested} more cannot be tested" if untested else ""
    else:
        said = f"None of the {numbers.total} printed numbers can be tested by what was run"
    impossible = numbers.count(Verdict.IMPOSSIBLE)
    said += f", {impossible} cannot be true as printed" if impossible else ""
    if deviations:
        above = sum(value > 0 for value in deviations)
        below = sum(value < 0 for value in deviations)
        side, most = ("high", above) if above > len(deviations) / 2 else ("low", below)
        size = percent(statistics.median(map(abs, deviations))).shown.lstrip("+")
        said += f"; median error {size}, {most} of our {len(deviations)} values are too {side}"
    return [f"{said}."]


def _of_claims(claims: Tally) -> list[str]:
    if not claims.total:
        return []
    parts = [
        f"{count} {one if count == 1 else several}"
        for word, one, several in (
            (Verdict.REPRODUCED, "holds", "hold"),
            (
                Verdict.DIRECTION_ONLY,
                "has the right direction only",
                "have the right direction only",
            ),
            (Verdict.NOT_REPRODUCED, "does not hold", "do not hold"),
            (Verdict.IMPOSSIBLE, *2 * ("cannot be true as printed",)),
            (Verdict.NOT_TESTABLE, *2 * ("cannot be tested",)),
        )
        if (count := claims.count(word))
    ]
    of = f"Of {claims.total} claims" if claims.total > 1 else "Of the one claim"
    return [f"{of}, {', '.join(parts)}."]
