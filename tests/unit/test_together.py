"""Numbers of one sentence: none is reproduced unless all are, in the same runs."""

import pytest
from replication.base.errors import InputError
from replication.metrics.cell_map import check_complete
from replication.study.verdict import ReasonCode, Verdict

BOTH = {"one": ["throughput"], "two": ["throughput"]}
WITHIN_50 = {
    "metric": "throughput_bps",
    "tolerance": {"absolute": 50.0, "reason": "r"},
}


def judged(world, rates, together=(BOTH,), **run):
    """Judge two printed rates of 500 bit/s; `rates(replicate)` are those of our two flows."""
    rows = {
        "one": {"where": {}, "flows": {"start_order": 1}},
        "two": {"where": {}, "flows": {"start_order": 2}},
    }
    shape = {"row_factor": None, "where": {"variant": "reno", "access": "slow"}}
    study = world.table({"throughput": WITHIN_50}, rows=rows, together=list(together), **shape)
    numbers = [(name, "throughput", "bit/s", 500.0, "500.0") for name in rows]
    check_complete(study, world.mapped(study, *numbers), "published.csv")

    def row(flow, replicate, **_):
        return {"throughput_bps": rates(replicate)[flow == "tcp2"]}

    return world.judge_cells(study, *numbers, flows=row, replicates=10, **run)


def in_opposite_directions(failing):
    """Rates whose means are 500 bit/s; in `failing` of 10 runs one is 80 too high, one too low."""

    def rates(replicate):
        if replicate >= failing:
            return 500.0, 500.0
        off = 80.0 if replicate % 2 else -80.0
        return 500.0 + off, 500.0 - off

    return rates


def words(rows):
    return [str(row.verdict) for row in rows]


@pytest.mark.parametrize(
    ("rates", "alone", "together"),
    [
        (lambda n: (520.0, 480.0), "reproduced", "reproduced"),
        (lambda n: (480.0, 607.0), "reproduced", "not reproduced"),
        (in_opposite_directions(2), "reproduced", "reproduced"),
        # The means agree, but not in the same runs.
        (in_opposite_directions(4), "reproduced", "not reproduced"),
    ],
)
def test_numbers_of_one_sentence_are_reproduced_only_together(world, rates, alone, together):
    assert words(judged(world, rates, ()))[0] == alone
    assert words(judged(world, rates))[0] == together


def test_the_reason_names_the_failing_number_or_the_runs_that_agree(world):
    first, second = judged(world, lambda n: (480.0, 607.0))
    assert "(two, throughput)" in first.reason and "(one, throughput)" not in second.reason
    first, _ = judged(world, in_opposite_directions(4))
    assert "6 of 10 runs" in first.reason


def test_if_one_number_cannot_be_tested_none_of_its_sentence_can(world):
    def rates(replicate):
        return (500.0, float("nan"))

    first, second = judged(world, rates)
    assert first.verdict == second.verdict == Verdict.NOT_TESTABLE
    assert first.reason_code == second.reason_code != ReasonCode.RUNS_DO_NOT_VARY


@pytest.mark.parametrize(
    ("together", "fact"),
    [
        ([BOTH, {"one": ["throughput"]}], "2 groups"),
        ([{"three": ["throughput"]}], "row three, column throughput"),
    ],
)
def test_an_invalid_group_of_numbers_is_refused(world, together, fact):
    with pytest.raises((InputError, ValueError), match=fact):
        judged(world, lambda n: (500.0, 500.0), together)
