"""ns-2's files: their columns, their identity, and that equal input gives equal bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from engine_results import Result
from engine_scenarios import cbr, droptail, dumbbell, pfifo, red, single_link, tcp
from replication.scenario import CONGESTION_CONTROLS, Scenario

Run = Callable[..., Result]
Invoke = Callable[..., CompletedProcess[str]]
LINUX = {"sack": True, "limited_transmit": True, "timestamps": True}


def busy(seed: int = 1) -> dict[str, Any]:
    """Return a scenario that uses every source of randomness, and agents of all kinds."""
    flows = [
        tcp("t", "cubic", **LINUX),
        tcp("r", "reno"),
        tcp("v", "vegas"),
        cbr("c", 5e5, start_s=1),
    ]
    loss = {"kind": "random", "probability": 0.01}
    return dumbbell(flows, queue=red(5, 15), loss=loss, duration_s=5, seed=seed)


def contents(result: Result) -> dict[str, bytes]:
    """Return the bytes of all files of a run."""
    return {path.name: path.read_bytes() for path in sorted(result.directory.iterdir())}


def test_same_scenario_same_bytes(run_ns2: Run, tmp_path: Path) -> None:
    first = contents(run_ns2(busy()))
    elsewhere = os.environ | {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    second = contents(run_ns2(busy(), cwd=tmp_path, env=elsewhere))
    assert sorted(first) == ["flows.csv", "run.json", "series.csv"]
    assert first == second


def test_same_bytes_in_parallel(run_ns2: Run) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: contents(run_ns2(busy())), range(4)))
    assert all(result == results[0] for result in results)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_same_bytes_for_another_user_in_another_folder(
    run_ns2: Run, ns2_program: Path, tmp_path: Path
) -> None:
    expected = contents(run_ns2(busy()))
    # A copy with the system's own Python, in a folder that anybody may read.
    home = Path("/tmp") / f"ns2 of nobody {os.getpid()}"
    home.mkdir(mode=0o777)
    try:
        shutil.copytree(ns2_program.parent / "program", home / "program")
        (home / "s.json").write_text(json.dumps(busy()))
        home.chmod(0o777)
        python = shutil.which("python3", path="/usr/bin:/bin")
        if python is None:
            pytest.fail("no python3 in /usr/bin, which another user could run")
        subprocess.run(
            [python, "-I", "-S", "-B", "program", "--scenario", "s.json", "--output", "out"],
            cwd=home,
            user=65534,
            group=65534,
            extra_groups=[],
            env={"PATH": "/usr/bin:/bin"},
            check=True,
        )
        found = {path.name: path.read_bytes() for path in sorted((home / "out").iterdir())}
    finally:
        shutil.rmtree(home)
    assert found == expected


def test_the_seed_matters_where_there_is_chance(run_ns2: Run) -> None:
    texts = [contents(run_ns2(busy(seed)))["series.csv"] for seed in (1, 2)]
    assert texts[0] != texts[1]


def test_the_seed_does_not_matter_where_there_is_none(run_ns2: Run) -> None:
    # ns-2 draws the phase of each sender's clock, which timers without a timeout never show.
    flows = [tcp("t", "newreno", sack=True), cbr("c", 5e5)]
    texts = [
        contents(run_ns2(dumbbell(flows, queue=droptail(30), seed=seed)))["series.csv"]
        for seed in (1, 2)
    ]
    assert texts[0] == texts[1]


def test_flows_columns_and_order(run_ns2: Run) -> None:
    result = run_ns2(busy())
    head = (result.directory / "flows.csv").read_text().splitlines()[0]
    assert head == (
        "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
        "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
        "delivery_ratio"
    )
    assert list(result.flows) == ["t", "r", "v", "c"]
    assert [row["kind"] for row in result.flows.values()] == ["tcp", "tcp", "tcp", "cbr"]
    assert result.flows["c"]["rtt_mean_s"] == ""


def test_series_rows_and_times(run_ns2: Run) -> None:
    result = run_ns2(busy())
    head = (result.directory / "series.csv").read_text().splitlines()[0]
    assert head == (
        "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
        "drops,retransmissions"
    )
    rows = [(row["time_s"], row["flow"], row["link"]) for row in result.series]
    times = [str(k / 10).removesuffix(".0") for k in range(1, 51)]
    who = [("t", ""), ("r", ""), ("v", ""), ("c", ""), ("", "bottleneck:ab")]
    assert rows == [(time, *one) for time in times for one in who]


def test_an_interval_that_does_not_divide_the_duration(run_ns2: Run) -> None:
    scenario = single_link([cbr("c", 1e5)], duration_s=1, sampling_interval_s=0.3)
    assert {row["time_s"] for row in run_ns2(scenario).series} == {"0.3", "0.6", "0.9"}


def test_throughput_of_series_adds_up_to_flows(run_ns2: Run) -> None:
    result = run_ns2(busy())
    for flow in ("t", "r", "v"):
        total = sum(result.samples("throughput_bps", flow=flow)) * 0.1
        assert total == pytest.approx(result.number(flow, "throughput_bps") * 5, rel=1e-9)
        assert result.number(flow, "goodput_bps") < result.number(flow, "throughput_bps")


def test_ssthresh_is_empty_while_infinite(run_ns2: Run) -> None:
    result = run_ns2(single_link([tcp("t", "newreno", maximum_window_bytes=5000)], duration_s=2))
    assert {row["ssthresh_bytes"] for row in result.series if row["flow"]} == {""}


def test_nothing_received_leaves_fields_empty(run_ns2: Run) -> None:
    loss = {"kind": "random", "probability": 1}
    result = run_ns2(single_link([cbr("c", 1e5), tcp("t", "newreno")], duration_s=2, loss=loss))
    assert result.flows["c"]["delay_mean_s"] == result.flows["c"]["delay_p95_s"] == ""
    assert result.flows["c"]["delivery_ratio"] == "0"
    assert result.flows["t"]["loss_rate"] == ""  # the handshake never completed
    assert result.run["control_packets_dropped"] > 0


def test_queues_hold_their_limit_and_no_more(run_ns2: Run) -> None:
    # The packet being transmitted is in no queue, and ns-2's own off-by-one is made up for.
    flow = cbr("c", 4e6)
    for queue, limit in (
        (droptail(25), 25),
        ({"kind": "droptail", "limit_bytes": 25000}, 25),
        ({"kind": "droptail", "limit_bytes": 25999}, 25),
        ({"kind": "droptail", "limit_bytes": 24999}, 24),
        (pfifo(25), 26),
        (pfifo(25) | {"device_queue_packets": 100}, 125),
        (red(100, 150) | {"limit_packets": 25}, 25),
    ):
        result = run_ns2(single_link([flow], rate_bps=2e6, duration_s=3, queue=queue))
        assert max(result.samples("queue_packets", link="wire:ab")) == limit


def test_red_holds_the_average_between_its_thresholds(run_ns2: Run) -> None:
    flows = [tcp(f"t{i}", "newreno", sack=True, start_s=i * 0.05) for i in range(4)]
    for byte_mode in (False, True):
        queue = red(10, 30) | {"byte_mode": byte_mode}
        scenario = single_link(flows, rate_bps=1e7, duration_s=30, queue=queue)
        waiting = run_ns2(scenario).samples("queue_packets", link="wire:ab", after_s=5)
        assert 10 < sum(waiting) / len(waiting) < 30
        assert max(waiting) < 150  # the hard limit of 200 is never reached


def losses_by_size(run: Run, byte_mode: bool) -> float:
    """Return the loss rate of 1000-byte packets over that of 250-byte ones under RED."""
    flows = [cbr("large", 6e6, packet_bytes=1000), cbr("small", 6e6, packet_bytes=250)]
    queue = red(10, 30) | {"byte_mode": byte_mode}
    result = run(single_link(flows, rate_bps=1e7, delay_s=0.01, duration_s=30, queue=queue))
    return result.number("large", "loss_rate") / result.number("small", "loss_rate")


def test_red_in_byte_mode_drops_in_proportion_to_size(run_ns2: Run) -> None:
    # As for ns-3: p is scaled by size over mean size, here 4 to 1.
    assert losses_by_size(run_ns2, byte_mode=True) > 2
    assert 0.8 < losses_by_size(run_ns2, byte_mode=False) < 1.25


def test_run_json_states_scenario_agents_and_traits(run_ns2: Run) -> None:
    scenario = Scenario.model_validate(busy() | {"seed": 7})
    document = scenario.model_dump(mode="json")
    document["flows"][2]["limited_transmit"] = True
    scenario = Scenario.model_validate(document)
    result = run_ns2(document)
    assert result.run["engine"] == "ns2"
    assert result.run["version"] == "2.35"
    assert result.run["scenario"] == scenario.id
    assert result.run["agents"] == {
        "t": "Agent/TCP/Linux cubic",
        "r": "Agent/TCP/Reno",
        "v": "Agent/TCP/Vegas",
    }
    assert "Agent/TCP/Vegas has no limited transmit" in result.run["traits"]
    text = (result.directory / "run.json").read_text()
    assert str(result.directory) not in text


def test_supports_covers_the_model(invoke_ns2: Invoke) -> None:
    supports = json.loads(invoke_ns2("--supports").stdout)
    named = set(supports["congestion_controls"]) | set(supports["refused"])
    assert named == set(CONGESTION_CONTROLS)
    assert supports["queues"] == ["droptail", "pfifo", "red"]


@pytest.mark.parametrize("control", CONGESTION_CONTROLS)
def test_every_supported_congestion_control_runs(
    run_ns2: Run, invoke_ns2: Invoke, control: str
) -> None:
    supports = json.loads(invoke_ns2("--supports").stdout)
    if control in supports["refused"]:
        assert control in ("westwood", "dctcp", "bbr", "ledbat", "lp")
        return
    native = control in ("tahoe", "reno", "newreno", "vegas")
    flow = tcp("t", control, **({} if native else LINUX))
    result = run_ns2(dumbbell([flow], queue=droptail(20)))
    assert result.number("t", "goodput_bps") > 0.4 * 2e6


def test_version_is_one_line(invoke_ns2: Invoke) -> None:
    done = invoke_ns2("--version")
    assert done.stdout == "ns2 2.35\n"
    assert invoke_ns2("--help").stdout.startswith("usage: replicate-ns2")
