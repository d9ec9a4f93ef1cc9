"""Verdicts as the report shows them, and answers in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replication.report.pages.number import percent
from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.counts import WHAT, Tally
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


def beside(rows: Iterable[Judged], headline: str) -> Judged | None:
    """Return the default engine's row if it has a verdict and that of the headline has none."""
    found = {row["engine"]: row for row in rows}
    own, other = found.get(headline), found.get(DEFAULT)
    if own is None or own["verdict"] != Verdict.NOT_TESTABLE or other is None:
        return None
    return None if other["verdict"] == Verdict.NOT_TESTABLE else other


def answer(counted: Mapping[str, Tally], deviations: Sequence[float]) -> list[str]:
    """Return a sentence on each thing that was counted; none on what there is none of.

    `deviations` are the relative ones of the numbers that were measured.
    """
    printed, trace = (_of_numbers(counted[what], WHAT[what]) for what in ("printed", "trace"))
    return [*printed, *trace, *_error(deviations), *_of_claims(counted["claims"])]


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


def _error(deviations: Sequence[float]) -> list[str]:
    if not deviations:
        return []
    above = sum(value > 0 for value in deviations)
    below = sum(value < 0 for value in deviations)
    side, most = ("high", above) if above > len(deviations) / 2 else ("low", below)
    size = percent(statistics.median(map(abs, deviations))).shown.lstrip("+")
    return [f"The median error is {size}; {most} of our {len(deviations)} values are too {side}."]


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
