"""ns-3 built from its release's sources beside the wheel: the same tables, in less time."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from replication.engines.ns3_version import NS3_VERSION
from replication.plan.pipeline import Paths, Pipeline
from replication.report.parts.bench_model import Figure
from replication.run.store import TABLES
from replication.study.errors import RunError
from replication.study.scenario import Scenario

from bench.timed import Announce, run, timed

#: Goals: of the wheel's CPU time, and of the build's own.
CPU_AT_MOST = 0.45
BUILD_AT_MOST_S = 200.0
#: Every so manieth scenario of tier quick is run.
_EVERY = 4
_BUILD = "`make engines NS3_SOURCE=<archive of ns-3's release>` builds it"


def source_build(root: Path, folder: Path, say: Announce) -> list[Figure]:
    """Run scenarios of every study on both builds of ns-3, by turns; they must give equal bytes.

    Raises
    ------
    RunError
        A table of the two differs; the message names the scenario.
    """
    pipeline = Pipeline.load(root, {"tier": "quick", "studies": "all", "engines": "ns3"})
    prefixes = {
        "wheel": root / Paths().data / f"engines/ns3-wheel-{NS3_VERSION}" / "ns3",
        "source": root / pipeline.ns3_built,
    }
    if lacking := [name for name, prefix in prefixes.items() if not prefix.is_dir()]:
        return [_ratio(None, f"ns-3's {lacking[0]} build is not here: {_BUILD}")]
    say("ns-3 from its sources beside the wheel")
    programs = {name: _compile(root, prefix, folder / name) for name, prefix in prefixes.items()}
    runs = {r.scenario_id: r.scenario for study in pipeline.plan.runs.values() for r in study}
    scenarios = [runs[name] for name in sorted(runs)][::_EVERY]
    used = [_pair(programs, scenario, folder / "run") for scenario in scenarios]
    wheel_s, source_s = (math.fsum(times) for times in zip(*used, strict=True))
    how = f"CPU time of {len(used)} scenarios of all studies, whose tables are the same bytes"
    return [_ratio(round(source_s / wheel_s, 4), how), *_build_cost(root / Paths().data)]


def _ratio(value: float | None, how: str) -> Figure:
    return Figure(
        id="source-cpu",
        title="ns-3 from its sources beside the wheel",
        value=value,
        unit="1",
        how=how,
        at_most=CPU_AT_MOST,
    )


def _compile(root: Path, prefix: Path, folder: Path) -> Path:
    words = [f"NS3_PREFIX={prefix.resolve()}", f"BUILD={folder.resolve()}", "-j2"]
    timed(["make", "--silent", "-C", str(root / "workflow/engines/ns3"), *words], root)
    return folder / "replicate-ns3"


def _pair(programs: dict[str, Path], scenario: Scenario, folder: Path) -> list[float]:
    """Return the CPU time of a scenario on each build."""
    done = {name: run(program, scenario, folder / name) for name, program in programs.items()}
    for table in TABLES:
        if len({(ran.folder / table).read_bytes() for ran in done.values()}) > 1:
            raise RunError(f"bench: scenario {scenario.id}: {table} differs between ns-3's builds")
    return [ran.usage.cpu_s for ran in done.values()]


def _build_cost(data: Path) -> list[Figure]:
    """Return what the build took when it was made here."""
    path = data / "benchmarks" / "build_ns3_libraries.tsv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file, delimiter="\t"))
    return [
        Figure(
            id="source-build",
            title="Building ns-3 from its sources, once",
            value=round(float(row["cpu_time"]), 1),
            unit="s",
            how=f"CPU time, when it was built here ({float(row['s']):.0f} s of wall time)",
            at_most=BUILD_AT_MOST_S,
        )
    ]
