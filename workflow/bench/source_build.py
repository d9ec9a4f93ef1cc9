"""ns-3 built from its release's sources beside the wheel: the same tables, in less time."""

from __future__ import annotations

import math
from pathlib import Path

from replication.engines.ns3_source import COMPILER, COST, built_ns3
from replication.plan.design import Run
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
TIER = "paper"
#: Every so manieth run of each study of that tier is made, in the order of their expected costs:
#: some two minutes of expected CPU time on the wheel.
_EVERY = 40
#: Every so manieth scenario of tier quick is for the profile.
_TRAINED = 16
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
    scenarios = sample(root)
    used = [_pair(programs, scenario, folder / "run") for scenario in scenarios]
    wheel_s, source_s = (math.fsum(times) for times in zip(*used, strict=True))
    how = (
        f"CPU time, {source_s:.0f} s over {wheel_s:.0f} s: every {_EVERY}th run of each study by "
        f"expected cost, {len(used)}, whose tables are the same bytes"
    )
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


def sample(root: Path) -> list[Scenario]:
    """Return every so manieth scenario of each study at tier paper, the dearest first."""
    left_out = {scenario.id for scenario in trained(root)}
    found = []
    for runs in _runs(root, TIER):
        own = {run.scenario_id: run for run in runs if run.scenario_id not in left_out}
        ordered = sorted(own.values(), key=lambda run: (-run.cost_s, run.scenario_id))
        found += [run.scenario for run in ordered[_EVERY // 2 :: _EVERY]]
    return found


def trained(root: Path) -> list[Scenario]:
    """Return scenarios for a profile: none of those by which the build is judged."""
    runs = {run.scenario_id: run.scenario for study in _runs(root, "quick") for run in study}
    return [runs[name] for name in sorted(runs)][2::_TRAINED]


def _runs(root: Path, tier: str) -> list[list[Run]]:
    """Return the runs on ns-3 of each study, but for those that it refuses."""
    settings = {"tier": tier, "studies": "all", "engines": "ns3"}
    studies = Pipeline.load(root, settings).plan.runs.values()
    return [[run for run in runs if not run.refusal] for runs in studies]


def _ratio(value: float | None, how: str) -> Figure:
    return Figure(
        id="source-cpu",
        title=f"ns-3 from its sources beside the wheel, tier {TIER}",
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
