"""Regions on real runs: a physical law of a full link on ns-3, and a study on a modern kernel."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from replication.design.config import load_study
from replication.explore.machine import Machine
from replication.explore.named_variation import judge_variation
from replication.explore.regions.exploration import Exploration, Sampler
from replication.explore.regions.region_model import Region, Spending, load_region, load_settings
from replication.explore.regions.region_result import run_region
from replication.explore.regions.space import Space
from replication.explore.variation_model import MODERN_KERNEL
from replication.simulate.runtime import Launch

ROOT = Path(__file__).resolve().parents[2]
SPENDING = Spending(budget_factor=1.0, first_points=8, validation_points=8)


@pytest.fixture(scope="module")
def machine(tmp_path_factory, ns3_program):
    """Return the folder for the runs of all tests."""
    store = str(tmp_path_factory.mktemp("regions"))
    return Machine.open(ROOT, Launch("native", "ns3", str(ns3_program), store=store))


def reno():
    """The region of a full link, for Reno only, that requires the full link at twice the rate."""
    document = load_region(ROOT, "kapadia_buffer_for_full_link").model_dump(exclude_none=True)
    del document["panels"]
    document["axes"][1]["range"] = {"low": 0.1, "high": 0.2, "log": True}
    # RFC 6298's minimum: with 0.2 s ns-3 times out in recoveries with such a round trip.
    document["fixed"]["parameters"] |= {"bottleneck_rate_bps": 2e6, "minimum_rto_s": 1.0}
    document["own_claim"]["test"]["expect"] = {"at_least": 0.985 * 2e6}
    document |= {"laws": [], "traits": []}
    return Region.model_validate(document)


def test_reno_fills_its_link_from_a_buffer_of_about_one_bdp_on(machine):
    space = Space(reno(), load_study(ROOT, "kapadia"), "ns3")
    sampler, settings = Sampler(space, machine), load_settings(ROOT)
    exploration = Exploration("law", space.panels, sampler, settings, SPENDING, budget_s=20.0)
    exploration.run()
    (surface,) = exploration.surfaces.values()
    axis = space.region.axes[0].range
    shares = np.linspace(0, 1, 101)
    mean, _ = surface.predict(np.array([(x, 0.5) for x in shares]))
    crossing = axis.at(shares[np.argmax(mean >= 0)])
    # The sum over the sawtooth: 3/4 (1 + b)^2 / (1 + b + b^2) is 0.985 at b = 0.66 and 1 at b = 1.
    assert 0.4 < crossing < 1.8 and mean[0] < 0 < mean[-1]
    assert surface.shares().undecided < 0.4 and len(exploration.validation) > 3


def test_a_region_of_the_quick_tier_is_written_and_resumed_from_stored_runs(machine, tmp_path):
    runs = []

    def counted(scenarios):
        runs.extend(key for key in scenarios if machine.store.usage(key) is None)
        machine.simulate(scenarios)

    name, counting = "kapadia_buffer_for_full_link", replace(machine, simulate=counted)
    paths = [run_region(ROOT, name, "quick", tmp_path / part, counting) for part in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    first = json.loads(paths[0].read_text())
    made = set(itertools.chain(*(point["scenarios"] for point in first["points"])))
    assert len(runs) == len(set(runs)) == len(made)
    assert first["holds"] + first["fails"] + first["undecided"] == pytest.approx(1, abs=1e-5)
    assert first["validation_points"] == 0
    assert first["left_out"] == [["cubic"], ["vegas"], ["bbr"]]


def test_a_study_is_judged_on_the_modern_kernel(linux_program, tmp_path):
    store = str(tmp_path / "store")
    machine = Machine.open(ROOT, Launch("native", "linux", str(linux_program), store=store))
    paths = [
        judge_variation(ROOT, MODERN_KERNEL, "nishitha", "quick", tmp_path / name, machine)
        for name in "ab"
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    document = json.loads(paths[0].read_text())
    # The kernel lacks Tahoe but has Vegas, whose queue is the shortest wherever packets queue.
    ((refusal, count),) = document["refusals"].items()
    assert "'tahoe'" in refusal and count == 4
    claims = {row["claim"]: row for row in document["claims"]}
    vegas = claims["c02"]
    assert vegas["verdict"] == "reproduced" and vegas["reason"].count("80 s") == 1
    assert "1 of 4 points" in vegas["reason"]
