"""Hosts: a default one changes nothing; any other is a part of the scenario, or refused by name."""

import json

import pytest
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from replication.engines.catalogue import LINUX, NS2, NS3
from replication.engines.lowering import lower
from replication.study.scenario import Scenario

from tests.unit.conftest import ROOT, minimal_scenario

QUICK = load_tier(ROOT, "quick")
#: Ids of designed scenarios, taken before scenarios could have a host, and what the assumption
#: tables held then. The other studies' tables have grown since.
PINNED = {
    "liang_shen": ({"queue_packets": 50}, {"02588a6230bdb670", "09f5e6faf84eca5c"}),
    "nishitha": ({"queue_packets": 50}, {"09348ee35bbafd62", "12dcf844e6429ab4"}),
    "saxena": ({}, {"05f5bef944ee3c56", "0632d6299c57827c"}),
}
FAST = {"timer_hz": 1000, "clock_granularity_s": 0.001}


def scenario(**changes):
    """Return a small scenario."""
    return Scenario.model_validate(minimal_scenario() | changes)


def designed(name, engine, **values):
    """Return a study's runs on an engine with other defaults."""
    study = load_study(ROOT, name)
    parameters = {
        key: parameter.model_copy(update={"value": values.get(key, parameter.value)})
        for key, parameter in study.parameters.items()
    }
    return design_study(study.model_copy(update={"parameters": parameters}), QUICK, [engine])


@pytest.mark.parametrize("name", PINNED)
def test_ids_are_those_of_before_there_were_hosts(name):
    values, ids = PINNED[name]
    assert ids <= {run.scenario_id for run in designed(name, "ns3", **values)}


@pytest.mark.parametrize("host", [None, {}, {"segmentation_offload": False, "timer_hz": 250}])
def test_a_default_host_is_no_host(host):
    given = scenario(host=host)
    assert (given, given.id) == (scenario(), scenario().id)
    assert "host" not in json.loads(given.model_dump_json())
    assert NS3.refusal(given) == NS2.refusal(given) == ""


def test_any_other_host_is_part_of_the_identity_and_refused_without_a_kernel():
    host = {"segmentation_offload": True, "timer_hz": 100}
    given = scenario(host=host)
    assert given.id != scenario().id
    again = Scenario.model_validate(json.loads(given.canonical_json()))
    assert again == given and again.host_settings() == host
    for engine in (NS3, NS2):
        assert engine.refusal(given) == f"{engine.name} has no host setting 'segmentation_offload'"


def test_a_study_sets_the_host_by_its_assumptions():
    changes = {"segmentation_offload": True, **FAST}
    runs = designed("kapadia", "linux", **changes)
    assert {run.scenario.host.segmentation_offload for run in runs} == {True}
    # On ns-3 the study puts a host without offload in its place, and says so.
    on_ns3 = designed("kapadia", "ns3", **changes)
    assert {run.refusal for run in on_ns3} == {"ns3 has no host setting 'timer_hz'"}
    assert "\nhost segmentation_offload 1 timer_hz 1000\n" in lower(runs[0].scenario, LINUX)


def test_linux_refuses_timers_that_do_not_fit_its_ticks():
    runs = designed("kapadia", "linux", timer_hz=1000)
    assert all("clock granularity other than 0.001 s" in run.refusal for run in runs)
