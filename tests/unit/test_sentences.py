"""Sentences for readers: of verdicts, of answers and of regions.

Their wording is asserted here alone, and that of errors in `test_messages.py`; other tests assert
the facts in them.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup
from replication.explore.regions.border import State, row_at, told_rows
from replication.explore.regions.region_counts import count_regions
from replication.explore.regions.region_rows import AxisRow, LawAtPaper, Measure
from replication.report.pages import regions
from replication.report.pages.page import environment
from replication.report.pages.region_words import away, border_sentences, scale_words
from replication.report.pages.shown import answer
from replication.study.claim_model import Condition, PublishedRun, ShareTest, ValueTest
from replication.study.verdict import Verdict
from replication.verdicts.claim import Judgement, judge_parts
from replication.verdicts.published_run import Published, judge_published
from replication.verdicts.wording import Wording, figure, wording

from tests.unit.conftest import RENO, quantity, sides, value_of
from tests.unit.region_example import ALIKE, PANEL, RESULT, point
from tests.unit.report_project import EMPTY

REPRODUCED = Verdict.REPRODUCED
NOT_REPRODUCED, NOT_TESTABLE = Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE


# -- verdicts -------------------------------------------------------------------------------------


def test_a_share_is_worded_as_a_number_of_points(world):
    test = ShareTest.model_validate(sides("share", relation="above", expect={"at_least": 1.0}))
    words = wording(world.study(), test)
    assert words.value(0.75, 4) == "3 of 4 points"
    assert words.value(0.7, 4) == "70 % of the points", "a mean over replicates"
    assert words.condition(test.expect) == "all points"
    assert words.condition(test.expect, 4) == "4 of 4"
    assert words.condition(Condition(at_least=0.5), 4) == "at least 50 % of the points"


def test_a_value_is_worded_in_its_display_unit(world):
    words = wording(world.study(), ValueTest.model_validate(value_of(RENO, {"at_least": 7e5})))
    assert words.value(19641049.01) == "19.64 Mbit/s"
    assert words.condition(Condition(at_least=7e5, at_most=8e5)) == "0.7 to 0.8 Mbit/s"
    published = PublishedRun(published=7e5, factor=1.5)
    spread = "the published 0.7 Mbit/s within the spread of our runs"
    assert words.condition(published).startswith(spread)
    losses = ValueTest.model_validate(value_of(quantity("loss_rate"), {"at_most": 0.1}))
    assert wording(world.study(), losses).value(0.015) == "1.5 %"


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0.0, "0"), (1.0, "1"), (-0.95, "−0.95"), (1964.13, "1,964"), (1e-7, "1.000e−07"),
     (12345678.0, "12,345,678"), (math.inf, "infinite")],
)  # fmt: skip
def test_numbers_are_worded_with_four_significant_digits(number, shown):
    assert figure(number) == shown
    assert Wording("Any").value(math.nan) == "undefined"


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (REPRODUCED, "The one part that counts is reproduced."),
        (NOT_REPRODUCED, "The one part that counts is not reproduced."),
        (NOT_TESTABLE, "The one part that counts cannot be tested."),
    ],
)
def test_a_single_counted_part_is_not_worded_as_a_share(verdict, sentence):
    forced = Judgement(NOT_TESTABLE, ["It cannot fail."], cannot_fail=True)
    judgement = judge_parts([forced, Judgement(verdict, ["It is so."], observed=1.0)])
    assert judgement.reasons[0] == f"{sentence} 1 part that cannot fail is not counted."


def test_a_constant_is_called_deterministic_with_its_distance():
    values = [53.0] * 98 + [54.0]
    published = Published(80.0, 0.0, 1.5, counts=True)
    assert judge_published(published, np.array(values), [*range(99)], "{:g}".format).reason == (
        "Deterministic here: 98 of 99 runs give 53. Our mean of 53.0101 is not within a factor of "
        "1.5, or 2 counts, of the published 80."
    )


# -- answers -------------------------------------------------------------------------------------


def judged_number(kind, verdict, relative_deviation):
    return SimpleNamespace(
        study="s",
        table="t",
        row="r",
        kind=kind,
        verdict=verdict,
        relative_deviation=relative_deviation,
        compatible=None,
        accepted_margin=math.nan,
        reason_code="",
    )


def test_an_answer_counts_numbers_traces_and_claims():
    cells = [
        judged_number("printed", "reproduced", 0.02),
        judged_number("printed", "not reproduced", 0.3),
        judged_number("printed", "not testable", -0.4),
        judged_number("trace", "not testable", math.nan),
    ]
    words = ("reproduced", "not reproduced", "not reproduced", "direction only")
    claims = [SimpleNamespace(counted=True, verdict=word) for word in words]
    answered = environment(EMPTY).get_template("parts.html").module.answered
    assert answered(answer(cells, claims)) == " ".join(
        [
            "1 of 2 printed numbers is reproduced; 1 more cannot be tested.",
            "Their median error is 30 %; the one that does not match is too high.",
            "The one statistic of 1 published trace (1 flow) cannot be tested by these runs.",
            "1 of 4 testable claims holds; 1 has the right direction only; 2 do not hold.",
        ]
    )
    assert answered(answer([], [])) == ""


# -- summaries of regions -------------------------------------------------------------------------

WORDS = (
    environment(EMPTY)
    .get_template("region_words.html")
    .make_module(regions.WORDS | {"entries": {"least_rto": SimpleNamespace(title="Least RTO")}})
)
TIES = replace(RESULT, ties_everywhere=True, holds=0.0, fails=1.0, undecided=0.0, panels=[])
REST = [replace(RESULT, engine="ns2", holds=0.95), replace(RESULT, region="n", fails=0.99), TIES]
NOTHING = replace(RESULT, panels=[], points=[point(1, 0, "no queue")])


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            WORDS.summary_of(RESULT),
            "Of this area, with buffer on a logarithmic axis, on ns3 it holds in 50 %, fails in "
            "25 %, and is undecided in 25 %.",
        ),
        (
            WORDS.effort_of(RESULT),
            "On ns3 1 of 2 random validation points lie inside their 90 % interval (Brier score "
            "0.01). 3 runs, 2.0 CPU minutes with validation. Beyond the budget: CUBIC.",
        ),
        (WORDS.summary_of(NOTHING), "On ns3 there is no result: no queue."),
        (WORDS.summary_of(replace(TIES, panels=[PANEL])), "no difference anywhere: all runs tie."),
        (WORDS.details(RESULT, PANEL), "In 1 of 3 runs a compared flow is starved"),
        (WORDS.details(RESULT, PANEL), "It times out early. Known difference: least RTO."),
        (
            WORDS.details(RESULT, PANEL),
            "(buffer 0.3 BDP and delay 100 ms) lies where it fails (probability 0.01).",
        ),
        # The middle of a row of two cells, as the border is at 1 BDP.
        (
            WORDS.details(RESULT, PANEL),
            "Delay 100 ms: it fails below 1 BDP (ratio 0.5) and it holds above 1 BDP.",
        ),
        (
            WORDS.details(replace(RESULT, panels=[ALIKE, PANEL]), ALIKE),
            "cannot be tested in 25 % (the alternatives cannot differ), and is undecided in 0 %.",
        ),
        (
            WORDS.details(RESULT, ALIKE),
            "At the paper’s own point (buffer 0.3 BDP and delay 100 ms) the alternatives cannot "
            "differ: no packet is lost.",
        ),
        (
            WORDS.summary_of(replace(RESULT, cannot_differ=0.1)),
            "(the alternatives cannot differ), and is undecided in 15 %.",
        ),
        (
            WORDS.effort_of(replace(RESULT, cannot_differ=0.1)),
            "interval (Brier score 0.01). At 1 of them it was predicted right",
        ),
        (
            WORDS.learned(count_regions([RESULT, *REST])),
            "2 claims from 1 paper, on up to two engines: 4 regions. The claim holds in at least "
            "90 % of the area in 1 of them, fails in at least 90 % in 1, and shows no difference "
            "anywhere in 1; it depends on the parameters in the other 1. A share is one of the "
            "area that we chose to draw, mostly on logarithmic axes; the borders below are the "
            "result. "
            "On average 25 %",
        ),
    ],
)
def test_summaries_of_a_region_state_its_shares_validation_and_cost(shown, words):
    assert words in BeautifulSoup(" ".join(str(shown).split()), "html.parser").get_text()


# -- the boundaries of a region -------------------------------------------------------------------

CELLS = 4
BUFFER = AxisRow("b", "Buffer", "BDP", low=0.1, high=1000, log=True, paper=None)
DELAY = AxisRow("d", "Delay", "s", low=0.0, high=0.4, log=False, paper=None)
#: Holds between 1 and 10 BDP: below ten times as much, above a third; the last cell is undecided.
HELD = {"quantity": [10.0, 1.0, 0.3, 0.7], "probability": [0.0, 1.0, 0.0, 0.5]}


def region_of(rows, paper=(1.0, 0.1), alike=(), **changes):
    """Return a result whose rows, from the lowest y, are these."""
    panel = SimpleNamespace(
        quantity=[row["quantity"] for row in rows],
        probability=[row["probability"] for row in rows],
        alike=alike,
        ties=False,
    )
    axes = replace(BUFFER, paper=paper[0]), replace(DELAY, paper=paper[1])
    result = {"axes": axes, "panels": [panel], "measure": Measure("ratio"), "laws_at_paper": []}
    return SimpleNamespace(**result | changes)


def sentences(result):
    return border_sentences(result, result.panels[0])


def test_a_row_is_described_from_edge_to_edge_with_the_size_of_failures():
    result = region_of([HELD] * CELLS)
    row = row_at(result, result.panels[0], 0.4)
    assert [stretch.state for stretch in row.stretches] == ["fails", "holds", "fails", "undecided"]
    assert [(stretch.low, stretch.high) for stretch in row.stretches] == [
        (None, 1.0),
        (1.0, 10.0),
        (10.0, 100.0),
        (100.0, None),
    ]
    assert (row.number("from"), row.number("to")) == (1.0, 10.0)
    assert (row.number("first"), row.number("last")) == (10.0, 0.7)
    assert sentences(result) == [
        "Every delay: it fails below 1 BDP (ratio 10), it holds from 1 to 10 BDP and it fails from "
        "10 to 100 BDP (ratio 0.3); the rest is undecided."
    ]


def test_if_boundaries_depend_on_y_the_papers_row_comes_first_then_both_ends():
    everywhere = {"quantity": [1.0] * CELLS, "probability": [1.0] * CELLS}
    nowhere = {"quantity": [2.0, 3.0, 4.0, 5.0], "probability": [0.0] * CELLS}
    described = sentences(region_of([everywhere, HELD, nowhere, nowhere], paper=(1.0, 0.15)))
    assert [words.partition(":")[0] for words in described] == [
        "Delay 150 ms",
        "Delay 50 ms",
        "Delay 350 ms",
    ]
    assert described[1:] == [
        "Delay 50 ms: it holds at every buffer.",
        "Delay 350 ms: it fails at every buffer (ratio 2 to 5).",
    ]
    # Without a value of the paper inside, the middle is described.
    result = region_of([everywhere, HELD, nowhere, nowhere], paper=(1.0, 9.0))
    assert told_rows(result, result.panels[0])[0].y == pytest.approx(0.25)


def test_sizes_of_failures_have_a_display_unit():
    row = {"quantity": [8.4e5, 9.4e5, 9.9e5, 9.9e5], "probability": [0.0, 0.0, 1.0, 1.0]}
    measure = Measure("value", factor=1e-6, unit="Mbit/s")
    assert sentences(region_of([row] * CELLS, measure=measure)) == [
        "Every delay: it fails below 10 BDP (value 0.84 to 0.94 Mbit/s) and it holds above 10 BDP."
    ]


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        ([0.5] * 4, "it is undecided."),
        ([0.0, 0.5, 0.0, 0.5], "it fails wherever it is known; the rest is undecided."),
    ],
)
def test_undecided_stretches_are_described_as_undecided(probability, words):
    row = {"quantity": [1.0] * 4, "probability": probability}
    assert sentences(region_of([row] * CELLS)) == [f"Every delay: {words}"]


def test_cells_where_alternatives_cannot_differ_are_described_separately():
    result = region_of([HELD] * CELLS, alike=[[1, 0, 0, 0]] * CELLS)
    row = row_at(result, result.panels[0], 0.1)
    assert row.stretches[0].state == State.CANNOT_DIFFER
    assert sentences(result)[0].startswith(
        "Every delay: the alternatives cannot differ below 1 BDP, it holds from 1 to 10 BDP"
    )


@pytest.mark.parametrize(
    ("paper", "words"),
    [
        ((1.0, 0.1), ""),
        # The edges belong to the area.
        ((1000, 0.4), ""),
        (
            (50000, 0.1),
            "The paper’s own point lies outside of this area: buffer 50,000 BDP (the area ends at "
            "1,000 BDP, 50 times less).",
        ),
        (
            (0.002, 0.5),
            "The paper’s own point lies outside of this area: buffer 0.002 BDP (the area begins at "
            "0.1 BDP, 50 times more) and delay 500 ms (the area ends at 400 ms).",
        ),
        ((None, 0.1), "The paper’s own point lies outside of this area: it has no buffer."),
    ],
)
def test_a_paper_point_outside_the_area_is_described_with_its_distance(paper, words):
    assert away(region_of([HELD] * CELLS, paper=paper)) == words


def test_the_law_is_stated_at_a_paper_point_outside_the_area():
    law = [LawAtPaper("the law of Ware", share=0.4996)]
    described = away(region_of([HELD] * CELLS, paper=(5e4, 0.1), laws_at_paper=law))
    assert described.endswith("50 times less). There the law of Ware gives 0.5 of the link.")


def test_logarithmic_axes_are_named():
    assert scale_words([BUFFER, BUFFER]) == "on logarithmic axes"
    assert scale_words([BUFFER, DELAY]) == "with buffer on a logarithmic axis"
    assert scale_words([DELAY, DELAY]) == "on linear axes"
