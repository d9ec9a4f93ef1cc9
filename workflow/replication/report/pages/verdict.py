"""Verdicts as the report shows them, and answers in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from replication.report.pages.number import parse, percent
from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.counts import WHAT, Numbers, Tally, tallies
from replication.verdicts.verdict_table import Judged


class Badge(NamedTuple):
    """A word of a verdict or of another judgement; `slug` names its symbol and its colour."""

    word: str
    slug: str
    meaning: str


BADGES = (
    Badge(Verdict.REPRODUCED, "reproduced", "the number or claim meets its rule"),
    Badge(Verdict.DIRECTION_ONLY, "direction", "the sign or order is right, the size is wrong"),
    Badge(Verdict.NOT_REPRODUCED, "failed", "the number or claim does not meet its rule"),
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


def answer(cells: Sequence[Judged], claims: Iterable[Judged]) -> list[str]:
    """Return sentences on printed numbers, on published traces and on claims, where there are."""
    counted, said = tallies(cells, claims), []
    for what in ("printed", "trace"):
        own = (parse(row["relative_deviation"]) for row in cells if row["kind"] == what)
        said += _of_numbers(counted[what], named(what, counted[what]))
        said += _error([value for value in own if value is not None])
    return [*said, *_of_claims(counted["claims"])]


def named(what: str, tally: Tally) -> str:
    """Return what is counted, and of how many studies, traces and flows it is."""
    if not isinstance(tally, Numbers):
        return WHAT[what]
    if what == "trace":
        return (
            f"statistics of {_many(tally.tables, 'published trace')} ({_many(tally.rows, 'flow')})"
        )
    return f"{WHAT[what]} in {tally.studies} studies" if tally.studies > 1 else WHAT[what]


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _of_numbers(numbers: Tally, what: str) -> list[str]:
    if not numbers.total:
        return []
    if not numbers.tested:
        return [f"None of the {numbers.total} {what} can be tested by what was run."]
    said = f"{numbers.share(Verdict.REPRODUCED)} {what} are reproduced"
    untested = numbers.total - numbers.tested
    said += f"; {untested} more cannot be tested" if untested else ""
    impossible = numbers.count(Verdict.IMPOSSIBLE)
    return [f"{said}{f'; {impossible} cannot be true as printed' if impossible else ''}."]


def by_size(deviation: float) -> float:
    """Return how far off a relative deviation is: a third of a value is as far as three times."""
    ratio = max(1 + deviation, 1e-9)
    return max(ratio, 1 / ratio)


def _error(deviations: Sequence[float]) -> list[str]:
    if not deviations:
        return []
    above = sum(value > 0 for value in deviations)
    below = sum(value < 0 for value in deviations)
    side, most = ("high", above) if above > len(deviations) / 2 else ("low", below)
    size = percent(statistics.median(map(abs, deviations))).shown.lstrip("+")
    return [f"Their median error is {size}; {most} of our {len(deviations)} values are too {side}."]


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
