"""The bench: how fast the project is, as ratios within one run, written to bench.json."""

from __future__ import annotations

import datetime
import os
import platform
import tempfile
from pathlib import Path

from replication.plan.code import code_hash
from replication.report.parts.bench_model import MODULE, Bench, Sweep
from replication.study.files import write_text

from bench.alternative import build_variants, instrumentation, way_ratios, ways
from bench.cost_model import factors, predictions
from bench.engine import (
    FULL,
    QUICK,
    Size,
    build_costs,
    engine_costs,
    growth,
    memory,
)
from bench.last_report import last_report
from bench.overhead import short_runs
from bench.scale import SWEEPS, read_sweeps
from bench.scale import growth as sweep_growth
from bench.scale import measure as measure_sweep
from bench.schedule import most_cores, speedups
from bench.set_up import ENVIRONMENT, halved, set_up
from bench.source_build import source_build
from bench.timed import Announce
from bench.workflow import NOT_TIMED, starts, time_workflow


def measure(root: Path, data: Path, cores: int, quick: bool, say: Announce) -> Bench:
    """Measure everything; some minutes, or under one with `quick`.

    Raises
    ------
    InputError
        The ns-3 engine is not built, or a variant of it does not simulate the same.
    RunError
        A run failed; the message holds its last words.
    """
    root, size = root.resolve(), QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        variants = build_variants(root, folder / "variants", say)
        cost = instrumentation(variants, size, folder, say)
        engines = engine_costs(root, size, folder / "engines", say)
        builds = [] if quick else build_costs(root, size, folder / "builds", say)
        grown = memory(root, size, folder / "memory", say)
        rows = ways(root, variants, size, folder / "ways", not quick, say)
        short = short_runs(root, size, folder / "short", say)
        started = starts(root, folder / "starts", say)
        source = [] if quick else source_build(root, variants.ours, folder / "source", say)
        installed = [] if quick else set_up(root, folder / "set-up", say)
        sweeps = _sweeps(root, data, cores, size, say)
        whole = NOT_TIMED if quick else time_workflow(root, cores, folder, say)
    predicted, scheduled = predictions(data), speedups(root, data)
    made_s = next((row.wall_s for row in installed if row.name == ENVIRONMENT), None)
    return Bench(
        written=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        quick=quick,
        cores=cores,
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        code=code_hash(MODULE),
        others_share=whole.others_share,
        figures=[
            *whole.figures,
            *last_report(root, data, made_s),
            *factors(predicted),
            *most_cores(scheduled),
            *short,
            *source,
            *sweep_growth(sweeps),
            *halved(installed),
            cost,
            *growth(grown),
            *way_ratios(rows),
        ],
        engines=engines,
        builds=builds,
        memory=grown,
        stages=[*started, *whole.stages],
        ways=rows,
        predictions=predicted,
        sweeps=sweeps,
        speedups=scheduled,
        set_up=installed,
    )


def _sweeps(root: Path, data: Path, cores: int, size: Size, say: Announce) -> list[Sweep]:
    """Return sweeps of growing size, and the larger ones that `make scale` left."""
    found = []
    for scenarios in size.sweeps:
        say(f"a sweep of {scenarios} runs on an engine that returns at once")
        found.append(measure_sweep(root, scenarios, cores))
    larger = [s for s in read_sweeps(data / SWEEPS) if s.scenarios > max(size.sweeps)]
    return [*found, *larger]


def write_bench(bench: Bench, path: Path) -> None:
    """Write what was measured to `path`."""
    write_text(path, bench.model_dump_json(indent=2) + "\n")
