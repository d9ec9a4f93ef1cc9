"""The reduced bench on the real engines: it runs, its file validates, its counts agree."""

from pathlib import Path

import pytest
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


def test_every_figure_is_a_number_above_zero(bench):
    figures = {figure.id: figure for figure in bench.figures}
    assert {"efficiency", "no-op", "beyond", "beyond-loop", "instrumentation"} <= figures.keys()
    assert all(f.value > 0 for f in bench.figures if not f.id.startswith("memory-flows"))


def test_packets_that_arrived_fit_the_bottleneck(bench):
    """NewReno over 10 Mbit/s: more than half of what the link can carry, and not more than that."""
    most = 10e6 * QUICK.duration_s / (8 * 1040)
    assert all(most / 2 < row.packets <= most for row in bench.engines)


def test_the_ways_that_were_measured_carried_the_same_packets(bench):
    measured = [way for way in bench.ways if not way.reason]
    assert len(measured) == 3
    assert len({way.packets for way in measured}) == 1
    assert all(way.reason for way in bench.ways[3:])
