"""The design: points, replicates, batches."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measurements.scenarios import dumbbell, red, tcp
from pydantic import ValidationError
from replication.base.errors import InputError
from replication.design.config import load_study, load_tier, study_ids
from replication.design.design import (
    Run,
    batch_runs,
    chosen_levels,
    design_study,
    engines_by_setup,
    repeat_warnings,
)
from replication.engines.catalogue import NS3
from replication.engines.model import crossings_by_link, nominal_crossings
from replication.metrics.metric_model import METRICS
from replication.study.parameter import Factor
from replication.study.scenario import Scenario
from replication.study.study import Study
from replication.study.variation import Variation, apply
from replication.verdicts.evaluate import judgeable

from tests.unit.conftest import (
    CLAIM,
    ROOT,
    claim,
    missing_from,
    quantity,
    study_document,
    tolerance,
)

PAPER = load_tier(ROOT, "paper")
QUICK = load_tier(ROOT, "quick")
#: Experiments, and points of each, that the papers describe.
POINTS = {
    "liang_shen": [40, 40, 4],
    "nishitha": [20],
    "saxena": [27, 27, 27],
    "dzivhani": [20, 8],
    # The fifth pair, CUBIC and Vegas, is a prediction of section 3.6.2.
    "kapadia": [4, 5],
    # Three algorithms at four loss rates and two round trips, at three rates, and with delayed
    # acknowledgements at three loss rates.
    "rfc9438": [24, 9, 9],
}


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_each_tier_runs_the_papers_matrix_or_a_part_of_it_on_ns3(name):
    study = load_study(ROOT, name)
    runs, quick = (design_study(study, tier, ["ns3"]) for tier in (PAPER, QUICK))
    points = []
    for experiment in study.experiments:
        points.append(len({run.point for run in runs if run.experiment == experiment.id}))
    assert points == POINTS.get(name, points)
    assert {run.refusal for run in runs} == {""}
    assert len({run.scenario_id for run in runs}) == len(runs)
    known = {(run.experiment, run.point) for run in runs}
    assert {(run.experiment, run.point) for run in quick} <= known
    # The window of a published number may need more than the tier's limit.
    assert all(run.cost_s <= 1.5 for run in quick)
    again = design_study(study, QUICK, ["ns3"])
    assert [run.scenario_id for run in again] == [run.scenario_id for run in quick]
    assert list(repeat_warnings(quick)) == []


def varying(**changes):
    """A study of one experiment with three points, whose access delay is drawn by replicate."""
    tag = {"reason": "r", "source": "s", "range": [0.005, 0.05], "varies": [0.01, 0.02]}
    document = study_document(claims=[CLAIM])
    document["parameters"]["access_s"] = {"value": 0.01, "assumed": tag | changes}
    document["experiments"][0]["factors"].pop(0)
    return document


def delays(document, tier=PAPER):
    """Replicate to the access delays of its points."""
    by_replicate = {}
    for run in design_study(Study.model_validate(document), tier, ["ns3"]):
        by_replicate.setdefault(run.replicate, set()).add(run.scenario.links[0].delay_s)
    return by_replicate


def test_replicates_draw_varying_parameters_and_points_share_the_draw():
    drawn = delays(varying())
    assert len(drawn) == 5 and all(len(points) == 1 for points in drawn.values())
    values = [*itertools.chain(*drawn.values())]
    assert len(set(values)) == 5 and all(0.01 <= value <= 0.02 for value in values)
    # A draw does not depend on what else varies.
    document = varying()
    tag = {"reason": "r", "source": "s", "range": [1e5, 1e7], "varies": [1e6, 2e6]}
    document["parameters"]["bottleneck_bps"] = {"value": 1e6, "assumed": tag}
    assert delays(document) == drawn
    for wrong in ({"varies": [0.001, 0.02]}, {"range": None, "choices": [0.01]}):
        with pytest.raises(ValidationError, match="varies must be"):
            Study.model_validate(varying(**wrong))


def test_a_parameter_set_by_a_level_or_a_variation_is_not_drawn():
    document = varying()
    for level in document["experiments"][0]["factors"][0]["levels"]:
        level["set"]["access_s"] = 0.03
    assert delays(document) == {key: {0.03} for key in range(5)}
    fixed = apply(Study.model_validate(varying()), Variation(defaults={"access_s": 0.04}))
    links = {r.scenario.links[0].delay_s for r in design_study(fixed, PAPER, ["ns3"])}
    assert links == {0.04}


def test_the_most_expensive_point_decides_the_number_of_replicates():
    document = varying()
    levels = document["experiments"][0]["factors"][0]["levels"]
    for level in levels:
        level["set"]["duration_s"] = 1000.0 if level is levels[-1] else 10.0
    runs = design_study(Study.model_validate(document), PAPER, ["ns3"])
    cheap, dear = min(r.cost_s for r in runs), max(r.cost_s for r in runs)
    assert 2 * cheap < dear
    least = {"count": 40, "where_cost_below_s": (cheap + dear) / 2}
    document["experiments"][0]["replicates_at_least"] = least
    assert max(delays(document)) < 39
    least["where_cost_below_s"] = 2 * dear
    runs = design_study(Study.model_validate(document), PAPER, ["ns3"])
    assert {(run.setup, run.replicates) for run in runs} == {("defaults", 40), ("textbook", 5)}


def test_a_deterministic_point_is_run_once():
    def replicates(document, once=True):
        document["experiments"][0]["identical_runs_once"] = once
        runs = design_study(Study.model_validate(document), PAPER, ["ns3", "ns2"])
        return {(run.engine, run.replicates) for run in runs}

    assert replicates(study_document()) == {("ns3", 1), ("ns2", 5)}  # ns-2 draws its clocks
    five = {("ns3", 5), ("ns2", 5)}
    assert replicates(study_document(), once=False) == replicates(varying()) == five


@pytest.mark.parametrize("tier", [path.stem for path in (ROOT / "configs/tiers").glob("*.yaml")])
def test_each_tier_runs_every_point_at_least_five_times(tier):
    """Fewer runs that differ by chance give no verdict."""
    assert min(step.count for step in load_tier(ROOT, tier).replicates) >= 5


def test_a_point_that_costs_more_than_single_run_above_s_is_run_once():
    document = varying()
    for level in document["experiments"][0]["factors"][0]["levels"]:
        level["set"]["duration_s"] = 1000.0 if level["key"] == "fast" else 10.0
    runs = design_study(Study.model_validate(document), PAPER, ["ns3"])
    cheap, dear = (pick(NS3.nominal_cost_s(run.scenario) for run in runs) for pick in (min, max))

    def replicates(single_s):
        document["experiments"][0]["single_run_above_s"] = single_s
        runs = design_study(Study.model_validate(document), PAPER, ["ns3"])
        return {(run.levels["access"], run.replicates) for run in runs}

    assert replicates((cheap + dear) / 2) == {("slow", 5), ("mid", 5), ("fast", 1)}
    assert replicates(2 * dear) == {("slow", 5), ("mid", 5), ("fast", 5)}


def test_a_primary_only_study_runs_on_other_engines_in_the_deep_tier_alone():
    document = study_document(claims=[CLAIM], setups=["defaults"])
    study = Study.model_validate(document | {"primary_only": True})
    deep, engines = load_tier(ROOT, "deep"), ["ns3", "ns2"]
    (alone,) = engines_by_setup(study, PAPER, engines).values()
    assert alone == ["ns2"] == next(iter(engines_by_setup(study, QUICK, engines).values()))
    # Without its primary engine it runs on the first.
    assert [*engines_by_setup(study, PAPER, ["ns3", "linux"]).values()] == [["ns3"]]
    for whole in (
        engines_by_setup(study, deep, engines),
        engines_by_setup(Study.model_validate(document), PAPER, engines),
    ):
        assert [*whole.values()] == [engines]


@pytest.mark.parametrize("count", [2, 4])
def test_two_to_four_runs_are_refused(count):
    document = varying()
    document["experiments"][0]["replicates_at_least"] = {"count": count}
    with pytest.raises(InputError, match=f"{count} runs.* 5"):
        Study.model_validate(document).check_present_rules()
    for allowed in (1, 5):
        document["experiments"][0]["replicates_at_least"] = {"count": allowed}
        Study.model_validate(document).check_present_rules()


def factor(count, flagged=()):
    levels = [
        {"key": f"k{i}", "label": str(i), "set": {}, "quick": i in flagged} for i in range(count)
    ]
    return Factor.model_validate(
        {"id": "f", "label": "f", "published": {"place": "T"}, "levels": levels}
    )


def test_the_quick_tier_takes_flagged_levels_or_first_middle_and_last():
    assert [x.key for x in chosen_levels(factor(9, {2, 5}), QUICK)] == ["k2", "k5"]
    assert [x.key for x in chosen_levels(factor(9), QUICK)] == ["k0", "k4", "k8"]
    assert len(chosen_levels(factor(3), QUICK)) == 3
    assert len(chosen_levels(factor(9), PAPER)) == 9


def fake_run(i, cost_s, refusal=""):
    return Run("s", "e", {}, 0, "ns3", None, f"{i:016x}", refusal, cost_s)


COLUMN = {"metric": "throughput_bps", "tolerance": tolerance(0.1)}
ONE_RUN = {"factor": 1.5, "reason": "r"}
#: Runs of about a tenth of a second, except where more is needed.
SHORT = QUICK.model_copy(update={"cost_limit_s": 0.005})


@pytest.mark.parametrize(
    ("column", "ends_s"),
    [
        ({}, 1.0),
        ({"window_s": [3.0, 8.0]}, 8.0),
        ({"metric": "packets_dropped"}, 10.0),  # a count over part of a run is a different number
    ],
)
def test_the_quick_tier_runs_long_enough_for_published_numbers_and_counts_untestable_claims(
    world, column, ends_s
):
    late = {"kind": "value", "of": quantity() | {"window_s": [8.0, 9.0]}}
    document = world.table({"a": COLUMN | column}).model_dump(mode="json")
    document["claims"] = [claim(late | {"expect": {"at_least": 1}})]
    study = Study.model_validate(document)
    runs = design_study(study, SHORT, ["ns3", "linux"])
    assert {run.scenario.duration_s for run in runs} == {ends_s}
    cells = world.mapped(study, ("slow", "a", METRICS[(COLUMN | column)["metric"]].unit, 1.0, "1"))
    first = design_study(study, SHORT, ["ns3", "linux"], first_alone=True)
    assert len(first) == 2 * 9
    assert {run.replicates for run in first if run.engine == "ns3"} == {5}
    ns3, linux = judgeable(study, cells, first)
    is_long = ends_s > 9
    assert not missing_from(ns3, "ns3", "1 of 1 numbers", f"{int(is_long)} of 1 claims")
    assert is_long or not missing_from(ns3, "8 to 9 s", f"{ends_s:g} s")
    assert not missing_from(linux, "linux", "0 of 1 numbers", "0 of 1 claims", "linux has no")


def test_numbers_that_need_more_runs_than_the_tier_makes_are_reported(world):
    sentences = []
    for change in ({}, {"over_runs": "standard_deviation"}, {"tolerance": ONE_RUN}):
        study = world.table({"a": COLUMN | change})
        cells = world.mapped(study, ("slow", "a", "bit/s", 1.0, "1"))
        runs = design_study(study, QUICK, ["ns3"], first_alone=True)
        runs = [replace(run, replicates=2) for run in runs]
        sentences += judgeable(study, cells, runs)
    mean, deviation, of_one_run = sentences
    assert "1 of 1 numbers" in mean
    assert not missing_from(deviation, "0 of 1 numbers", "3 runs", "there are 2")
    assert not missing_from(of_one_run, "0 of 1 numbers", "99 runs", "there are 2")


def test_loss_limits_the_estimated_cost_of_reno_and_not_of_bbr():
    def crossings(control, loss=0.01):
        lost = {"kind": "random", "probability": loss} if loss else None
        flow = tcp("t", control, maximum_window_bytes=None, stop_s=10.0)
        document = dumbbell([flow], rate_bps=1e8, delay_s=0.0498, loss=lost, duration_s=10.0)
        scenario = Scenario.model_validate(document)
        return sum(crossings_by_link(scenario).values()), nominal_crossings(scenario)

    whole = crossings("newreno", 0)
    # 12.2 segments a round trip of 0.1 s (Mathis and others), and as many again to be high; each
    # crosses three links, and its acknowledgement too.
    packets = 2 * (1.5 / 0.01) ** 0.5 * 10.0 / 0.1
    assert crossings("newreno") == pytest.approx((6 * packets, 6 * packets), rel=0.01)
    assert crossings("newreno")[0] < crossings("cubic", 0.001)[0] < whole[0] == crossings("bbr")[0]
    assert crossings("bbr") == whole
    # HighSpeed's window is Reno's from 0.1 % on, and 263 segments at 0.01 % (RFC 3649).
    assert crossings("highspeed") == crossings("newreno")
    assert crossings("highspeed", 1e-4)[0] == pytest.approx(
        263 / 122.5 * crossings("newreno", 1e-4)[0], rel=0.01
    )


def test_listed_losses_are_estimated_like_random_losses_of_the_same_rate():
    def crossings(loss):
        flow = tcp("t", "newreno", maximum_window_bytes=None, stop_s=10.0)
        document = dumbbell([flow], rate_bps=1e8, delay_s=0.0498, loss=loss, duration_s=10.0)
        return sum(crossings_by_link(Scenario.model_validate(document)).values())

    listed = {
        "kind": "listed",
        "flow": "t",
        "data_packets": {"first": 100, "step": 100, "count": 9},
    }
    assert crossings(listed) == crossings({"kind": "random", "probability": 0.01})


@pytest.mark.parametrize(
    # 1040 bytes on the wire: two of them, 11.7 in the 12207 bytes of a millisecond, 7.9 in 8192.
    ("rate_bps", "offload", "merged"),
    [(1e6, True, 2), (1e8, True, 11.74), (1e8, 8192, 7.88), (1e10, True, 63.02)],
)
def test_a_merged_packet_is_estimated_as_one_crossing_and_one_acknowledgement(
    rate_bps, offload, merged
):
    flow = tcp("t", "cubic", delayed_ack_segments=2)

    def crossings(**host):
        document = dumbbell([flow], rate_bps=rate_bps, access_bps=1e11, duration_s=10.0)
        return sum(crossings_by_link(Scenario.model_validate(document | host)).values())

    merging = crossings(host={"segmentation_offload": offload})
    # Without, every second segment is acknowledged.
    assert merging * merged / 2 == pytest.approx(crossings() / 1.5, rel=0.001)


@given(costs=st.lists(st.floats(0.01, 100), min_size=1, max_size=60), target=st.floats(1, 50))
def test_batches_contain_each_scenario_once_and_cost_about_the_same(costs, target):
    runs = [fake_run(i, cost) for i, cost in enumerate(costs)]
    refused = fake_run(len(runs), 1.0, "ns3 has no such thing")
    batches = batch_runs([*runs, refused], {"ns3": "x"}, target)
    held = sorted(itertools.chain(*(batch.scenarios for batch in batches)))
    names = [b.id for b in batches]
    assert names == [b.id for b in batch_runs(runs[::-1], {"ns3": "x"}, target)]
    assert not {*names} & {b.id for b in batch_runs(runs, {"ns3": "y"}, target)}
    assert held == sorted(r.scenario_id for r in runs)
    assert max(b.cost_s for b in batches) <= sum(costs) / len(batches) + max(costs)


def warnings(engines=("ns3",), flow=None, link=None):
    document = study_document(claims=[CLAIM])
    experiment = document["experiments"][0]
    for template in experiment["flows"]:
        template.update(flow or {})
    experiment["topology"]["links"][2].update(link or {})
    study = Study.model_validate(document)
    return list(repeat_warnings(design_study(study, PAPER, list(engines))))


@pytest.mark.parametrize(
    ("flow", "link"),
    [
        ({"start_jitter_s": 0.1}, None),
        (None, {"jitter_s": 0.001}),
        (None, {"loss_ab": {"kind": "random", "probability": 0.01}}),
        (None, {"queue_ab": red(5, 15)}),
    ],
)
def test_only_replicates_without_random_draws_are_reported_as_identical(flow, link):
    assert warnings(flow=flow, link=link) == []
    # ns-2 has its own random draws.
    assert warnings(engines=["ns2"]) == []
    (warning,) = warnings()
    assert not missing_from(warning, "sweep", "9 points")


def substituting(level=None, **values):
    """Return each engine's access delay where ns-3 has a different value."""
    document = study_document(claims=[CLAIM])
    tag = {"reason": "r", "source": "s", "range": [0.005, 0.05]}
    document["parameters"]["access_s"] = {"value": 0.01, "assumed": tag}
    substitution = {"engine": "ns3", "set": values or {"access_s": 0.02}, "reason": "a test"}
    document["substitutions"] = [substitution]
    if level:
        for entry in document["experiments"][0]["factors"][0]["levels"]:
            entry["set"]["access_s"] = level
    runs = design_study(Study.model_validate(document), PAPER, ["ns3", "linux"])
    return {run.engine: run.scenario.links[0].delay_s for run in runs}


def test_a_substitution_changes_a_value_on_its_engine_alone():
    assert substituting() == {"ns3": 0.02, "linux": 0.01}
    # A level goes before it.
    assert substituting(level=0.03) == {"ns3": 0.03, "linux": 0.03}
    with pytest.raises(ValidationError, match="'acces_s'"):
        substituting(acces_s=1.0)


def test_the_fingerprint_of_an_engine_depends_on_sources_and_not_on_caches(tmp_path):
    def fingerprint(root, text, *left):
        folder = tmp_path / root / "workflow/engines/ns3"
        for name in ("src/main.cpp", *left):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return NS3.fingerprint(tmp_path / root)

    plain = fingerprint("plain", "int main() {}")
    left = (".mypy_cache/3.11/cache.db", "src/__pycache__/a.pyc")
    assert fingerprint("used", "int main() {}", *left) == plain
    assert fingerprint("changed", "int main() { }") != plain
