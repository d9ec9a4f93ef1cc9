"""The files: their columns, their identity, and that equal input gives equal bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, get_args

import pytest
from engine_results import Result
from engine_scenarios import cbr, codel, dumbbell, pie, red, single_link, tcp
from replication.scenario import CONGESTION_CONTROLS, DropTail, Queue, Scenario

Run = Callable[..., Result]
Invoke = Callable[..., CompletedProcess[str]]


def busy(seed: int = 1) -> dict[str, Any]:
    """Return a scenario that uses every source of randomness."""
    flows = [tcp("t", "bbr", sack=True), tcp("r", "reno"), cbr("c", 5e5, start_s=1)]
    loss = {"kind": "random", "probability": 0.01}
    return dumbbell(flows, queue=red(5, 15), loss=loss, duration_s=5, seed=seed)


def contents(result: Result) -> dict[str, bytes]:
    """Return the bytes of all files of a run."""
    return {path.name: path.read_bytes() for path in sorted(result.directory.iterdir())}


def test_same_scenario_same_bytes(run_ns3: Run, tmp_path: Path) -> None:
    first = contents(run_ns3(busy()))
    elsewhere = os.environ | {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    second = contents(run_ns3(busy(), cwd=tmp_path, env=elsewhere))
    assert sorted(first) == ["flows.csv", "run.json", "series.csv"]
    assert first == second


@pytest.mark.parametrize("queue", [red(5, 15), pie()], ids=["red", "pie"])
def test_the_seed_matters_where_there_is_chance(run_ns3: Run, queue: dict[str, Any]) -> None:
    texts = []
    for seed in (1, 2):
        scenario = dumbbell([tcp("t", "cubic", sack=True)], queue=queue, seed=seed)
        texts.append(contents(run_ns3(scenario))["series.csv"])
    assert texts[0] != texts[1]


def test_the_seed_does_not_matter_where_there_is_none(run_ns3: Run) -> None:
    texts = []
    for seed in (1, 2):
        scenario = dumbbell([tcp("t", "cubic", sack=True)], queue=codel(), seed=seed)
        texts.append(contents(run_ns3(scenario))["series.csv"])
    assert texts[0] == texts[1]


def test_flows_columns_and_order(run_ns3: Run) -> None:
    result = run_ns3(busy())
    head = (result.directory / "flows.csv").read_text().splitlines()[0]
    assert head == (
        "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
        "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
        "delivery_ratio"
    )
    assert list(result.flows) == ["t", "r", "c"]
    assert [row["kind"] for row in result.flows.values()] == ["tcp", "tcp", "cbr"]
    assert result.flows["c"]["rtt_mean_s"] == ""


def test_series_rows_and_times(run_ns3: Run) -> None:
    result = run_ns3(busy())
    head = (result.directory / "series.csv").read_text().splitlines()[0]
    assert head == (
        "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
        "drops,retransmissions"
    )
    rows = [(row["time_s"], row["flow"], row["link"]) for row in result.series]
    times = [str(k / 10).removesuffix(".0") for k in range(1, 51)]
    who = [("t", ""), ("r", ""), ("c", ""), ("", "bottleneck:ab")]
    assert rows == [(time, *one) for time in times for one in who]


def test_an_interval_that_does_not_divide_the_duration(run_ns3: Run) -> None:
    scenario = single_link([cbr("c", 1e5)], duration_s=1, sampling_interval_s=0.3)
    assert {row["time_s"] for row in run_ns3(scenario).series} == {"0.3", "0.6", "0.9"}


def test_throughput_of_series_adds_up_to_flows(run_ns3: Run) -> None:
    result = run_ns3(busy())
    for flow in ("t", "r"):
        total = sum(result.samples("throughput_bps", flow=flow)) * 0.1
        assert total == pytest.approx(result.number(flow, "throughput_bps") * 5, rel=1e-9)


def test_ssthresh_is_empty_while_infinite(run_ns3: Run) -> None:
    result = run_ns3(single_link([tcp("t", "newreno", maximum_window_bytes=5000)], duration_s=2))
    assert {row["ssthresh_bytes"] for row in result.series if row["flow"]} == {""}


def test_nothing_received_leaves_fields_empty(run_ns3: Run) -> None:
    loss = {"kind": "random", "probability": 1}
    result = run_ns3(single_link([cbr("c", 1e5), tcp("t", "newreno")], duration_s=2, loss=loss))
    assert result.flows["c"]["delay_mean_s"] == result.flows["c"]["delay_p95_s"] == ""
    assert result.flows["c"]["delivery_ratio"] == "0"
    assert result.flows["t"]["loss_rate"] == ""  # the handshake never completed
    assert result.run["control_packets_dropped"] > 0


def test_run_json_states_the_scenario_and_no_machine(run_ns3: Run, tmp_path: Path) -> None:
    scenario = Scenario.model_validate(busy())
    result = run_ns3(scenario.model_dump(mode="json"))
    assert result.run["engine"] == "ns3"
    assert result.run["version"] == "3.44"
    assert result.run["scenario"] == scenario.id
    assert result.run["events"] > 0
    text = (result.directory / "run.json").read_text()
    assert str(result.directory) not in text


def test_supports_covers_the_model(invoke_ns3: Invoke) -> None:
    supports = json.loads(invoke_ns3("--supports").stdout)
    named = set(supports["congestion_controls"]) | set(supports["refused"])
    assert named == set(CONGESTION_CONTROLS)
    kinds = {get_args(kind)[0] if get_args(kind) else kind for kind in get_args(get_args(Queue)[0])}
    assert DropTail in kinds
    assert set(supports["queues"]) == {kind.model_fields["kind"].default for kind in kinds}


@pytest.mark.parametrize("control", CONGESTION_CONTROLS)
def test_every_supported_congestion_control_runs(
    run_ns3: Run, invoke_ns3: Invoke, control: str
) -> None:
    supports = json.loads(invoke_ns3("--supports").stdout)
    if control in supports["refused"]:
        assert control in ("westwood", "dctcp")
        return
    flow = tcp("t", control, sack=control == "bbr", timestamps=control in ("ledbat", "lp"))
    result = run_ns3(dumbbell([flow], queue={"kind": "droptail", "limit_packets": 20}))
    assert result.number("t", "goodput_bps") > 0.4 * 2e6


def test_version_is_one_line(invoke_ns3: Invoke) -> None:
    done = invoke_ns3("--version")
    assert done.stdout.startswith("ns3 3.44")
    assert len(done.stdout.splitlines()) == 1
    assert invoke_ns3("--help").stdout.startswith("usage: replicate-ns3")
