"""Causes planted in a tiny paper are found on real runs, and none where none is planted."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from replication.base.files import read_yaml
from replication.design.config import load_study
from replication.engines.ns3 import NS3_VERSION
from replication.explore.cause import Cause
from replication.explore.explanation import explain_study
from replication.explore.machine import Machine, whole_runs
from replication.simulate.process import Limits
from replication.simulate.runtime import Launch
from replication.study.variation import apply

ROOT = Path(__file__).parents[2]
PLANTED = Path(__file__).parent / "planted"
EXPLANATIONS = read_yaml(PLANTED / "explanations.yaml")
UNITS = {"throughput": "bit/s", "delay": "s"}
NOISE = 0.03


@pytest.fixture(scope="module")
def paper(tmp_path_factory, ns3_program):
    """Return the tiny paper's project and a runner of its scenarios; all tests share its runs."""
    folder = tmp_path_factory.mktemp("planted")
    for path in ("configs/studies/planted", "configs/explanations", "data/published"):
        (folder / path).mkdir(parents=True)
    shutil.copy(PLANTED / "study.yaml", folder / "configs/studies/planted/study.yaml")
    # With NS3_PREFIX the fingerprint of ns-3 is that of our program, compiled from these sources.
    (folder / "workflow").symlink_to(ROOT / "workflow")
    search(folder, {})
    settings = read_yaml(ROOT / "configs/sensitivity.yaml")
    settings["explanation"] |= {"permutations": 100, "paired_causes": 5, "depth": 4}
    (folder / "configs/sensitivity.yaml").write_text(yaml.safe_dump(settings))
    store, limits = str(folder / "store"), Limits(2**30, 60.0)
    launch = Launch("native", "ns3", str(ns3_program), store=store, **vars(limits))
    return folder, Machine.open(ROOT, launch)


def search(folder, changes):
    """Write the causes for the tiny paper, with changes."""
    text = yaml.safe_dump(EXPLANATIONS | changes)
    (folder / "configs/explanations/planted.yaml").write_text(text)


def printing(throughput=1.0, half_a_round_trip=False):
    """Return an interpretation of flows: a factor on total throughput, and the kind of delay."""

    def read(flows):
        rate, delay, received, rtt = (
            np.array([float(flow[column]) for flow in flows])
            for column in ("throughput_bps", "delay_mean_s", "packets_received", "rtt_mean_s")
        )
        pooled = rtt.mean() / 2 if half_a_round_trip else np.average(delay, weights=received)
        return {"throughput": throughput * rate.sum(), "delay": pooled}

    return read


AS_STATED, IN_BYTES, MEAN_OF_FLOWS = printing(), printing(1 / 8), printing(1 / 2)
HALF_A_ROUND_TRIP = printing(half_a_round_trip=True)


def explained(paper, configuration, read, noise=NOISE, seed=7):
    """Publish the results of a configuration under an interpretation; return the search's result.

    `noise` is the standard deviation of the logarithm.
    """
    folder, machine = paper
    study = load_study(folder, "planted")
    for name, level in configuration.items():
        cause = Cause.model_validate(next(c for c in EXPLANATIONS["causes"] if c["id"] == name))
        study = apply(study, cause.variation(str(level)))
    runs = whole_runs(study, "ns3", NS3_VERSION)
    machine.simulate({r.scenario_id: r.scenario for r in runs})
    random = np.random.Generator(np.random.PCG64(seed))
    lines = ["table,row,column,unit,value,printed,place"]
    for run in runs:
        ((table, row),) = run.levels.items()
        flows = machine.store.tables(run.scenario_id)["flows.csv"].decode()
        for column, value in read(list(csv.DictReader(flows.splitlines()))).items():
            printed = f"{value * np.exp(noise * random.standard_normal()):.6g}"
            lines.append(f"{table},{row},{column},{UNITS[column]},{printed},{printed},a test")
    (folder / "data/published/planted.csv").write_text("\n".join(lines) + "\n")
    out = folder / "data/reproduced/sensitivity/planted"
    explain_study(folder, "planted", out, machine)
    return json.loads((out / "explanation.json").read_text(encoding="utf-8"))


def causes(finding):
    return {cause["cause"] for cause in finding["causes"]}


@pytest.mark.parametrize(
    ("configuration", "read", "readings"),
    [
        ({"access_unit": "x8", "queue": 5, "start_gap": "4_s"}, IN_BYTES, {"bytes"}),
        ({"window": "8_kb"}, HALF_A_ROUND_TRIP, {"round_trip"}),
        ({"loss": "2_percent"}, MEAN_OF_FLOWS, {"mean"}),
        ({"access_unit": "x8", "red": "usual"}, AS_STATED, set()),
        ({}, IN_BYTES, {"bytes"}),
    ],
)
def test_planted_causes_are_found(paper, configuration, read, readings):
    finding = explained(paper, configuration, read)
    assert causes(finding) == set(configuration) | readings
    assert finding["result"] == "explanation", finding["reasons"]
    assert finding["null_p"] <= 0.05
    assert finding["held_out"]["after"] > finding["held_out"]["before"]
    assert all(cause["bits"] >= 2 for cause in finding["causes"])


@pytest.mark.parametrize("seed", [1, 2])
def test_planted_noise_is_not_explained(paper, seed):
    finding = explained(paper, {}, AS_STATED, noise=0.25, seed=seed)
    assert finding["result"] == "none found", causes(finding)


def test_the_same_search_gives_the_same_bytes(paper):
    folder = paper[0] / "data/reproduced/sensitivity/planted"

    def written():
        explained(paper, {"window": "8_kb"}, AS_STATED)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert written() == written()


def test_the_smallest_change_under_which_claims_hold_together_is_found(paper):
    held_out = {"claims": ["short_3"], "reason": "a test"}
    search(
        paper[0], {"score": "claims", "held_out": held_out, "stages": [{"levels": {"rate": {}}}]}
    )
    finding = explained(paper, {}, AS_STATED)
    search(paper[0], {})
    # Two single changes of different kinds fit, so the planted one is not identified.
    assert len(finding["causes"]) == 1
    others = set()
    for rival in finding["equally_good"]:
        others.add(tuple(cause for cause, _ in rival["causes"]))
    assert {("queue",), ("loss",)} <= others | {tuple(causes(finding))}
    assert finding["seen"]["before"] < finding["seen"]["after"]
    # The claim that was not scored holds too.
    assert (finding["held_out"]["before"], finding["held_out"]["after"]) == (0, 1)
