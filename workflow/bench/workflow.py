"""The whole workflow, timed: efficiency, stages, starts, and a rerun."""

from __future__ import annotations

import math
import os
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from replication.plan.config import study_ids
from replication.plan.pipeline import Paths
from replication.report.parts.bench_model import Figure, Stage
from replication.report.parts.source import read_provenance
from replication.report.provenance import stages_of

from bench.engine import programs
from bench.last_report import EFFICIENCY_AT_LEAST
from bench.overhead import START_S
from bench.scale import lay_out, run_snakemake
from bench.scenario import dumbbell
from bench.timed import Announce, run, timed

NO_OP_AT_MOST_S = 2.5
QUICK_AT_MOST_MIN = 3.0
#: How often the rerun is timed; the least counts.
_RERUNS = 3
#: What Snakemake says where every file is up to date.
NOTHING_DONE = "Nothing to be done"
TIER = "quick"
#: Stages of a run, by their rules.
STAGES = {
    "design": ("design_study",),
    "simulate": ("simulate_batch",),
    "collect": ("collect_results",),
    "evaluate": ("evaluate_study", "merge_evaluations"),
    "notebooks": ("execute_notebook",),
    "render": ("render_page", "assemble_report"),
}


@dataclass(frozen=True)
class WorkflowTimes:
    """What timing the workflow gave."""

    figures: list[Figure]
    stages: list[Stage]
    others_share: float | None


#: Of a reduced bench, which leaves the whole workflow out.
NOT_TIMED = WorkflowTimes([], [], None)


def time_workflow(root: Path, cores: int, folder: Path, say: Announce) -> WorkflowTimes:
    """Run tier quick of every study on ns3 in a project of its own, and then again.

    The simulate stage goes first, alone: beside notebooks it has only what they leave of the cores.
    """
    project = folder / "project"
    lay_out(root, project, ("ns3",))
    for name in ("configs/studies", "configs/tiers", "data/published"):
        shutil.copytree(root / name, project / name, dirs_exist_ok=True)
    studies = study_ids(root)
    settings = {"tier": TIER, "studies": ",".join(studies), "engines": "ns3"}
    run_snakemake(project, cores, settings, "engines")
    before, started = _busy_s(), _children_s()
    say(f"tier {TIER} of every study: the simulations")
    results = [f"{Paths().data}/results/{study}/flows.parquet" for study in studies]
    simulated_s, _, _ = run_snakemake(project, cores, settings, *results)
    say("from their results to the report")
    rest_s, _, _ = run_snakemake(project, cores, settings, "all")
    busy_s, ours_s = _busy_s() - before, _children_s() - started
    others = max(0.0, busy_s - ours_s) / ((simulated_s + rest_s) * (os.cpu_count() or 1))
    say("the same again, with nothing to do")
    reruns = [run_snakemake(project, cores, settings, "all")[:2] for _ in range(_RERUNS)]
    provenance = read_provenance(project / Paths().data / "provenance.json")
    figures = [
        efficiency(cores, provenance["simulate"]),
        Figure(
            id="report-quick",
            title=f"Tier {TIER} of every study on ns3, its engine built, to the report",
            value=round((simulated_s + rest_s) / 60, 2),
            unit="min",
            how="wall time of the simulations, and then of all else",
            at_most=QUICK_AT_MOST_MIN,
        ),
        no_op(reruns),
    ]
    return WorkflowTimes(figures, _stages(project), round(others, 4))


def efficiency(cores: int, simulate: dict[str, Any]) -> Figure:
    """Return the efficiency of a simulate stage, from its totals."""
    return Figure(
        id="efficiency",
        title="Efficiency of the simulate stage",
        value=round(simulate["simulator_cpu_s"] / (cores * simulate["wall_s"]), 4),
        unit="1",
        how=f"simulators' CPU over {cores} cores x wall time, {simulate['scenarios']} runs",
        at_least=EFFICIENCY_AT_LEAST,
    )


def no_op(reruns: list[tuple[float, str]]) -> Figure:
    """Return what a rerun takes, from seconds and output of each that had nothing to do.

    One that did something, because a file was edited meanwhile, is no such rerun.
    """
    idle_s = [wall_s for wall_s, said in reruns if NOTHING_DONE in said]
    how = f"wall time, the least of {len(idle_s)}"
    if len(idle_s) < len(reruns):
        how += f"; {len(reruns) - len(idle_s)} more did something, and do not count"
    return Figure(
        id="no-op",
        title="A rerun with nothing to do",
        value=round(min(idle_s), 2) if idle_s else None,
        unit="s",
        how=how if idle_s else "each rerun did something: a file was edited meanwhile",
        at_most=NO_OP_AT_MOST_S,
    )


def _stages(project: Path) -> list[Stage]:
    """Return what the rules of each stage took."""
    found = stages_of(project / Paths().data / "benchmarks")
    return [
        Stage(
            name=name,
            jobs=sum(int(found[rule]["jobs"]) for rule in rules if rule in found),
            wall_s=round(math.fsum(found[rule]["wall_s"] for rule in rules if rule in found), 2),
            how="wall seconds of its jobs, added up",
        )
        for name, rules in STAGES.items()
    ]


def starts(root: Path, folder: Path, say: Announce) -> list[Stage]:
    """Return what starting takes: the command line, planning, each engine; and compiling."""
    say("starts")
    command = [sys.executable, "-m", "replication.cli"]
    found = [
        Stage(
            name="start of the command line",
            jobs=1,
            wall_s=timed([*command, "--help"], root).wall_s,
            how="replicate --help",
        ),
        Stage(
            name="plan",
            jobs=1,
            wall_s=timed([*command, "plan", "--tier", TIER], root).wall_s,
            how=f"replicate plan --tier {TIER}",
        ),
    ]
    for engine, program in programs(root).items():
        usage = run(program, dumbbell(engine, 1, START_S), folder / engine).usage
        how = f"a run of {START_S:g} s simulated"
        found.append(Stage(name=f"start of {engine}", jobs=1, wall_s=usage.wall_s, how=how))
    built = programs(root).get("ns3")
    logged = root / Paths().data / "benchmarks" / "build_ns3_program"
    path = logged / f"{built.parent.name.removeprefix('ns3-')}.tsv" if built else None
    if path is not None and path.is_file():
        wall_s = float(path.read_text(encoding="utf-8").splitlines()[1].split("\t")[0])
        how = "once, when it was built here"
        found.insert(0, Stage(name="set-up: our ns-3 program", jobs=1, wall_s=wall_s, how=how))
    return found


def _busy_s() -> float:
    """Return the CPU seconds that all programs of this machine have used."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
