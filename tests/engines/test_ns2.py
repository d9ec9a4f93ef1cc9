"""What only ns-2 has to show: when a monitor counts, a SYN that is lost, a broken simulator."""

import os

import pytest

from tests.engines.engine_bench import write_plan
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
    plan = write_plan(tmp_path, "ns2", scenario)
    done = ns2.invoke("--plan", plan, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert "link wire" in done.stderr and "SYN" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("script", "code", "word"),
    [
        ("", 2, "package ns2"),
        ("exit 7", 3, "7"),
        ("exit 0", 3, "before the end"),
    ],
)
def test_a_missing_or_broken_simulator_is_named(ns2, tmp_path, script, code, word):
    if script:
        (tmp_path / "ns").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ns").chmod(0o755)
    plan = write_plan(tmp_path, "ns2", single_link([cbr("c", 1e5)], duration_s=1))
    path = f"{tmp_path}:{os.defpath}" if script else str(tmp_path)
    done = ns2.invoke("--plan", plan, "--output", tmp_path / "out", env={"PATH": path})
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert word in done.stderr
    assert not list(tmp_path.glob("out/*"))
