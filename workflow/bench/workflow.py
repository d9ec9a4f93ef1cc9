"""The whole workflow, timed: efficiency, stages, a rerun, and a batch of short runs."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from replication.engines.lowering import PLAN_FILE
from replication.plan.config import study_ids
from replication.plan.pipeline import Paths, Pipeline
from replication.report.parts.bench_model import Figure, Stage
from replication.report.provenance import stages_of
from replication.study.seal import read_sealed

from bench import scale
from bench.alternative import START_S, loop, simulate_batch
from bench.engine import Size, programs
from bench.scale import SETTINGS, lay_out, make_project, run_snakemake
from bench.scenario import dumbbell
from bench.timed import Announce, run, timed

EFFICIENCY_AT_LEAST = 0.95
BEYOND_AT_MOST_S = 0.005
NO_OP_AT_MOST_S = 3.0
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
    no_op_s, _, _ = run_snakemake(project, cores, settings, "all")
    provenance = json.loads(read_sealed(project / Paths().data / "provenance.json"))
    figures = _figures(cores, no_op_s, provenance["simulate"])
    return WorkflowTimes(figures, _stages(project), round(others, 4))


def time_sweep(root: Path, cores: int, size: Size, say: Announce) -> WorkflowTimes:
    """Return what a reduced bench says of the workflow: a small sweep, no notebooks, no report."""
    say(f"a sweep of {size.short_runs} short runs, twice")
    swept = dataclasses.asdict(scale.measure(root, size.short_runs, cores))
    totals = swept | {"wall_s": swept["simulate_s"]}
    simulate = Stage(
        name="simulate", jobs=swept["batches"], wall_s=swept["simulate_s"], how="wall seconds"
    )
    return WorkflowTimes(_figures(cores, swept["no_op_s"], totals), [simulate], None)


def _figures(cores: int, no_op_s: float, simulate: dict[str, Any]) -> list[Figure]:
    """Return the efficiency of a simulate stage, from its totals, and what a rerun takes."""
    return [
        Figure(
            id="efficiency",
            title="Efficiency of the simulate stage",
            value=round(simulate["simulator_cpu_s"] / (cores * simulate["wall_s"]), 4),
            unit="1",
            how=f"simulators' CPU over {cores} cores x wall time, {simulate['scenarios']} runs",
            at_least=EFFICIENCY_AT_LEAST,
        ),
        Figure(
            id="no-op",
            title="A rerun with nothing to do",
            value=round(no_op_s, 2),
            unit="s",
            how="wall time",
            at_most=NO_OP_AT_MOST_S,
        ),
    ]


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


def short_runs(root: Path, size: Size, folder: Path, say: Announce) -> list[Figure]:
    """Return what a batch of short runs costs beyond its simulators, and beside a shell loop."""
    make_project(root, folder / "project", size.short_runs, engines=False)
    plan = Pipeline.load(folder / "project", SETTINGS).plan
    scenarios = [run.scenario for runs in plan.runs.values() for run in runs]
    say(f"a batch of {len(scenarios)} short runs, and the same in a shell loop")
    program = str(programs(root)["ns3"].resolve())
    command = [program, "--plan", PLAN_FILE, "--output", "."]
    turns = [
        (
            simulate_batch(root, scenarios, folder / "batch"),
            loop(command, scenarios, folder / "loop"),
        )
        for _ in range(size.turns)
    ]
    of_turns = f"the least of {size.turns}"
    walls = [batch.wall_s - simulators_s for (batch, simulators_s), _ in turns]
    cpus = [batch.cpu_s - simulators_s for (batch, simulators_s), _ in turns]
    batch_s = min(batch.wall_s for (batch, _), _ in turns)
    return [
        Figure(
            id="beyond",
            title=f"Time beyond the simulator, per scenario in a batch of {len(scenarios)}",
            value=round(min(walls) / len(scenarios), 5),
            unit="s",
            how=f"(wall time - CPU time of its simulators) / scenarios, one core, {of_turns}",
            at_most=BEYOND_AT_MOST_S,
        ),
        Figure(
            id="beyond-cpu",
            title="Our own CPU time, per scenario of that batch",
            value=round(min(cpus) / len(scenarios), 5),
            unit="s",
            how=f"(CPU time - CPU time of its simulators) / scenarios, {of_turns}",
        ),
        Figure(
            id="beyond-loop",
            title="That batch beside a shell loop over our program, which only writes the tables",
            value=round(batch_s / min(looped.wall_s for _, looped in turns), 4),
            unit="1",
            how=f"wall time of the batch over wall time of the loop, one core, {of_turns} of each",
            at_most=1.0,
        ),
    ]


def _busy_s() -> float:
    """Return the CPU seconds that all programs of this machine have used."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
