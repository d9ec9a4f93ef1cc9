"""ns-3 built from its release's sources beside the wheel: the same tables, in less time."""

from __future__ import annotations

import math
from pathlib import Path

from replication.engines.ns3_source import COMPILER, COST, built_ns3
from replication.plan.pipeline import Pipeline
from replication.report.parts.bench_model import Figure
from replication.run.store import TABLES
from replication.study.errors import RunError
from replication.study.scenario import Scenario

from bench.engine import compile_program
from bench.timed import Announce, run

#: Goals: of the wheel's CPU time, and of the build's own.
CPU_AT_MOST = 0.45
BUILD_AT_MOST_S = 200.0
#: Every so manieth scenario of tier quick is run.
_EVERY = 4
_BUILD = "`make engines NS3_SOURCE=<archive of ns-3's release>` builds it"


def source_build(root: Path, on_wheel: Path, folder: Path, say: Announce) -> list[Figure]:
    """Run scenarios of every study on it and `on_wheel`, our program on the wheel, by turns.

    Raises
    ------
    RunError
        A table of the two differs; the message names the scenario.
    """
    built = built_ns3(root)
    if not built.is_dir():
        return [_ratio(None, f"ns-3 is not built from its sources here: {_BUILD}")]
    say("ns-3 from its sources beside the wheel")
    linked = compile_program(root, built, folder / "source", COMPILER)
    programs = {"wheel": on_wheel, "source": folder / "source" / "replicate-ns3"}
    scenarios = _scenarios(root)[::_EVERY]
    used = [_pair(programs, scenario, folder / "run") for scenario in scenarios]
    wheel_s, source_s = (math.fsum(times) for times in zip(*used, strict=True))
    how = f"CPU time of {len(used)} scenarios of all studies, whose tables are the same bytes"
    build_s = float((built / COST).read_text(encoding="utf-8"))
    return [
        _ratio(round(source_s / wheel_s, 4), how),
        Figure(
            id="source-build",
            title="Building ns-3 from its sources, once",
            value=round(build_s + linked.cpu_s, 1),
            unit="s",
            how=f"CPU time: {build_s:.0f} s for ns-3, {linked.cpu_s:.0f} s for our program with it",
            at_most=BUILD_AT_MOST_S,
        ),
    ]


def trained(root: Path) -> list[Scenario]:
    """Return scenarios for a profile: none of those by which the build is judged."""
    return _scenarios(root)[_EVERY // 2 :: 4 * _EVERY]


def _scenarios(root: Path) -> list[Scenario]:
    settings = {"tier": "quick", "studies": "all", "engines": "ns3"}
    studies = Pipeline.load(root, settings).plan.runs.values()
    runs = {run.scenario_id: run.scenario for study in studies for run in study}
    return [runs[name] for name in sorted(runs)]


def _ratio(value: float | None, how: str) -> Figure:
    return Figure(
        id="source-cpu",
        title="ns-3 from its sources beside the wheel",
        value=value,
        unit="1",
        how=how,
        at_most=CPU_AT_MOST,
    )


def _pair(programs: dict[str, Path], scenario: Scenario, folder: Path) -> list[float]:
    """Return the CPU time of a scenario on each build."""
    done = {name: run(program, scenario, folder / name) for name, program in programs.items()}
    for table in TABLES:
        if len({(ran.folder / table).read_bytes() for ran in done.values()}) > 1:
            raise RunError(f"bench: scenario {scenario.id}: {table} differs between ns-3's builds")
    return [ran.usage.cpu_s for ran in done.values()]
