"""Load: one scenario of many flows and one of many hours, with what they took.

Memory is to be flat in simulated time but for the series, so the long run is compared with a
short one of as many samples.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.lowering import write_inputs
from replication.engines.model import Engine
from replication.plan.pipeline import Pipeline
from replication.report.parts.bench_model import Sweep
from replication.report.parts.reliability import Load
from replication.run.native import Native
from replication.run.process import Limits, Usage
from replication.run.run_table import check_run
from replication.study.errors import InputError
from replication.study.link import DropTail, Link
from replication.study.scenario import Monitor, Scenario, TcpFlow

HOUR_S = 3600.0
MANY_FLOWS_S = 10.0
MANY_FLOWS_BPS = 100e6
LONG_BPS = 250e3
SAMPLES = 100
LIMITS = Limits(memory_bytes=4 * 2**30, time_s=2 * HOUR_S)
#: Flat: at most a tenth above the short run, set before any was made. The allocator's own
#: granularity alone moves a peak by some per cent.
FLAT = 1.1


def many_flows(flows: int) -> Scenario:
    """Return a scenario of `flows` NewReno flows over 100 Mbit/s and 20 ms, for 10 s."""
    return _scenario(flows, MANY_FLOWS_BPS, 0.02, MANY_FLOWS_S)


def long_run(hours: float) -> Scenario:
    """Return a scenario of one NewReno flow over 250 kbit/s and 50 ms, for `hours`."""
    return _scenario(1, LONG_BPS, 0.05, hours * HOUR_S)


def _scenario(flows: int, rate_bps: float, delay_s: float, duration_s: float) -> Scenario:
    queue = DropTail(limit_packets=max(50, flows))
    wire = Link(
        id="wire", a="s", b="d", rate_bps=rate_bps, delay_s=delay_s, queue_ab=queue, queue_ba=queue
    )
    return Scenario(
        duration_s=duration_s,
        sampling_interval_s=duration_s / SAMPLES,
        seed=1,
        nodes=["s", "d"],
        links=[wire],
        flows=[
            TcpFlow(
                id=f"f{i}",
                source="s",
                destination="d",
                start_s=i * 1e-3,
                stop_s=duration_s,
                congestion_control="newreno",
                segment_bytes=1000,
                initial_window_segments=2,
                delayed_ack_segments=1,
                minimum_rto_s=0.2,
                initial_rto_s=1.0,
            )
            for i in range(flows)
        ],
        monitors=[Monitor(link="wire")],
    )


def measure_load(root: Path, engine: str, flows: int, hours: float) -> Iterator[Load]:
    """Yield what many flows and many hours take on an engine that is built.

    Raises
    ------
    InputError
        The engine is unknown or not built.
    RunError
        A run failed, or its tables are not complete.
    """
    if engine not in ENGINES:
        raise InputError(f"--engine: {engine!r} is unknown; there are {', '.join(ENGINES)}")
    program = root / Pipeline.load(root, {"engines": engine}).program(engine)
    if not program.is_file():
        raise InputError(f"--engine: {engine} is not built: run `make engines`")
    wide = many_flows(flows)
    used = _run(program.resolve(), ENGINES[engine], wide)
    title = f"{flows} flows in one scenario of {MANY_FLOWS_S:g} s, on {engine}"
    yield _entry(f"flows-{engine}", title, wide, used)
    short = _run(program.resolve(), ENGINES[engine], long_run(1))
    whole = long_run(hours)
    used = _run(program.resolve(), ENGINES[engine], whole)
    entry = _entry(
        f"hours-{engine}", f"{hours:g} simulated hours of one flow, on {engine}", whole, used
    )
    yield entry.model_copy(
        update={
            "compared": "one hour of it",
            "compared_memory_bytes": short.peak_memory_bytes,
            "held": used.peak_memory_bytes <= FLAT * short.peak_memory_bytes,
        }
    )


def sweep_entry(sweep: Sweep, memory_limit_bytes: int) -> Load:
    """Return a sweep of `make scale` as an entry."""
    peak = max(sweep.snakemake_bytes, sweep.largest_worker_bytes)
    return Load(
        id=f"sweep-{sweep.scenarios}",
        title=f"a sweep of {sweep.scenarios} scenarios on an engine that returns at once",
        scenarios=sweep.scenarios,
        flows=1,
        simulated_s=0.0,
        wall_s=sweep.total_s,
        cpu_s=0.0,
        peak_memory_bytes=peak,
        memory_limit_bytes=memory_limit_bytes,
        held=peak <= memory_limit_bytes,
    )


def _run(program: Path, engine: Engine, scenario: Scenario) -> Usage:
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        work = Path(folder)
        write_inputs(work, scenario, engine)
        native = Native(program)
        try:
            used = native.run(work, LIMITS, lambda: None)
        finally:
            native.close()
        check_run(work, scenario)
    return used


def _entry(name: str, title: str, scenario: Scenario, used: Usage) -> Load:
    return Load(
        id=name,
        title=title,
        scenarios=1,
        flows=len(scenario.flows),
        simulated_s=scenario.duration_s,
        wall_s=used.wall_s,
        cpu_s=used.cpu_s,
        peak_memory_bytes=used.peak_memory_bytes,
        memory_limit_bytes=LIMITS.memory_bytes,
        held=used.peak_memory_bytes <= LIMITS.memory_bytes,
    )
