"""Output files of every engine: columns, identity, and equal bytes for equal input."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from measurements.scenarios import cbr, droptail, dumbbell, pie, single_link
from replication.base.table import FLOW_NUMBERS, SERIES_COLUMNS
from replication.engines.catalogue import ENGINES
from replication.study.scenario import Scenario

from tests.engines.engine_bench import TRAITS


@pytest.fixture(scope="session")
def busy(bench):
    """Return a scenario that uses every source of randomness, and flows of several kinds."""
    first = "cubic" if bench.name == "ns2" else "bbr"
    second = "linuxreno" if bench.name == "linux" else "reno"
    flows = [
        bench.tcp("t", first, sack=True, timestamps=bench.name == "ns2"),
        bench.tcp("r", second),
        bench.tcp("v", "vegas"),
        cbr("c", 5e5, start_s=1),
    ]
    loss = {"kind": "random", "probability": 0.01}
    return dumbbell(flows, queue=bench.traits.red, loss=loss, duration_s=5)


@pytest.fixture(scope="session")
def busy_run(bench, busy):
    """Return the run of that scenario."""
    return bench.run(busy)


def test_the_same_scenario_gives_the_same_bytes_in_another_folder_and_in_parallel(
    bench, busy, busy_run, tmp_path
):
    first = busy_run.files()
    assert sorted(first) == ["flows.csv", "run.json", "series.csv"]
    elsewhere = os.environ | {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": str(tmp_path)}
    options = [{}, {}, {"cwd": tmp_path, "env": elsewhere}]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda o: bench.run(busy, **o).files(), options)) == [first] * 3


@pytest.mark.parametrize(
    ("bench", "queue"),
    [
        *((name, traits.red) for name, traits in TRAITS.items()),
        *((name, pie()) for name in ("ns3", "linux")),
        # ns-2 draws the phase of each sender's clock, which timers without a timeout never show.
        *((name, droptail(30)) for name in ("ns3", "ns2")),
    ],
    indirect=["bench"],
)
def test_the_seed_changes_results_only_with_random_queues(bench, queue):
    flows = [bench.tcp("t", sack=True), cbr("c", 5e5)]
    first, second = (bench.run(dumbbell(flows, queue=queue, seed=seed)) for seed in (1, 2))
    assert (first.series == second.series) == (queue["kind"] == "droptail")


def test_tables_have_the_agreed_columns_and_order_of_flows(busy_run):
    # The gathered tables begin with the scenario and the engine.
    assert list(busy_run.series[0]) == list(SERIES_COLUMNS[2:])
    assert list(busy_run.flows["t"]) == ["flow", "kind", *FLOW_NUMBERS]
    kinds = {flow: row["kind"] for flow, row in busy_run.flows.items()}
    assert list(kinds.items()) == [("t", "tcp"), ("r", "tcp"), ("v", "tcp"), ("c", "cbr")]
    assert busy_run.flows["c"]["rtt_mean_s"] == ""
    rows = [(row["time_s"], row["flow"], row["link"]) for row in busy_run.series]
    times = [str(k / 10).removesuffix(".0") for k in range(1, 51)]
    who = [*((flow, "") for flow in kinds), ("", "bottleneck:ab")]
    expected = []
    for time in times:
        expected += [(time, *place) for place in who]
    assert rows == expected


def test_samples_stop_before_the_end_if_the_interval_does_not_divide_the_duration(bench):
    scenario = single_link([cbr("c", 1e5)], duration_s=1, sampling_interval_s=0.3)
    assert {row["time_s"] for row in bench.run(scenario).series} == {"0.3", "0.6", "0.9"}


def test_sampled_throughput_adds_up_to_that_of_the_flow(busy_run):
    for flow in ("t", "r", "v"):
        total = sum(busy_run.samples("throughput_bps", flow=flow)) * 0.1
        assert total == pytest.approx(busy_run.number(flow, "throughput_bps") * 5, rel=1e-9)
        assert busy_run.number(flow, "goodput_bps") < busy_run.number(flow, "throughput_bps")


def test_unknown_values_are_empty_in_tables(bench):
    scenario = single_link([bench.tcp("t", maximum_window_bytes=5000)], duration_s=2)
    assert {row["ssthresh_bytes"] for row in bench.run(scenario).series if row["flow"]} == {""}
    loss = {"kind": "random", "probability": 1}
    result = bench.run(single_link([cbr("c", 1e5), bench.tcp("t")], duration_s=2, loss=loss))
    assert result.flows["c"]["delay_mean_s"] == result.flows["c"]["delay_p95_s"] == ""
    assert result.flows["c"]["delivery_ratio"] == "0"
    assert result.flows["t"]["loss_rate"] == ""  # the handshake never completed
    assert result.run["control_packets_dropped"] > 0


def test_run_json_states_the_scenario_and_no_machine(bench, busy, busy_run):
    assert busy_run.run["engine"] == bench.name
    assert busy_run.run["scenario"] == Scenario.model_validate(busy).id
    assert bench.name != "ns3" or busy_run.run["events"] > 0
    assert str(busy_run.directory) not in (busy_run.directory / "run.json").read_text()
    version = bench.invoke("--version").stdout
    assert version.startswith(f"{bench.name} {busy_run.run['version']}")
    # ns-3 does not know the wheel's post-release, nor the workflow the kernel's patch level.
    pinned, recorded = ENGINES[bench.name].version, busy_run.run["version"]
    assert pinned.startswith(recorded) or recorded.startswith(f"{pinned}.")
