"""The files of every engine: columns, identity, and that equal input gives equal bytes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from replication.engines.catalogue import ENGINES
from replication.study.scenario import CONGESTION_CONTROLS, Scenario

from tests.engines.engine_bench import TRAITS, Bench, Run
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import (
    Json,
    cbr,
    droptail,
    dumbbell,
    linux_tcp,
    pie,
    single_link,
)


def busy(bench: Bench, seed: int = 1) -> Json:
    """Return a scenario that uses every source of randomness, and flows of several kinds."""
    controls = {"ns3": "bbr", "ns2": "cubic", "linux": "bbr"}
    second = "linuxreno" if bench.name == "linux" else "reno"
    flows = [
        bench.tcp("t", controls[bench.name], sack=True, timestamps=bench.name == "ns2"),
        bench.tcp("r", second),
        bench.tcp("v", "vegas"),
        cbr("c", 5e5, start_s=1),
    ]
    loss = {"kind": "random", "probability": 0.01}
    return dumbbell(flows, queue=bench.traits.red, loss=loss, duration_s=5, seed=seed)


@pytest.fixture(scope="session")
def busy_run(bench: Bench) -> Result:
    """Return the run of that scenario."""
    return bench.run(busy(bench))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a run."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_benches_are_all_engines() -> None:
    assert set(TRAITS) == set(ENGINES)


def test_same_scenario_same_bytes_in_another_folder(
    bench: Bench, busy_run: Result, tmp_path: Path
) -> None:
    first = contents(busy_run.directory)
    elsewhere = os.environ | {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    second = contents(bench.run(busy(bench), cwd=tmp_path, env=elsewhere).directory)
    assert sorted(first) == ["flows.csv", "run.json", "series.csv"]
    assert first == second


def test_same_bytes_in_parallel(bench: Bench, busy_run: Result) -> None:
    scenario = busy(bench)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: contents(bench.run(scenario).directory), range(3)))
    assert runs == [contents(busy_run.directory)] * 3


def test_the_seed_matters_where_there_is_chance(bench: Bench) -> None:
    queues = [bench.traits.red] + ([] if bench.name == "ns2" else [pie()])
    for queue in queues:
        flows = [bench.tcp("t", "cubic", **bench.sack())]
        texts = [
            contents(bench.run(dumbbell(flows, queue=queue, seed=seed)).directory)["series.csv"]
            for seed in (1, 2)
        ]
        assert texts[0] != texts[1], queue["kind"]


@pytest.mark.parametrize(
    "bench", [name for name, traits in TRAITS.items() if traits.chance_free], indirect=True
)
def test_the_seed_does_not_matter_where_there_is_no_chance(bench: Bench) -> None:
    # ns-2 draws the phase of each sender's clock, which timers without a timeout never show.
    flows = [bench.tcp("t", sack=True), cbr("c", 5e5)]
    texts = [
        contents(bench.run(dumbbell(flows, queue=droptail(30), seed=seed)).directory)["series.csv"]
        for seed in (1, 2)
    ]
    assert texts[0] == texts[1]


def test_flows_columns_and_order(busy_run: Result) -> None:
    head = (busy_run.directory / "flows.csv").read_text().splitlines()[0]
    assert head == (
        "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
        "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
        "delivery_ratio"
    )
    assert list(busy_run.flows) == ["t", "r", "v", "c"]
    assert [row["kind"] for row in busy_run.flows.values()] == ["tcp", "tcp", "tcp", "cbr"]
    assert busy_run.flows["c"]["rtt_mean_s"] == ""


def test_series_rows_and_times(busy_run: Result) -> None:
    head = (busy_run.directory / "series.csv").read_text().splitlines()[0]
    assert head == (
        "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
        "drops,retransmissions"
    )
    rows = [(row["time_s"], row["flow"], row["link"]) for row in busy_run.series]
    times = [str(k / 10).removesuffix(".0") for k in range(1, 51)]
    who = [("t", ""), ("r", ""), ("v", ""), ("c", ""), ("", "bottleneck:ab")]
    assert rows == [(time, *one) for time in times for one in who]


def test_an_interval_that_does_not_divide_the_duration(bench: Bench) -> None:
    scenario = single_link([cbr("c", 1e5)], duration_s=1, sampling_interval_s=0.3)
    assert {row["time_s"] for row in bench.run(scenario).series} == {"0.3", "0.6", "0.9"}


def test_throughput_of_series_adds_up_to_flows(busy_run: Result) -> None:
    for flow in ("t", "r", "v"):
        total = sum(busy_run.samples("throughput_bps", flow=flow)) * 0.1
        assert total == pytest.approx(busy_run.number(flow, "throughput_bps") * 5, rel=1e-9)
        assert busy_run.number(flow, "goodput_bps") < busy_run.number(flow, "throughput_bps")


def test_ssthresh_is_empty_while_infinite(bench: Bench) -> None:
    scenario = single_link([bench.tcp("t", maximum_window_bytes=5000)], duration_s=2)
    assert {row["ssthresh_bytes"] for row in bench.run(scenario).series if row["flow"]} == {""}


def test_nothing_received_leaves_fields_empty(bench: Bench) -> None:
    loss = {"kind": "random", "probability": 1}
    result = bench.run(single_link([cbr("c", 1e5), bench.tcp("t")], duration_s=2, loss=loss))
    assert result.flows["c"]["delay_mean_s"] == result.flows["c"]["delay_p95_s"] == ""
    assert result.flows["c"]["delivery_ratio"] == "0"
    assert result.flows["t"]["loss_rate"] == ""  # the handshake never completed
    assert result.run["control_packets_dropped"] > 0


def test_run_json_states_the_scenario_and_no_machine(bench: Bench) -> None:
    scenario = Scenario.model_validate(busy(bench))
    result = bench.run(scenario.model_dump(mode="json"))
    assert result.run["engine"] == bench.name
    assert result.run["version"].startswith(
        {"ns3": "3.", "ns2": "2.35", "linux": "6.1."}[bench.name]
    )
    assert result.run["scenario"] == scenario.id
    assert bench.name != "ns3" or result.run["events"] > 0
    assert str(result.directory) not in (result.directory / "run.json").read_text()


@pytest.mark.parametrize("control", CONGESTION_CONTROLS)
def test_every_supported_congestion_control_runs(bench: Bench, control: str) -> None:
    flow = bench.tcp("t", control, **needs(bench, control))
    document = dumbbell([flow], queue=droptail(20))
    engine = ENGINES[bench.name]
    if control not in engine.congestion_controls:
        refused = engine.refusal(Scenario.model_validate(document))
        assert refused == f"{bench.name} has no congestion control {control!r}"
        return
    result = bench.run(document)
    assert result.number("t", "goodput_bps") > 0.4 * 2e6


def needs(bench: Bench, control: str) -> Json:
    """Return the options without which an engine refuses a congestion control."""
    if bench.name == "ns3":
        return {"sack": control == "bbr", "timestamps": control in ("ledbat", "lp")}
    if bench.name == "ns2" and control in ("tahoe", "reno", "newreno", "vegas"):
        return {}
    return {"sack": True, "limited_transmit": True, "timestamps": True}


def test_version_and_help(bench: Bench) -> None:
    version = bench.invoke("--version").stdout
    name, said = version.split()[:2]
    assert name == bench.name
    assert len(version.splitlines()) == 1
    hashes = [word.partition("-")[0] for word in version.split()[2:4]]
    assert name != "linux" or hashes == ["kernel", "guest"]
    # ns-3 does not know the wheel's post-release, nor the workflow the kernel's patch level.
    pinned = ENGINES[name].version
    assert pinned.startswith(said) or said.startswith(f"{pinned}.")
    assert bench.invoke("--help").stdout.startswith(f"usage: replicate-{bench.name}")


def test_timeouts_are_counted(run_linux: Run) -> None:
    # Of a window of two segments no loss leaves three duplicates: tail probes or the timer repair.
    flow = linux_tcp("t", maximum_window_bytes=2000, minimum_rto_s=0.2)
    loss = {"kind": "random", "probability": 0.3}
    # Long enough for any luck: a few losses in a row double the timer to many seconds.
    result = run_linux(single_link([flow], rate_bps=1e7, duration_s=200, loss=loss))
    assert result.number("t", "timeouts") >= 5
    assert result.number("t", "retransmissions") >= result.number("t", "timeouts")
