"""Borders as numbers: stretches of a row, their words, and the distance of the paper's point."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from replication.explore.regions.border import State, row_at, told_rows
from replication.explore.regions.region_rows import AxisRow, LawAtPaper, Measure
from replication.report.pages.region_words import away, border_sentences, scale_words

CELLS = 4
BUFFER = AxisRow("b", "Buffer", "BDP", low=0.1, high=1000, log=True, paper=None)
DELAY = AxisRow("d", "Delay", "s", low=0.0, high=0.4, log=False, paper=None)
#: Holds between 1 and 10 BDP: below ten times as much, above a third; the last cell is undecided.
HELD = {"quantity": [10.0, 1.0, 0.3, 0.7], "probability": [0.0, 1.0, 0.0, 0.5]}


def found(rows, paper=(1.0, 0.1), alike=(), **changes):
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
    result = found([HELD] * CELLS)
    row = row_at(result, result.panels[0], 0.4)
    assert [one.state for one in row.stretches] == ["fails", "holds", "fails", "undecided"]
    assert [(one.low, one.high) for one in row.stretches] == [
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
    told = sentences(found([everywhere, HELD, nowhere, nowhere], paper=(1.0, 0.15)))
    assert [words.partition(":")[0] for words in told] == [
        "Delay 150 ms",
        "Delay 50 ms",
        "Delay 350 ms",
    ]
    assert told[1:] == [
        "Delay 50 ms: it holds at every buffer.",
        "Delay 350 ms: it fails at every buffer (ratio 2 to 5).",
    ]
    # Without a value of the paper inside, the middle is told.
    result = found([everywhere, HELD, nowhere, nowhere], paper=(1.0, 9.0))
    assert told_rows(result, result.panels[0])[0].y == pytest.approx(0.25)


def test_sizes_of_failures_have_a_display_unit():
    row = {"quantity": [8.4e5, 9.4e5, 9.9e5, 9.9e5], "probability": [0.0, 0.0, 1.0, 1.0]}
    measure = Measure("value", factor=1e-6, unit="Mbit/s")
    assert sentences(found([row] * CELLS, measure=measure)) == [
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
    assert sentences(found([row] * CELLS)) == [f"Every delay: {words}"]


def test_cells_where_alternatives_cannot_differ_are_described_separately():
    result = found([HELD] * CELLS, alike=[[1, 0, 0, 0]] * CELLS)
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
    assert away(found([HELD] * CELLS, paper=paper)) == words


def test_the_law_is_stated_at_a_paper_point_outside_the_area():
    law = [LawAtPaper("the law of Ware", share=0.4996)]
    told = away(found([HELD] * CELLS, paper=(5e4, 0.1), laws_at_paper=law))
    assert told.endswith("50 times less). There the law of Ware gives 0.5 of the link.")


def test_logarithmic_axes_are_named():
    assert scale_words([BUFFER, BUFFER]) == "on logarithmic axes"
    assert scale_words([BUFFER, DELAY]) == "with buffer on a logarithmic axis"
    assert scale_words([DELAY, DELAY]) == "on linear axes"
