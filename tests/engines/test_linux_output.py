"""The files: their columns, their identity, and that equal input gives equal bytes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from engine_results import Result
from engine_scenarios import Json, cbr, droptail, dumbbell, pie, single_link
from linux_scenarios import linux_red, linux_tcp
from replication.scenario import CONGESTION_CONTROLS, Scenario

Run = Callable[..., Result]
Invoke = Callable[..., CompletedProcess[str]]
TABLES = ["flows.csv", "run.json", "series.csv"]


def busy(seed: int = 1) -> Json:
    """Return a scenario that uses every source of randomness."""
    flows = [linux_tcp("t", "bbr", sack=True), linux_tcp("r"), cbr("c", 5e5, start_s=1)]
    loss = {"kind": "random", "probability": 0.01}
    return dumbbell(flows, queue=linux_red(5, 15), loss=loss, duration_s=5, seed=seed)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a run."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_same_scenario_same_bytes(run_linux: Run, tmp_path: Path) -> None:
    first = contents(run_linux(busy()).directory)
    elsewhere = os.environ | {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    second = contents(run_linux(busy(), cwd=tmp_path, env=elsewhere).directory)
    assert sorted(first) == TABLES
    assert first == second


def test_same_bytes_in_parallel(run_linux: Run) -> None:
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: contents(run_linux(busy()).directory), range(3)))
    assert results[0] == results[1] == results[2]


def test_same_bytes_as_another_user(run_linux: Run, linux_program: Path) -> None:
    # Unprivileged, in a folder and from a copy of the engine that the user may read. (Only root can
    # become someone else; for anyone else this is but another folder.)
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        subprocess.check_call(["cp", "-r", linux_program.parent, folder / "engine"])
        (folder / "s.json").write_text(json.dumps(busy()))
        subprocess.check_call(["chmod", "-R", "a+rX", folder])
        folder.chmod(0o777)
        command = [folder / "engine" / "replicate-linux", "--scenario", folder / "s.json"]
        command += ["--output", folder / "out"]
        subprocess.check_call(command, **(nobody if os.geteuid() == 0 else {}))
        assert contents(folder / "out") == contents(run_linux(busy()).directory)
    finally:
        subprocess.check_call(["rm", "-rf", folder])


@pytest.mark.parametrize("queue", [linux_red(5, 15), pie()], ids=["red", "pie"])
def test_the_seed_matters_where_there_is_chance(run_linux: Run, queue: Json) -> None:
    texts = []
    for seed in (1, 2):
        flows = [linux_tcp("t", "cubic", sack=True)]
        result = run_linux(dumbbell(flows, queue=queue, seed=seed))
        texts.append(contents(result.directory)["series.csv"])
    assert texts[0] != texts[1]


def test_flows_columns_and_order(run_linux: Run) -> None:
    result = run_linux(busy())
    head = (result.directory / "flows.csv").read_text().splitlines()[0]
    assert head == (
        "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
        "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
        "delivery_ratio"
    )
    assert list(result.flows) == ["t", "r", "c"]
    assert [row["kind"] for row in result.flows.values()] == ["tcp", "tcp", "cbr"]
    assert result.flows["c"]["rtt_mean_s"] == ""


def test_series_rows_and_times(run_linux: Run) -> None:
    result = run_linux(busy())
    head = (result.directory / "series.csv").read_text().splitlines()[0]
    assert head == (
        "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
        "drops,retransmissions"
    )
    rows = [(row["time_s"], row["flow"], row["link"]) for row in result.series]
    times = [str(k / 10).removesuffix(".0") for k in range(1, 51)]
    who = [("t", ""), ("r", ""), ("c", ""), ("", "bottleneck:ab")]
    assert rows == [(time, *one) for time in times for one in who]


def test_throughput_of_series_adds_up_to_flows(run_linux: Run) -> None:
    result = run_linux(busy())
    for flow in ("t", "r"):
        total = sum(result.samples("throughput_bps", flow=flow)) * 0.1
        assert total == pytest.approx(result.number(flow, "throughput_bps") * 5, rel=1e-9)


def test_ssthresh_is_empty_while_infinite(run_linux: Run) -> None:
    result = run_linux(single_link([linux_tcp("t", maximum_window_bytes=5000)], duration_s=2))
    assert {row["ssthresh_bytes"] for row in result.series if row["flow"]} == {""}


def test_nothing_received_leaves_fields_empty(run_linux: Run) -> None:
    loss = {"kind": "random", "probability": 1}
    result = run_linux(single_link([cbr("c", 1e5), linux_tcp("t")], duration_s=2, loss=loss))
    assert result.flows["c"]["delay_mean_s"] == result.flows["c"]["delay_p95_s"] == ""
    assert result.flows["c"]["delivery_ratio"] == "0"
    assert result.flows["t"]["loss_rate"] == ""  # the handshake never completed
    assert result.run["control_packets_dropped"] > 0


def test_timeouts_are_counted(run_linux: Run) -> None:
    # Of a window of two segments no loss leaves three duplicates: tail probes or the timer repair.
    flow = linux_tcp("t", maximum_window_bytes=2000, minimum_rto_s=0.2)
    loss = {"kind": "random", "probability": 0.3}
    result = run_linux(single_link([flow], rate_bps=1e7, duration_s=20, loss=loss))
    assert result.number("t", "timeouts") >= 5
    assert result.number("t", "retransmissions") >= result.number("t", "timeouts")


def test_run_json_states_the_scenario_and_no_machine(run_linux: Run) -> None:
    scenario = Scenario.model_validate(busy())
    result = run_linux(scenario.model_dump(mode="json"))
    assert result.run["engine"] == "linux"
    assert result.run["version"].startswith("6.1.")
    assert result.run["scenario"] == scenario.id
    assert str(result.directory) not in (result.directory / "run.json").read_text()


def test_supports_covers_the_model(invoke_linux: Invoke) -> None:
    supports = json.loads(invoke_linux("--supports").stdout)
    named = set(supports["congestion_controls"]) | set(supports["refused"])
    assert named == set(CONGESTION_CONTROLS)


@pytest.mark.parametrize("control", CONGESTION_CONTROLS)
def test_every_supported_congestion_control_runs(
    run_linux: Run, invoke_linux: Invoke, control: str
) -> None:
    supports = json.loads(invoke_linux("--supports").stdout)
    if control in supports["refused"]:
        return
    flow = linux_tcp("t", control, timestamps=True, sack=True)
    result = run_linux(dumbbell([flow], queue=droptail(20)))
    assert result.number("t", "goodput_bps") > 0.4 * 2e6


def test_version_is_one_line_with_hashes(invoke_linux: Invoke) -> None:
    words = invoke_linux("--version").stdout.split()
    assert words[0] == "linux" and words[1].startswith("6.1.")
    assert words[2].startswith("kernel-") and words[3].startswith("guest-")
    assert invoke_linux("--help").stdout.startswith("usage: replicate-linux")
