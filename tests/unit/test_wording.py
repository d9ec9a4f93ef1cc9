"""Tests of claims in a reader's words: labels, units, and what a share is a share of."""

import math

import pytest
from replication.study.claim_model import (
    Condition,
    PublishedRun,
    ShareTest,
    ValueTest,
)
from replication.verdicts.wording import Wording, figure, wording

RATE = {"experiment": "sweep", "metric": "throughput_bps"}


def of(**where):
    return {**RATE, "where": where}


def test_a_share_is_so_many_of_so_many(world):
    test = ShareTest.model_validate(
        {
            "kind": "share",
            "left": of(variant="vegas"),
            "relation": "above",
            "right": of(variant="reno"),
            "expect": {"at_least": 1.0},
        }
    )
    words = wording(world.study(), test)
    assert words.value(0.75, 4) == "3 of 4 points"
    assert words.value(0.7, 4) == "70 % of the points", "a mean over replicates"
    assert words.asked(test.expect) == "all points"
    assert words.asked(test.expect, 4) == "4 of 4"
    assert words.asked(Condition(at_least=0.5), 4) == "at least 50 % of the points"


def test_a_value_has_the_unit_that_people_read(world):
    value = {"kind": "value", "of": of(variant="reno"), "expect": {"at_least": 7e5}}
    words = wording(world.study(), ValueTest.model_validate(value))
    assert words.value(19641049.01) == "19.64 Mbit/s"
    assert words.asked(Condition(at_least=7e5, at_most=8e5)) == "0.7 to 0.8 Mbit/s"
    published = PublishedRun(published=7e5, factor=1.5)
    assert words.asked(published).startswith("the published 0.7 Mbit/s among our runs")
    lost = {"kind": "value", "of": {**of(), "metric": "loss_rate"}, "expect": {"at_most": 0.1}}
    assert wording(world.study(), ValueTest.model_validate(lost)).value(0.015) == "1.5 %"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1.0, "1"), (-0.95, "−0.95"), (1964.13, "1,964"), (1e-7, "1.000e−07"),
     (12345678.0, "12,345,678"), (math.inf, "infinite")],
)  # fmt: skip
def test_figures_have_four_digits_and_no_exponent(value, shown):
    assert figure(value) == shown
    assert Wording("Any").value(math.nan) == "undefined"
