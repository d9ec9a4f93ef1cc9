"""What an explanation is called, which claims never hold together, what naming a cause takes."""

from types import SimpleNamespace

import pytest
from replication.design.config import load_study
from replication.engines.ns3 import NS3_VERSION
from replication.explore.explanation import BEST_GUESS, EXPLANATION, NONE_FOUND, Finding, result_of
from replication.explore.finding import Leaving, Share, impossible
from replication.explore.permutation_test import never_together
from replication.explore.score import Choice, Reader
from replication.explore.search import Search
from replication.explore.trial import CellJudge, Trial
from replication.explore.trial_runner import DEFAULTS, TrialRunner
from replication.metrics.cell_map import map_cells
from replication.study.published import read_published
from replication.study.variation import Variation
from replication.study.verdict import Verdict
from replication.verdicts.cause import Cause, Reading, combined, load_explanations

from tests.unit.conftest import ROOT

PAYS = [Leaving("a", "1", 12.0, 8), Leaving("b", "1", 3.0, 12)]


@pytest.mark.parametrize(
    ("change", "called"),
    [
        ({}, EXPLANATION),
        ({"gain_bits": 0.0}, NONE_FOUND),
        ({"p": 0.06}, NONE_FOUND),
        # Half of the share that matches of what was seen, 0.8, must match.
        ({"held_out": Share(10, 2, 3)}, BEST_GUESS),
        ({"held_out": Share(10, 2, 4)}, EXPLANATION),
        ({"held_out": Share(10, 7, 6)}, BEST_GUESS),
        ({"leaving": [*PAYS, Leaving("c", "1", 0.0, 16)]}, BEST_GUESS),
    ],
)
def test_what_falls_short_is_called_less(change, called):
    seen, held_out = Share(20, 4, 16), Share(10, 2, 8)
    found = {"gain_bits": 30.0, "p": 0.005, "seen": seen, "held_out": held_out, "leaving": PAYS}
    result, reasons = result_of(Finding(**found | change, claims_before={}, claims_after={}))
    assert result == called and bool(reasons) is (result != EXPLANATION)


def paired(**holds):
    """Return which claims are never together: a letter of each a trial, y where it holds."""
    told = {"y": Verdict.REPRODUCED, "n": Verdict.NOT_REPRODUCED}
    trials = [
        Trial((("a", str(n)),), "r", 0.0, 0.0, verdicts={c: told[w[n]] for c, w in holds.items()})
        for n in range(12)
    ]
    return [tuple(pair.values()) for pair in never_together(trials)]


def test_claims_that_never_hold_together_are_told_with_counts():
    found = paired(c1="yyyyyynnnnnn", c2="nnnnnnyyyyyy", c3="yyyyyyyyyyyy")
    assert found == [("c1", "c2", 6, 6, 12, 3.0)]
    # One trial with both, or too few to tell from chance, and nothing is told.
    assert not paired(c1="yyyyyynnnnnn", c2="nnnnnyyyyyyy")
    assert not paired(c1="yyynnnnnnnnn", c2="nnnyyyyyynnn")


def test_a_level_takes_the_bits_to_name_it():
    queue = {"low": 1, "high": 64, "log": True, "whole": True, "steps": 16, "tried": [2, 8]}
    document = {"id": "a", "title": "t", "reason": "r", "source": "s", "range": queue}
    one = Cause.model_validate(document | {"set": {"parameters": {"queue": "$value"}}})
    assert one.level_bits("2") == 1.0 and one.level_bits("5") == 4.0
    assert one.variation("8") == Variation(parameters={"queue": 8})
    assert one.range.values()[0] == 1 and one.range.values()[-1] == 64


def test_readings_are_taken_together():
    both = combined([Reading(aggregate="sum", factor=2.0), Reading(factor=1.024)])
    assert both == Reading(aggregate="sum", factor=2.048)
    assert both.printed(2048.0, 0.0) == 1000.0
    assert Reading(metric="loss_rate", complement=True).printed(0.01, 0.0) == 0.99
    assert Reading(less_propagation=True).printed(0.09, 0.07) == pytest.approx(0.02)


def test_a_reading_decides_which_printed_numbers_are_impossible():
    study, causes = load_study(ROOT, "nishitha"), load_explanations(ROOT, "nishitha")
    cells = map_cells(study, read_published(ROOT / "data/published/nishitha.csv"))
    reader = Reader(study, causes, cells)
    judge = CellJudge(TrialRunner(study, causes, cells, None), reader)

    def read(*pairs):
        """Return how many numbers are impossible if all that can be read so are."""
        choices = []
        for family in reader.families:
            own = pairs if pairs in family.combinations else ()
            choices.append(Choice({cells[place].table: own for place in family.cells}))
        return impossible(judge, Trial(DEFAULTS, "whole", 0.0, 0.0, tuple(choices)))

    assert read(("delay_of", "less_propagation")) == 0 < read()


@pytest.mark.parametrize(("name", "stages"), [("dzivhani", 1), ("saxena", 3)])
def test_with_one_stage_no_budget_is_kept_for_runs_that_are_there(name, stages):
    machine = SimpleNamespace(
        engine="ns3", ns3_version=NS3_VERSION, missing_kernel=lambda run: False
    )
    own = Search.begin(ROOT, load_explanations(ROOT, name), machine)
    assert len(own.stages) == stages
    one_s = own.runner.cost_s(DEFAULTS, own.stages[-1])
    assert (own.reserve_s > one_s) is (stages > 1)
