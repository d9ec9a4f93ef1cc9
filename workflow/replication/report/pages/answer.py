"""Answers: what holds of some numbers and claims, in a sentence on each made from the data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from replication.report.parts.verdicts.number import percent
from replication.report.parts.verdicts.verdict import Tally
from replication.study.verdict import Verdict


def answer(tallies: Iterable[Tally], claims: Tally, deviations: Sequence[float]) -> list[str]:
    """Return a sentence on the numbers and one on the claims; neither where there is none.

    Parameters
    ----------
    tallies
        Verdicts of the numbers, a tally a table.
    claims
        Verdicts of the claims that count in the shares.
    deviations
        Relative deviations of the numbers that were reproduced.
    """
    return [*_of_numbers(list(tallies), deviations), *_of_claims(claims)]


def _of_numbers(tallies: Sequence[Tally], deviations: Sequence[float]) -> list[str]:
    total = sum(tally.total for tally in tallies)
    if not total:
        return []
    inside, open_ = (
        sum(tally.count(word) for tally in tallies)
        for word in (Verdict.REPRODUCED, Verdict.NOT_TESTABLE)
    )
    impossible = sum(tally.count(Verdict.IMPOSSIBLE) for tally in tallies)
    if open_ == total:
        said = f"None of the {total} printed numbers can be tested by what was run"
    else:
        said = f"{inside} of {total - open_} printed numbers are inside their tolerance"
        said += f"; {open_} more cannot be tested" if open_ else ""
    said += f", {impossible} cannot be true as printed" if impossible else ""
    if deviations:
        middle = statistics.median(abs(value) for value in deviations)
        above = sum(value > 0 for value in deviations)
        side = "above" if 2 * above > len(deviations) else "below"
        most = above if side == "above" else sum(value < 0 for value in deviations)
        size = percent(middle).shown.lstrip("+")
        said += f"; half of ours are more than {size} off, {most} of {len(deviations)} {side}"
    return [f"{said}."]


def _of_claims(claims: Tally) -> list[str]:
    if not claims.total:
        return []
    parts = []
    for word, said in (
        (Verdict.REPRODUCED, "holds"),
        (Verdict.DIRECTION_ONLY, "in direction only"),
        (Verdict.NOT_REPRODUCED, "does not hold"),
        (Verdict.IMPOSSIBLE, "cannot be true as printed"),
        (Verdict.NOT_TESTABLE, "cannot be tested"),
    ):
        if count := claims.count(word):
            parts.append(f"{count} {_plural(said, count)}")
    if count := claims.vacuous.count:
        parts.append(f"{count} {'is' if count == 1 else 'are'} vacuous")
    of = f"Of {claims.total} claims" if claims.total > 1 else "Of the one claim"
    return [f"{of}, {', '.join(parts)}."]


def _plural(said: str, count: int) -> str:
    """Return the words for so many: one holds, two hold."""
    if count == 1:
        return said
    return said.replace("does not", "do not").replace("holds", "hold")
