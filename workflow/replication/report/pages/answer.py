"""The answer of the first page: how much is reproduced under each set-up, and what both share."""

from collections.abc import Mapping
from dataclasses import dataclass

from replication.report.pages.source import Source
from replication.study.setup import Setup
from replication.study.study import Study
from replication.verdicts.summary import BothSetups, both_setups, held
from replication.verdicts.verdict_table import Tally, tallies

#: Below these shares of what was tested a phrase answers whether the published results hold.
_PHRASES = ((0.1, "Hardly any do"), (0.4, "Most do not"), (0.6, "About half do"), (0.9, "Most do"))
_NEARLY_ALL, _ALL, _NONE = "Nearly all do", "All do", "None do"


@dataclass(frozen=True)
class Answer:
    """What the first page says of both set-ups.

    `phrases` are those of the set-ups that test anything. `ran_textbook` and `without_textbook`
    are the papers with two set-ups, by what ran; papers in `one_setup` have one.
    """

    phrases: list[str]
    counted: dict[Setup, dict[str, Tally]]
    both: BothSetups
    ran_textbook: list[Study]
    without_textbook: list[Study]
    one_setup: list[Study]


def answer(source: Source) -> Answer:
    """Return what the first page says of both set-ups."""
    papers = source.papers
    cells = [row for row in source.cells if row.study in papers]
    claims = [row for row in source.claims if row.study in papers]
    counted = {}
    for setup in source.setups:
        numbers, sentences = source.on_primary(cells, setup), source.on_primary(claims, setup)
        counted[setup] = tallies(numbers, sentences)
    textbook = source.on_primary(claims, Setup.TEXTBOOK)
    ran = {row.study for row in textbook}
    ran |= {row.study for row in source.on_primary(cells, Setup.TEXTBOOK)}
    with_two = [study for study in papers.values() if Setup.TEXTBOOK in study.setups]
    phrases = [_phrase(tally) for tally in counted.values()]
    return Answer(
        phrases=[phrase for phrase in phrases if phrase],
        counted=counted,
        both=both_setups(source.on_primary(claims), textbook),
        ran_textbook=[study for study in with_two if study.id in ran],
        without_textbook=[study for study in with_two if study.id not in ran],
        one_setup=[study for study in papers.values() if Setup.TEXTBOOK not in study.setups],
    )


def _phrase(counted: Mapping[str, Tally]) -> str:
    """Return how many of the printed numbers and claims hold; empty if none can be tested."""
    part, tested = held(counted)
    if not tested:
        return ""
    if part in (0, tested):
        return _ALL if part else _NONE
    return next((words for below, words in _PHRASES if part / tested < below), _NEARLY_ALL)
