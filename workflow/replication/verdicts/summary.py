"""What verdicts amount to: on both set-ups, on several engines, before and after a change."""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from replication.base.table import Row, grouped
from replication.study.setup import Setup
from replication.study.verdict import DECIDED, ReasonCode, Verdict
from replication.verdicts.verdict_table import CellRow, ClaimRow, Share, Tally

#: Verdicts on numbers and claims that do not match.
FAILING = (Verdict.NOT_REPRODUCED, Verdict.DIRECTION_ONLY)
#: Reasons for which a claim is not testable although the runs were made as the paper wants.
_HELD_BACK = (ReasonCode.ALTERNATIVES_CANNOT_DIFFER, ReasonCode.SETUP_FORCES_IT)
#: Verdicts that have an order, and their ranks.
_RANK = {Verdict.NOT_REPRODUCED: 0, Verdict.DIRECTION_ONLY: 1, Verdict.REPRODUCED: 2}
#: The ways in which a verdict can move.
MOVES = ("up", "down", "stayed", "became testable", "no longer testable")


class BothSetups(NamedTuple):
    """Claims of the studies that ran under both set-ups.

    `hold` under both, `defaults_only` and `textbook_only` under one. The defaults leave `held_back`
    untestable by what is not TCP; of these the textbook set-up tests `decided`, reproduces `won`.
    """

    claims: int
    hold: int
    defaults_only: int
    textbook_only: int
    held_back: int
    decided: int
    won: int


def both_setups(defaults: Iterable[ClaimRow], textbook: Iterable[ClaimRow]) -> BothSetups:
    """Return how the counted claims fare under both set-ups."""
    second = {(row.study, row.claim): row for row in textbook if row.counted}
    first = {(row.study, row.claim): row for row in defaults if row.counted}
    pairs = [(first[claim], second[claim]) for claim in first if claim in second]
    hold = [[row.verdict == Verdict.REPRODUCED for row in pair] for pair in pairs]
    held_back = [row.verdict for before, row in pairs if before.reason_code in _HELD_BACK]
    return BothSetups(
        claims=len(pairs),
        hold=hold.count([True, True]),
        defaults_only=hold.count([True, False]),
        textbook_only=hold.count([False, True]),
        held_back=len(held_back),
        decided=len(held_back) - held_back.count(Verdict.NOT_TESTABLE),
        won=held_back.count(Verdict.REPRODUCED),
    )


def held(counted: Mapping[str, Tally]) -> Share:
    """Return how many of the printed numbers and claims that can be tested are reproduced."""
    shares = [counted[what].share(Verdict.REPRODUCED) for what in ("printed", "claims")]
    return Share(sum(share.part for share in shares), sum(share.whole for share in shares))


def failing(counted: Mapping[str, Tally]) -> dict[str, int]:
    """Return how many of each kind do not match; only kinds of which some do not."""
    numbers = {}
    for what, tally in counted.items():
        if number := sum(tally.by_verdict[verdict] for verdict in FAILING):
            numbers[what] = number
    return numbers


class Errors(NamedTuple):
    """How far our values are from those published.

    `size` is the median absolute deviation of `of` values. Of those that `fail`, `most` are on one
    side: too high or too low.
    """

    size: float
    of: int
    fail: int
    side: Literal["high", "low"]
    most: int


def errors(cells: Iterable[CellRow], kind: str) -> Errors | None:
    """Return the errors of the numbers of a kind; None where nothing was measured.

    Numbers that measure something else than ours have no error.
    """
    of_kind = [row for row in cells if row.kind == kind]
    comparable = [row for row in of_kind if row.reason_code != ReasonCode.PAPER_GIVES_TOO_LITTLE]
    known = [row for row in comparable if math.isfinite(row.relative_deviation)]
    if not known:
        return None
    wrong = [row.relative_deviation for row in known if row.verdict in FAILING]
    above = sum(deviation > 0 for deviation in wrong)
    is_high = above > len(wrong) / 2
    return Errors(
        size=statistics.median(abs(row.relative_deviation) for row in known),
        of=len(known),
        fail=len(wrong),
        side="high" if is_high else "low",
        most=above if is_high else len(wrong) - above,
    )


def divided(claims: Iterable[ClaimRow], engines: Sequence[str]) -> Share:
    """Return on how many of the claims that several engines can decide they disagree."""
    counted = [row for row in claims if row.counted and row.setup == Setup.DEFAULTS]
    decided = [row for row in counted if row.verdict in DECIDED]
    shown = [row for row in decided if row.engine in engines]
    several = [rows for rows in grouped(shown, "claim").values() if len(rows) > 1]
    apart = [rows for rows in several if len({row.verdict for row in rows}) > 1]
    return Share(len(apart), len(several))


def agreement(pairs: Iterable[Row]) -> Share:
    """Return how many of the comparisons of two engines agree."""
    agrees = [row["agree"] for row in pairs if row["agree"]]
    return Share(agrees.count("true"), len(agrees))


def moves(verdicts: Iterable[tuple[str, str]]) -> Counter[str]:
    """Count the ways in which verdicts moved that are known before and after a change."""
    return Counter(_moved(before, after) for before, after in verdicts if before and after)


def _moved(before: str, after: str) -> str:
    """Return the way a verdict moved; `impossible` counts as not testable."""
    old, new = _RANK.get(Verdict(before)), _RANK.get(Verdict(after))
    if old == new:
        return "stayed"
    if old is None:
        return "became testable"
    if new is None:
        return "no longer testable"
    return "up" if new > old else "down"
