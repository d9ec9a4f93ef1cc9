"""Hosts: a default one changes nothing; any other is a part of the scenario, or refused by name."""

import json
from pathlib import Path

import pytest
from replication.design.config import load_study, load_tier
from replication.design.design import design_study, write_design
from replication.design.plan import Plan, plan_study
from replication.engines.catalogue import LINUX, NS2, NS3
from replication.simulate.store import Store
from replication.study.scenario import Scenario

from tests.unit.test_scenario import minimal_scenario

ROOT = Path(__file__).parents[2]
QUICK = load_tier(ROOT, "quick")
#: Ids of designed scenarios, taken before scenarios could have a host, and what their ledgers held
#: then. The other studies' ledgers have grown since.
PINNED = {
    "liang_shen": {"02588a6230bdb670", "09f5e6faf84eca5c"},
    "nishitha": {"09348ee35bbafd62", "12dcf844e6429ab4"},
    "saxena": {"05f5bef944ee3c56", "0632d6299c57827c"},
}
OTHER = [
    {"segmentation_offload": True},
    {"timer_hz": 1000},
    {"segmentation_offload": True, "timer_hz": 100},
]


def scenario(**changes):
    """Return a small scenario."""
    return Scenario.model_validate(minimal_scenario() | changes)


THEN = {"liang_shen": {"queue_packets": 50}, "nishitha": {"queue_packets": 50}}


def study_with(name, **values):
    """Return a study with other defaults in its ledger."""
    study = load_study(ROOT, name)
    parameters = {
        name: parameter.model_copy(update={"value": values.get(name, parameter.value)})
        for name, parameter in study.parameters.items()
    }
    return study.model_copy(update={"parameters": parameters})


@pytest.mark.parametrize("name", sorted(PINNED))
def test_ids_are_those_of_before_there_were_hosts(name):
    runs = design_study(study_with(name, **THEN.get(name, {})), QUICK, ["ns3"])
    assert PINNED[name] <= {run.scenario_id for run in runs}


@pytest.mark.parametrize(
    "host", [None, {}, {"timer_hz": 250}, {"segmentation_offload": False, "timer_hz": 250}]
)
def test_a_default_host_is_no_host(host):
    given = scenario(host=host)
    assert given == scenario()
    assert given.id == scenario().id
    assert "host" not in given.model_dump()
    assert "host" not in json.loads(given.model_dump_json())


@pytest.mark.parametrize("host", OTHER)
def test_any_other_host_is_part_of_the_identity(host):
    given = scenario(host=host)
    assert given.id != scenario().id
    again = Scenario.model_validate(json.loads(given.canonical_json()))
    assert again == given and again.host_settings() == host


@pytest.mark.parametrize("engine", [NS3, NS2], ids=["ns3", "ns2"])
@pytest.mark.parametrize("host", OTHER)
def test_engines_without_a_kernel_refuse_what_is_not_default(engine, host):
    assert (
        engine.refusal(scenario(host=host))
        == f"{engine.name} has no host setting {next(iter(host))!r}"
    )
    assert engine.refusal(scenario(host={"timer_hz": 250})) == ""


def plan_of(runs):
    return Plan("", {}, 1.0, {"kapadia": plan_study(runs, [])})


def test_a_study_sets_the_host_by_its_ledger(tmp_path):
    changed = study_with("kapadia", segmentation_offload=True, timer_hz=1000)
    runs = design_study(changed, QUICK, ["linux"])
    assert {run.scenario.host.segmentation_offload for run in runs} == {True}
    # On ns-3 the study puts a host without offload in its place, and says so.
    (plain,) = (s for s in changed.substitutions if s.engine == "ns3")
    on_ns3 = design_study(changed, QUICK, ["ns3"])
    assert plain.set["segmentation_offload"] is False
    assert {run.refusal for run in on_ns3} == {"ns3 has no host setting 'timer_hz'"}
    # What is written for the simulators is what the id stands for.
    write_design(runs, [], "kapadia", tmp_path)
    written = json.loads((tmp_path / "scenarios" / "kapadia.json").read_text())
    assert {Scenario.model_validate(s).id for s in written.values()} == set(written)
    fast = study_with(
        "kapadia", segmentation_offload=True, timer_hz=1000, clock_granularity_s=0.001
    )
    run = design_study(fast, QUICK, ["linux"])[0]
    work = Store(tmp_path / "store").begin(run.scenario_id, run.scenario, LINUX)
    assert "\nhost segmentation_offload 1 timer_hz 1000\n" in (work / "plan.txt").read_text()


def test_the_kernels_that_a_plan_needs_are_known():
    fast = {"timer_hz": 1000, "clock_granularity_s": 0.001}
    runs = design_study(study_with("kapadia", **fast), QUICK, ["linux"])
    assert {run.refusal for run in runs} == {""}
    assert plan_of(runs).timer_hz() == [250, 1000]
    default = design_study(study_with("kapadia"), QUICK, ["linux"])
    assert plan_of(default).timer_hz() == [250]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"timer_hz": 1000}, "clock granularity other than 0.001 s"),
        ({"clock_granularity_s": 0.001}, "clock granularity other than 0.004 s"),
        (
            {"timer_hz": 300, "clock_granularity_s": 1 / 300, "minimum_rto_s": 0.204},
            "minimum RTO that is not a multiple of 0.01 s",
        ),
    ],
)
def test_linux_refuses_timers_that_do_not_fit_its_ticks(values, word):
    for run in design_study(study_with("kapadia", **values), QUICK, ["linux"]):
        assert word in run.refusal
