"""Explanations: their result, their causes, and the alternatives of the search."""

import csv
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from replication.design.config import load_sensitivity, load_study
from replication.explore.broken_claims import broken_claims
from replication.explore.cause import (
    Cause,
    Explanations,
    Interpretation,
    combined,
    level_key,
    load_explanations,
)
from replication.explore.explained import HELD_OUT, REPEATED, SEEN, Part
from replication.explore.explanation import BEST_GUESS, EXPLANATION, NONE_FOUND, result_of
from replication.explore.finding import impossible, parts_of
from replication.explore.score import Choice, Family, FamilyScore
from replication.explore.search import Search
from replication.explore.trial import (
    DEFAULTS,
    CellJudge,
    ClaimJudge,
    StudyPart,
    Trial,
    TrialRunner,
)
from replication.metrics.cell_map import map_cells
from replication.study.published import published_path, read_published
from replication.study.variation import Variation
from replication.verdicts.self_consistency import printed_numbers

from tests.unit.conftest import ROOT, missing_from

ORIGIN = {"added": {"date": "2026-11-22", "results": "after"}, "suggested_by": "document"}


def cause(name, bits=12.0, plausibility="tool default"):
    title = f"{name}'s title"
    return SimpleNamespace(cause=name, title=title, bits=bits, plausibility=plausibility)


PAYS = [cause("a"), cause("b", 3.0)]
NOT_PAID = [*PAYS, cause("c", 1.9)]


def share(before=2, after=3, error_before=0.2, error_after=0.1, cells=10):
    """Return matches and errors of a part."""
    return Part(cells, before, after, error_before, error_after)


def contradicted(by):
    return {"causes": [cause("a", plausibility=by)], "contradicts": ["a"]}


def judged(**changes):
    """Return the result of what meets every condition, except for the changes."""
    finding = {"gain_bits": 30.0, "null_p": 0.05, "causes": PAYS, "contradicts": []}
    return result_of(SimpleNamespace(**finding | {"held_out": share()} | changes), "cells")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"causes": NOT_PAID}, ("c's title",)),
        ({"null_p": 0.051}, ("shuffled", "p = 0.051")),
        ({"held_out": share(3, 2)}, ("matches", "3 to 2 of 10")),
        ({"held_out": share(error_after=0.2)}, ("error", "20 % to 20 %")),
        ({"held_out": share(22, 23, 0.095, 0.143)}, ("error", "9.5 % to 14.3 %")),
        ({"held_out": share(error_before=None, error_after=None)}, ("matches", "2 to 3 of 10")),
        ({"held_out": share(0, 0, None, None, cells=0)}, ("held out",)),
        (contradicted("contradicts the text"), ("text", "a's title")),
        (contradicted("contradicts the data"), ("data", "a's title")),
    ],
)
def test_an_explanation_that_fails_one_condition_is_a_best_guess_and_names_the_condition(
    change, facts
):
    result, (reason,) = judged(**change)
    assert result == BEST_GUESS and not missing_from(reason, *facts)


def test_changes_that_meet_every_condition_are_an_explanation():
    assert judged() == (EXPLANATION, [])
    # Held-out matches may stay, and a cause is worth exactly two bits.
    assert judged(held_out=share(3, 3), causes=[cause("a", 2.0)])[0] == EXPLANATION


@pytest.mark.parametrize(
    "change",
    [
        {"gain_bits": 0.0},
        {"causes": []},
        {"null_p": 0.06, "contradicts": ["a"]},
        {"causes": NOT_PAID, "held_out": share(3, 2)},
    ],
)
def test_changes_without_gain_or_failing_two_conditions_are_not_reported(change):
    result, reasons = judged(**change)
    assert result == NONE_FOUND and reasons


def test_a_level_costs_the_bits_that_name_it():
    queue = {"low": 1, "high": 64, "log": True, "whole": True, "steps": 16, "tried": [2, 8]}
    document = {"id": "a", "title": "t", "reason": "r", "source": "s", "range": queue, **ORIGIN}
    ranged = Cause.model_validate(document | {"set": {"parameters": {"queue": "$value"}}})
    assert ranged.level_bits("2") == 1.0 and ranged.level_bits("5") == 4.0
    assert level_key(4194304) == "4194304"
    assert ranged.variation("8") == Variation(parameters={"queue": 8})
    assert ranged.range.values()[0] == 1 and ranged.range.values()[-1] == 64


def test_two_interpretations_are_combined_into_one():
    both = combined([Interpretation(aggregate="sum", factor=2.0), Interpretation(factor=1.024)])
    assert both == Interpretation(aggregate="sum", factor=2.048)
    assert both.printed(2048.0, 0.0) == 1000.0
    assert Interpretation(metric="loss_rate", complement=True).printed(0.01, 0.0) == 0.99
    assert Interpretation(less_propagation=True).printed(0.09, 0.07) == pytest.approx(0.02)


def judge_of(name):
    study, causes = load_study(ROOT, name), load_explanations(ROOT, name)
    cells = map_cells(study, read_published(ROOT / f"data/published/{name}.csv"))
    return CellJudge(TrialRunner(study, causes, None), cells)


def read_as(judge, pairs):
    """Return the interpretations with all tables changed that can be."""
    for family in judge.families:
        chosen = next((c for c in family.combinations if set(c) == set(pairs)), ())
        yield Choice({cell.table: chosen for cell in family.cells})


def test_an_interpretation_can_make_impossible_delays_possible():
    judge = judge_of("nishitha")

    def read(*pairs):
        """Return the number of impossible values under the paper's configuration."""
        readings = tuple(read_as(judge, pairs))
        return len(impossible(judge, Trial(DEFAULTS, 0.0, 0.0, readings), assumed=False))

    assert read(("delay_of", "less_propagation")) == 0 < read()


@pytest.mark.parametrize(
    ("configuration", "unit"),
    [
        ((("buffer", "5"), ("short_run", "10")), "mega_1024_squared"),
        ((("buffer", "10"), ("bytes_everywhere", "x8")), "mebibytes"),
    ],
)
def test_a_number_above_the_link_rate_of_an_explanation_is_impossible_under_it(configuration, unit):
    judge = judge_of("saxena")
    readings = tuple(read_as(judge, [("aggregate", "sum_over_two"), ("unit", unit)]))
    trial = Trial(configuration, 0.0, 0.0, readings)
    # 2 x 0.053 x 1.048576 = 0.1111 Mbit/s over 0.1 Mbit/s, or eight times both.
    assert list(impossible(judge, trial, assumed=True)) == [("II", "100", "newreno")]
    assert not impossible(judge, trial, assumed=False)


@pytest.mark.parametrize("inside", [False, True])
def test_an_interpretation_of_one_table_alone_must_gain_a_match(inside):
    judge = judge_of("nishitha")
    (family,) = (f for f in judge.families if f.cells[0].column == "throughput")
    score = FamilyScore(judge.runner.explanations, family, judge.cells)
    goodput = family.combinations.index((("payload", "goodput"),))
    one_table = score.table_of == score.tables.index("5.3")
    errors = np.full((len(score.cells), len(family.combinations)), 1.0)
    errors[:, 0], errors[one_table, 0], errors[one_table, goodput] = 0.08, 0.2, 0.0
    matches = np.zeros(errors.shape, dtype=bool)
    matches[np.flatnonzero(one_table)[0], goodput] = inside
    assert score.best(errors).pairs == (("payload@5.3", "goodput"),)
    assert bool(score.best(errors, matches).pairs) is inside


def test_a_number_repeated_in_a_searched_row_is_not_held_out():
    judge = judge_of("nishitha")
    stages, whole = judge.parts()
    parts = [*parts_of(whole.cells, stages[-1].cells).values()]
    assert [parts.count(part) for part in (SEEN, HELD_OUT, REPEATED)] == [45, 6, 9]


@pytest.mark.parametrize("name", ["dzivhani", "liang_shen"])
def test_no_stage_of_a_search_scores_a_held_out_claim_or_its_repetition(name):
    study, causes = load_study(ROOT, name), load_explanations(ROOT, name)
    stages, whole = ClaimJudge(TrialRunner(study, causes, None)).parts()
    seen = {claim.id for claim in itertools.chain(*(stage.claims for stage in stages))}
    judged = {claim.id for claim in whole.claims}
    held_out = set(causes.held_out.claims)
    assert seen == judged - held_out and held_out < judged
    repeats = {claim.id for claim in study.claims if claim.repeats}
    assert repeats and not repeats & judged
    assert all(claim.quantities() for claim in whole.claims)


def test_a_start_given_by_the_specification_is_attributed_to_it():
    causes = load_explanations(ROOT, "saxena")
    coupled = {"bytes_everywhere": "x8", "buffer": "10"}
    given = "specification of the search"
    assert causes.origin("buffer", "10", coupled)[1] == given
    assert causes.origin("buffer", "9", coupled)[1] == "document"
    assert causes.origin("buffer", "10", {"buffer": "10"})[1] == "document"
    added, by = causes.origin("unit", "mebibytes", {})
    assert (added.date, by) == ("2026-11-26", given)
    assert causes.origin("unit", "megabytes", {})[0].results == "before"


def test_a_broken_claim_names_the_point_where_runs_and_print_differ_most():
    study, cells = load_study(ROOT, "saxena"), judge_of("saxena").cells
    printed = printed_numbers(study, cells)

    def measured(wanted):
        """Return the printed numbers with less for HighSpeed, at the largest bandwidth most."""
        frame = printed(wanted)
        if "bandwidth" not in frame:
            return frame
        largest = np.where(frame["bandwidth"] == "10000", 0.65, 0.7)
        factor = np.where(frame["variant"] == "highspeed", largest, 1.0)
        return frame.assign(value=frame["value"] * factor)

    assert broken_claims(study, cells, study.claims, printed) == []
    rows = broken_claims(study, cells, study.claims, measured)
    (c04,) = (row for row in rows if row.claim == "c04")
    assert "HighSpeed is good" in c04.quote and "10000" in c04.at
    assert (c04.measured, c04.published) == ("0.8665 times", "1.333 times")


# --- the search, where a table says what each configuration takes ---


class Priced(TrialRunner):
    """Runs nothing: a configuration costs a second."""

    def runs(self, configuration, part):
        return []

    def cost_s(self, configuration, part):
        return 1.0

    def results(self, configurations, part):
        self.costs.spent_s += len(configurations)


def planted(saved, ids, coupled=None, budget_s=1000.0):
    """Return a search among causes: `saved` gives the bits a set of them saves on a stage."""
    level = {"levels": [{"key": "1", "set": {"parameters": {"p": 1}}}]}
    document = {"study": "planted", "score": "claims", "cpu_budget_s": budget_s, "stages": [{}]}
    document |= {"held_out": {"reason": "r"}, "coupled": coupled}
    causes = [{"id": i, "title": "t", "reason": "r", "source": "s", **ORIGIN, **level} for i in ids]
    explanations = Explanations.model_validate(document | {"causes": causes})
    machine = SimpleNamespace(engine="ns3")
    runner = Priced(SimpleNamespace(id="planted"), explanations, machine)

    def judged(configurations, results, stage):
        return [
            Trial(c, 200.0 - saved(set(dict(c)), stage.name), runner.bits(c))
            for c in configurations
        ]

    stages = [StudyPart("first"), StudyPart("all")]
    judge = SimpleNamespace(judged=judged)
    return Search(runner, judge, stages, StudyPart("whole"), load_sensitivity(ROOT))


def names(trial):
    return "".join(cause for cause, _ in trial.configuration)


@pytest.mark.parametrize(("worth", "causes"), [(0.4, "a"), (1.9, "a"), (2.1, "ab")])
def test_a_cause_without_gain_is_not_in_the_best_explanation(worth, causes):
    # Naming one of four causes takes two bits.
    search = planted(lambda has, _: 30.0 * ("a" in has) + (2.0 + worth) * ("b" in has), "abcd")
    (best,) = search.run()
    assert names(best) == causes
    assert all(t.total - best.total >= 2.0 for t in search.waterfall(best))


def test_runners_up_of_the_first_stage_are_compared_on_all_searched_data():
    def saved(has, stage, b_on_all=57.0):
        if stage == "first":
            return max(30.0 * ("a" in has), 25.0 * ("b" in has))
        return max(60.0 * ("a" in has), b_on_all * ("b" in has))

    search = planted(saved, "abcdefghij")
    (best,) = search.run()
    assert names(best) == "a" and "b" in map(names, search.rivals(best))
    # It may even be the better of the two; far behind on all, it is no rival.
    (best,) = planted(lambda has, stage: saved(has, stage, 65.0), "abcdefghij").run()
    assert names(best) == "b"
    search = planted(lambda has, stage: saved(has, stage, 40.0), "abcdefghij")
    (best,) = search.run()
    assert names(best) == "a" and not search.rivals(best)


def test_coupled_causes_are_reported_next_to_the_best_explanation_without_them():
    def saved(has, stage):
        joined = {"x", "y", "z"} <= has
        if joined:
            return 40.0
        return 30.0 * ("a" in has) - 9.0 * len(has & {"x", "y", "z"})

    start = {"cause": "x", "title": "t", "reason": "r", "starts": [{"x": "1", "y": "1", "z": "1"}]}
    start |= ORIGIN
    assert [names(trial) for trial in planted(saved, "axyzbc", start).run()] == ["xyz", "a"]
    assert [names(trial) for trial in planted(saved, "axyzbc").run()] == ["a"]


def test_the_worked_example_in_the_text_matches_the_code():
    """The page on the mathematics works through one delay of nishitha."""
    page = " ".join((ROOT / "workflow/replication/explore/README.md").read_text().split())
    study, causes = load_study(ROOT, "nishitha"), load_explanations(ROOT, "nishitha")
    held_out = causes.held_out.rows
    cells = [
        cell
        for cell in map_cells(study, read_published(published_path(ROOT, "nishitha")))
        if cell.column == "delay" and cell.row not in held_out.get(cell.table, [])
    ]
    with (ROOT / "data/release/cells.csv").open() as file:
        measured_s = {
            (row["table"], row["row"]): row["reproduced_mean"]
            for row in csv.DictReader(file)
            if (row["study"], row["engine"], row["column"]) == ("nishitha", "ns2", "delay")
            and row.get("setup", "defaults") == "defaults"
        }
    score = FamilyScore(causes, Family(cells, [()], "delay"), cells)
    measured = np.array([[float(measured_s[cell.table, cell.row])] for cell in score.cells])
    deviations = score.errors(measured)[:, 0]
    places = [(cell.table, cell.row) for cell in score.cells]
    first = places.index(("5.1", "ethernet_ethernet"))
    bits = score.data_bits(np.array([deviations.sum()]))
    if_exact = score.data_bits(np.array([deviations.sum() - deviations[first]]))
    numbers = (
        f"{measured[first, 0]:.6f} s",
        f"/ 0.122144)| = {deviations[first]:.3f}",
        f"{len(cells)} delays",
        f"*b* = {deviations.mean():.3f}",
        f"x {deviations.mean():.3f}) = {bits:.1f} bits",
        f"{if_exact:.1f} bits: {bits - if_exact:.1f} less",
        f"log2(20) = {causes.cause_bits:.1f} bits",
    )
    assert not missing_from(page, *numbers)
