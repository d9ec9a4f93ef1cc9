"""The answer of the first page: how much is reproduced under each set-up, and what both share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from replication.report.pages.source import Source
from replication.study.setup import Setup
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.verdict_table import ClaimRow, Tally, tallies

#: Below these shares of what was tested a phrase answers whether the published results hold.
_PHRASES = ((0.1, "Hardly any do"), (0.4, "Most do not"), (0.6, "About half do"), (0.9, "Most do"))
_NEARLY_ALL, _ALL, _NONE = "Nearly all do", "All do", "None do"
#: Reasons for which a claim is not testable although the runs were made as the paper wants.
_HELD_BACK = (ReasonCode.ALTERNATIVES_CANNOT_DIFFER, ReasonCode.SETUP_FORCES_IT)


class Both(NamedTuple):
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


def answer(source: Source) -> dict[str, Any]:
    """Return what the first page says of both set-ups, for its template."""
    papers = source.papers
    cells = [row for row in source.cells if row.study in papers]
    claims = [row for row in source.claims if row.study in papers]
    counted = {
        setup: tallies(source.on_primary(cells, setup), source.on_primary(claims, setup))
        for setup in source.setups
    }
    with_two = [name for name, study in papers.items() if Setup.TEXTBOOK in study.setups]
    textbook = source.on_primary(claims, Setup.TEXTBOOK)
    ran = {row.study for row in textbook}
    ran |= {row.study for row in source.on_primary(cells, Setup.TEXTBOOK)}
    phrases = [phrase for tally in counted.values() if (phrase := _phrase(tally))]
    return {
        "phrases": phrases,
        "counted": counted,
        "both": _both(source.on_primary(claims), textbook),
        "ran_textbook": [papers[name] for name in with_two if name in ran],
        "without_textbook": [papers[name] for name in with_two if name not in ran],
        "one_setup": [one for name, one in papers.items() if name not in with_two],
    }


def _phrase(counted: Mapping[str, Tally]) -> str:
    """Return how many of the printed numbers and claims hold; empty if none can be tested."""
    tested = sum(counted[what].tested for what in ("printed", "claims"))
    if not tested:
        return ""
    held = sum(counted[what].by_verdict[Verdict.REPRODUCED] for what in ("printed", "claims"))
    if held in (0, tested):
        return _ALL if held else _NONE
    return next((words for below, words in _PHRASES if held / tested < below), _NEARLY_ALL)


def _both(defaults: Sequence[ClaimRow], textbook: Sequence[ClaimRow]) -> Both:
    """Return how the counted claims fare under both set-ups."""
    second = {(row.study, row.claim): row for row in textbook if row.counted}
    pairs = [
        (row, second[row.study, row.claim])
        for row in defaults
        if row.counted and (row.study, row.claim) in second
    ]
    held_back = [pair for pair in pairs if pair[0].reason_code in _HELD_BACK]
    hold = [[row.verdict == Verdict.REPRODUCED for row in pair] for pair in pairs]
    return Both(
        claims=len(pairs),
        hold=hold.count([True, True]),
        defaults_only=hold.count([True, False]),
        textbook_only=hold.count([False, True]),
        held_back=len(held_back),
        decided=sum(row.verdict != Verdict.NOT_TESTABLE for _, row in held_back),
        won=sum(row.verdict == Verdict.REPRODUCED for _, row in held_back),
    )
