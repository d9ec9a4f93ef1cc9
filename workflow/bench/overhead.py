"""What a run costs beyond its simulator: batches of short runs beside a plain shell loop."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.engines.model import Engine
from replication.report.parts.bench_model import Figure
from replication.study.files import write_text
from replication.study.scenario import Scenario, canonical_json
from replication.study.storage.table import write_table

from bench.engine import Size, programs
from bench.scenario import dumbbell
from bench.timed import Announce, Timed, timed

#: Goals, for every engine.
BEYOND_AT_MOST_S = 0.005
LOOP_AT_MOST = 1.05
#: The half of the 0.6 s that it took before.
BATCH_START_AT_MOST_S = 0.3
#: What a start costs is what a run takes in which next to nothing is simulated.
START_S = 0.01
SHORT_S = 2.0
#: Runs of a batch beside those of ns3: a start of the others takes longer.
_SHARE = {"ns3": 1.0, "ns2": 0.25, "linux": 0.1}
_LOOP = 'for folder in "$@"; do cd "$folder" && {} || exit 1; done'


def short_runs(root: Path, size: Size, folder: Path, say: Announce) -> list[Figure]:
    """Return for each engine what a batch of short runs costs beyond its simulators and a loop."""
    found = []
    for name, program in programs(root).items():
        count = max(4, round(size.short_runs * _SHARE[name]))
        rates_bps = [1e6 + 1e6 * i / count for i in range(count)]
        scenarios = [dumbbell(name, 1, SHORT_S, rate_bps=r) for r in rates_bps]
        say(f"a batch of {count} short runs on {name}, and the same in a shell loop")
        command = [str(program.resolve()), "--plan", PLAN_FILE, "--output", "."]
        turns = [
            (
                simulate_batch(root, ENGINES[name], program, scenarios, folder / "batch"),
                loop(ENGINES[name], command, scenarios, folder / "loop"),
            )
            for _ in range(size.turns)
        ]
        alone = [dumbbell(name, 1, START_S)]
        starts = [
            simulate_batch(root, ENGINES[name], program, alone, folder / "start")
            for _ in range(size.turns)
        ]
        found += [_batch_start(name, starts), *_figures(name, count, turns)]
    return found


def _batch_start(engine: str, turns: list[tuple[Timed, Timed]]) -> Figure:
    beyond_s = min(batch.wall_s - simulator.wall_s for batch, simulator in turns)
    return Figure(
        id=f"batch-start-{engine}",
        title=f"Start and end of a batch on {engine}",
        value=round(beyond_s, 3),
        unit="s",
        how=f"wall time of a batch of one run - that of its simulator, the least of {len(turns)}",
        at_most=BATCH_START_AT_MOST_S,
    )


def _figures(
    engine: str, count: int, turns: list[tuple[tuple[Timed, Timed], Timed]]
) -> list[Figure]:
    of_turns = f"the least of {len(turns)}"
    # A kernel waits while it boots: a simulator's own time is from its start to its end.
    walls = [batch.wall_s - simulators.wall_s for (batch, simulators), _ in turns]
    cpus = [batch.cpu_s - simulators.cpu_s for (batch, simulators), _ in turns]
    batch_s = min(batch.wall_s for (batch, _), _ in turns)
    return [
        Figure(
            id=f"beyond-{engine}",
            title=f"Beyond the simulator on {engine}, a scenario in a batch of {count}",
            value=round(min(walls) / count, 5),
            unit="s",
            how=f"(wall time - that of its simulators, one by one) / scenarios, {of_turns}",
            at_most=BEYOND_AT_MOST_S,
        ),
        Figure(
            id=f"beyond-cpu-{engine}",
            title=f"Our own CPU time on {engine}, a scenario of that batch",
            value=round(min(cpus) / count, 5),
            unit="s",
            how=f"(CPU time - CPU time of its simulators) / scenarios, {of_turns}",
        ),
        Figure(
            id=f"beyond-loop-{engine}",
            title=f"That batch on {engine} beside a shell loop that only writes the tables",
            value=round(batch_s / min(looped.wall_s for _, looped in turns), 4),
            unit="1",
            how=f"wall time of the batch over wall time of the loop, one core, {of_turns} of each",
            at_most=LOOP_AT_MOST,
        ),
    ]


def simulate_batch(
    root: Path, engine: Engine, program: Path, scenarios: list[Scenario], folder: Path
) -> tuple[Timed, Timed]:
    """Run scenarios as one job of the workflow; return its time and that of its simulators."""
    name, fingerprint = engine.name, engine.fingerprint(root)
    document = {s.id: s.model_dump(mode="json") for s in scenarios}
    rows = [{"scenario": scenario, "engine": name, "batch": "bench"} for scenario in document]
    shutil.rmtree(folder, ignore_errors=True)
    write_text(folder / "scenarios" / "design.json", canonical_json(document))
    write_table(folder / "design.csv", rows, ("scenario", "engine", "batch"))
    words = ["--program", str(program.resolve()), "--fingerprint", fingerprint]
    words += ["--design", "design.csv", "--batch", "bench"]
    words += ["--store", f"{name}-{fingerprint}", "--usage", "usage.json"]
    words += ["--flows", "flows.parquet", "--series", "series.parquet"]
    used = timed([sys.executable, "-m", "replication.cli", "step", "simulate", *words], folder)
    runs = json.loads((folder / "usage.json").read_text(encoding="utf-8"))["runs"]
    wall_s, cpu_s = (math.fsum(run[key] for run in runs) for key in ("wall_s", "cpu_s"))
    return used, Timed(wall_s, cpu_s, output="")


def loop(engine: Engine, program: list[str], scenarios: list[Scenario], folder: Path) -> Timed:
    """Run a program in a shell loop, a folder with scenario.json and plan for each scenario."""
    folders = [(folder / str(number)).resolve() for number in range(len(scenarios))]
    shutil.rmtree(folder, ignore_errors=True)
    for own, scenario in zip(folders, scenarios, strict=True):
        write_inputs(own, scenario, engine)
    quoted = " ".join(f"'{word}'" if word != ">" else word for word in program)
    environment = os.environ | {"LC_ALL": "C"}
    return timed(
        ["bash", "-c", _LOOP.format(quoted), "bash", *map(str, folders)], folder, environment
    )
