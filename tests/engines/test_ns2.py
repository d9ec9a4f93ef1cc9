"""Checks for ns-2 only: when a monitor counts, and a lost SYN."""

import pytest

from tests.engines.engine_bench import write_input
from tests.engines.engine_scenarios import cbr, droptail, listed, single_link, tcp


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
