"""Checks for ns-2 only: its agents, when a monitor counts, and a SYN sent again."""

import itertools
import re

import pytest
from measurements.bench import write_input
from measurements.scenarios import SEGMENT, cbr, droptail, listed, single_link, tcp
from replication.engines.catalogue import ENGINES
from replication.study.scenario import CONGESTION_CONTROLS, Scenario

from tests.workflow.project import ROOT


def test_throughput_of_a_monitor_ends_with_the_transmission(ns2):
    # One packet of 80 ms each 100 ms, from 0.05 s: what is being sent at a sample does not count
    # yet, and the propagation of half a second plays no role.
    flow = cbr("c", 8e4, start_s=0.05)
    result = ns2.run(single_link([flow], rate_bps=1e5, delay_s=0.5, duration_s=1))
    rates = result.samples("throughput_bps", link="wire:ab")
    assert rates == pytest.approx([0] + [8e4] * 9)


def test_listed_losses_need_the_syn_to_pass(ns2, tmp_path):
    # The SYN is dropped by a queue of one packet that a CBR flow keeps full for a while.
    flows = [cbr("c", 4e6, stop_s=0.5), tcp("t", "reno", start_s=0.1)]
    scenario = single_link(flows, rate_bps=1e6, duration_s=20, queue=droptail(1), loss=listed(1))
    given = write_input(tmp_path, "ns2", scenario)
    done = ns2.invoke("--input", given, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert "link wire" in done.stderr and "SYN" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("late", [False, True])
def test_a_syn_that_is_sent_again_is_a_timeout_with_its_consequences(ns2, late):
    # The round trip is 0.1 ms shorter than the SYN's timer, or longer.
    flow = tcp("t", "newreno", initial_rto_s=1, start_s=0.25)
    delay_s = 0.50005 if late else 0.49995 - 2 * 40 * 8 / 1e7
    scenario = single_link([flow], rate_bps=1e7, delay_s=delay_s, duration_s=8)
    result = ns2.run(scenario, trace=True)
    timeouts = [(event.time_s, event.ssthresh) for event in result.events("timeout")]
    assert timeouts == ([(1.25, 2 * SEGMENT)] if late else [])
    assert result.number("t", "timeouts") == len(timeouts)
    assert any("SYN" in trait for trait in result.run["traits"]) == late
    # Slow start doubles the window in each of the six round trips after that of the SYN.
    assert (max(result.samples("cwnd_bytes", flow="t")) >= 2**6 * SEGMENT) != late


def test_the_readme_names_the_agent_of_each_flow(ns2):
    readme = (ROOT / "workflow/engines/ns2/README.md").read_text()
    text = readme.partition("## TCP agents\n")[2].partition("\n\n-")[0]
    stated = {}
    for names, cell in re.findall(r"^\| (`.*) \| (Agent.*) \|$", text, re.MULTILINE):
        sacks = {"without, with SACK": (False, True), " with SACK": (True,)}
        sack = next((value for words, value in sacks.items() if words in names), (False,))
        flows = list(itertools.product(re.findall(r"`(\w+)`", names), sack))
        agents = re.findall(r"Agent/[\w/]+", cell)
        stated |= dict(zip(flows, agents * (len(flows) // len(agents)), strict=True))
    flows = {}
    for control, sack in itertools.product(CONGESTION_CONTROLS, (False, True)):
        flow = ns2.tcp(f"f{len(flows)}", control, sack=sack)
        if not ENGINES["ns2"].refusal(Scenario.model_validate(single_link([flow]))):
            flows[control, sack] = flow
    agents = ns2.run(single_link(list(flows.values()), duration_s=0.1)).run["agents"]
    assert stated == {key: agents[flow["id"]].split()[0] for key, flow in flows.items()}
