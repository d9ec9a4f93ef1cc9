"""The reduced bench on the real engines: it runs, its file validates, its counts agree."""

from pathlib import Path

import pytest
from bench.alternative import OURS
from bench.bench import measure, write_bench
from bench.engine import QUICK, programs
from replication.report.parts.bench_model import read_bench

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write_bench(
        measure(ROOT, folder, cores=1, quick=True, say=lambda what: None), folder / "bench.json"
    )
    return read_bench(folder)


def test_every_engine_that_is_built_is_measured(bench):
    built = list(programs(ROOT))
    assert [row.engine for row in bench.engines] == built
    assert "ns3" in built
    lengths = len(QUICK.durations_s) + len(QUICK.flow_counts)
    assert len(bench.memory) == lengths * len(built)


def test_a_batch_takes_longer_than_its_simulators_on_every_engine(bench):
    figures = {figure.id: figure.value for figure in bench.figures}
    for engine in programs(ROOT):
        # What is beyond them is our own time and that of starting them.
        assert figures[f"beyond-{engine}"] > 0 < figures[f"beyond-cpu-{engine}"]
        assert figures[f"beyond-loop-{engine}"] > 0


def test_a_sweep_on_the_instant_engine_is_run_judged_and_packed(bench):
    (sweep,) = bench.sweeps
    assert sweep.scenarios == QUICK.sweeps[0]
    assert sweep.jobs > sweep.batches >= 1
    assert sweep.store_entries < sweep.scenarios < sweep.files


def test_ratios_are_those_of_the_rows_beside_them(bench):
    figures = {figure.id: figure.value for figure in bench.figures}
    ours = next(way for way in bench.ways if way.name == OURS)
    for number, way in enumerate(bench.ways):
        if way is not ours and not way.reason:
            ratio = (ours.cpu_s / ours.packets) / (way.cpu_s / way.packets)
            assert figures.pop(f"way-{number}") == pytest.approx(ratio, abs=1e-4)
    assert not [name for name in figures if name.startswith("way-")]
    for engine in programs(ROOT):
        rows = [r for r in bench.memory if (r.engine, r.varied) == (engine, "duration_s")]
        first, *_, last = sorted(rows, key=lambda row: row.value)
        ratio = last.peak_memory_bytes / first.peak_memory_bytes
        assert figures[f"memory-duration-{engine}"] == pytest.approx(ratio, abs=1e-4)


def test_packets_that_arrived_fit_the_bottleneck(bench):
    """NewReno over 10 Mbit/s: more than half of what the link can carry, and not more than that."""
    most = 10e6 * QUICK.duration_s / (8 * 1040)
    assert all(most / 2 < row.packets <= most for row in bench.engines)


def test_the_ways_that_were_measured_carried_the_same_packets(bench):
    measured = [way for way in bench.ways if not way.reason]
    assert len(measured) == 3
    assert len({way.packets for way in measured}) == 1
    assert all(way.reason for way in bench.ways[3:])
