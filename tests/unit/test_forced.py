"""Verdicts that the set-up forces: the checks catch planted claims, and leave others alone.

Each check is perturbed too, and then misses or adds some.
"""

import functools
from pathlib import Path

import pytest
from replication.base.files import read_yaml
from replication.design.config import load_study_of
from replication.metrics.results import Results
from replication.report.release import released_results
from replication.study.claim_model import SIDES, sides
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts import bounds_check, claim, metric_range, null_check
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

from tests.unit.conftest import ROOT, SEGMENT_BYTES, sampled, study_document

CLAIMS = read_yaml(Path(__file__).parent / "planted_forced.yaml")["claims"]
PLANTED = {planted["id"]: planted for planted in CLAIMS}
PLACES = ["slow", "mid", "fast"]
OUTCOMES = {
    "cannot fail": (Verdict.NOT_TESTABLE, ReasonCode.SETUP_FORCES_IT),
    "cannot hold": (Verdict.NOT_TESTABLE, ReasonCode.SETUP_FORCES_IT),
    "impossible": (Verdict.IMPOSSIBLE, ""),
    "reproduced": (Verdict.REPRODUCED, ""),
}


def planted_experiment(planted):
    """Return the synthetic experiment with the network of a planted claim."""
    (experiment,) = study_document()["experiments"]
    first, second = experiment["flows"]
    window = planted.get("window")
    for flow in (first, second):
        flow["maximum_window_bytes"] = window and window * SEGMENT_BYTES
    if "queue" in planted:
        for link in experiment["topology"]["links"]:
            link |= {"queue_ab": planted["queue"], "queue_ba": planted["queue"]}
    if rate_bps := planted.get("cbr_bps"):
        ends = {key: second[key] for key in ("id", "source", "destination", "start_s", "stop_s")}
        experiment["flows"][1] = {"kind": "cbr", "rate_bps": rate_bps, "packet_bytes": 250, **ends}
    if "delays_s" in planted:
        levels = experiment["factors"][1]["levels"]
        for level, delay_s in zip(levels, planted["delays_s"], strict=True):
            level["set"]["access_s"] = delay_s
    if planted.get("alone"):
        del experiment["flows"][1]
    if planted.get("pair"):
        second["congestion_control"] = "$second"
        levels = []
        pairs = {"reno": ("reno", "reno"), "vegas": ("vegas", "vegas"), "mixed": ("reno", "vegas")}
        for name, (leading, other) in pairs.items():
            values = {"congestion_control": leading, "second": other}
            levels.append({"key": name, "label": name, "set": values})
        experiment["factors"][0]["levels"] = levels
    return experiment


def judge(world, planted):
    """Return the row of a planted claim."""
    document = study_document()
    parameters = document["parameters"]
    parameters["duration_s"]["value"] = float(planted.get("long_s", 10))
    if planted.get("pair"):
        parameters["second"] = {**parameters["congestion_control"]}
    experiment = planted_experiment(planted)
    study = world.claim(planted["test"], experiments=[experiment], parameters=parameters)
    compared = [planted["test"].get(side) for side in SIDES]
    metric = next(side["metric"] for side in compared if side)

    def flows(variant, flow, access, **_):
        value = planted["values"].get(variant, {}).get(flow, 100.0)
        if isinstance(value, list):
            value = value[PLACES.index(access)]
        return {"packets_dropped": 0, metric: float(value)}

    def series(flow, **_):
        if flow == "bottleneck:ab":
            return [{"time_s": n + 1.0, "queue_packets": 5.0} for n in range(10)]
        return sampled([1.0] * 10)

    return world.judge(study, flows=flows, series=series)


def outcome(row):
    return row.verdict, row.reason_code


@pytest.mark.parametrize("name", PLANTED)
def test_planted_claims_are_recognised_as_forced_by_the_setup_or_not(world, name):
    planted = PLANTED[name]
    row = judge(world, planted)
    assert outcome(row) == OUTCOMES[planted["outcome"]], row.reason
    assert planted.get("says", "") in row.reason
    if planted["outcome"].startswith("cannot"):
        assert planted["outcome"] in row.reason


#: What a check does, in its place something else, and planted claims whose outcome must change.
PERTURBED = {
    "no null check": (claim, "null_check", lambda *_: "", ["largest-over-smallest", "all-alike"]),
    "equality never counts": (
        null_check, "meets_equality", lambda _: False,
        ["two-alike-and-one-not", "not-below-since-above"],
    ),
    "equality always counts": (
        null_check, "meets_equality", lambda _: True,
        ["largest-over-smallest", "crossing-of-one-variant"],
    ),
    "variants are not told apart": (
        null_check, "_variants", lambda *_: {("one",)},
        ["first-flow-wins-everywhere", "every-pair-alike"],
    ),
    "no bounds check": (
        claim, "bounds_check", lambda *_: None,
        ["no-loss-that-could-be", "cbr-above-a-small-window", "more-than-the-link"],
    ),
    "runs never leave a range": (
        bounds_check, "is_left", lambda *_: False, ["a-run-beyond-its-bound"],
    ),
    "a condition is met nowhere": (
        bounds_check, "_excludes", lambda *_: True, ["a-delay-of-the-path"],
    ),
    "a condition is met everywhere": (
        bounds_check, "_contains", lambda *_: True, ["a-delay-of-the-path", "unfair-by-choice"],
    ),
    "a window has no size": (
        metric_range, "_window_segments", lambda _: float("inf"),
        ["no-loss-that-could-be", "cbr-above-a-small-window", "unfair-by-the-window"],
    ),
    "every queue drops only when full": (
        metric_range, "Pfifo", object, ["no-loss-behind-red"],
    ),
    "no queue drops only when full": (metric_range, "DropTail", int, ["no-loss-that-could-be"]),
    "every algorithm fills its window": (
        metric_range, "LOSS_BASED", {"reno", "vegas"}, ["a-window-that-vegas-need-not-fill"],
    ),
    "every order is known": (
        bounds_check, "_is_ordered", lambda *_: True, ["slower-over-hardly-longer-paths"],
    ),
    "no order is known": (
        bounds_check, "_is_ordered", lambda *_: False, ["slower-over-longer-paths"],
    ),
    "Jain's index is any": (
        metric_range, "_fairest", lambda _: 1.0, ["unfair-by-the-window"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", PERTURBED)
def test_perturbing_a_check_changes_the_outcome_of_planted_claims(world, monkeypatch, change):
    module, attribute, replacement, names = PERTURBED[change]
    monkeypatch.setattr(module, attribute, replacement)
    for name in names:
        assert outcome(judge(world, PLANTED[name])) != OUTCOMES[PLANTED[name]["outcome"]], name


# -- the release ----------------------------------------------------------------------------------


@functools.cache
def released(name):
    """Return a study of the release and the coverage of its runs on ns-3."""
    data = released_results(ROOT)
    study = load_study_of(ROOT, data, name)
    return study, Coverage(study, Results.load(data, name), "ns3")


@pytest.mark.parametrize(
    ("name", "known"), [("liang_shen", {"c10", "c21", "c26", "c27"}), ("nishitha", {"c03"})]
)
def test_released_claims_forced_by_the_setup_are_the_known_ones(name, known):
    """Windows of 20 packets leave the link idle beside the CBR flow, and lose nothing."""
    study, coverage = released(name)
    claims = [stated for stated in study.claims if stated.id in known | {"c02"}]
    rows = []
    for stated in claims:
        rows += evaluate_claim(stated, [coverage])
    forced = {row.claim for row in rows if row.reason_code == ReasonCode.SETUP_FORCES_IT}
    assert forced == known


@pytest.mark.parametrize("name", ["liang_shen", "nishitha"])
def test_every_released_run_lies_within_the_bounds_of_its_scenario(name):
    study, coverage = released(name)
    left = []
    for stated in study.claims:
        for test in stated.tests():
            compared = [wanted for wanted in sides(test) if wanted.metric in metric_range.BOUNDED]
            allowed = [bounds_check.allowed_at(coverage, wanted) for wanted in compared]
            if bounds_check.is_left(coverage, compared, allowed):
                left.append(stated.id)
    assert not left
