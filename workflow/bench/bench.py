"""The bench: how fast the project is, as ratios within one run, written to bench.json."""

from __future__ import annotations

import datetime
import os
import platform
import tempfile
from pathlib import Path

from replication.plan.pipeline import code_hash
from replication.report.parts.bench_model import MODULE, Bench
from replication.study.seal import write_sealed

from bench.alternative import build_variants, instrumentation, way_ratios, ways
from bench.cost_model import predictions
from bench.engine import (
    FULL,
    QUICK,
    build_costs,
    engine_costs,
    growth,
    memory,
)
from bench.timed import Announce
from bench.workflow import short_runs, starts, time_sweep, time_workflow


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
        if quick:
            whole = time_sweep(root, cores, size, say)
        else:
            whole = time_workflow(root, cores, folder, say)
    return Bench(
        written=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        quick=quick,
        cores=cores,
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        code=code_hash(MODULE),
        others_share=whole.others_share,
        figures=[*whole.figures, *short, cost, *growth(grown), *way_ratios(rows)],
        engines=engines,
        builds=builds,
        memory=grown,
        stages=[*started, *whole.stages],
        ways=rows,
        predictions=predictions(data),
    )


def write_bench(bench: Bench, path: Path) -> None:
    """Write what was measured to `path`."""
    write_sealed(path, bench.model_dump_json(indent=2) + "\n")
