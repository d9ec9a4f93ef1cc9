"""How fast the project is, as ratios within one run: `python -m tests.bench`, from its root.

- A batch of short runs against a plain shell loop over the same simulator, for each engine that is
  built here: what checking, keeping and gathering results costs.
- Our ns-3 program on the wheel against the same program on the ns-3 that NS3_PREFIX names.
- A rerun with nothing to do, at tier quick (run here in a copy) and at tier paper.
- The minutes of the last report of tier paper.

Everything takes turns and the least counts: what else the machine does can only add time. It prints
a table and keeps nothing.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.design.config import Paths
from replication.engines.catalogue import ENGINES
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.engines.ns3 import Prefix, compile_program
from replication.study.errors import InputError
from replication.study.scenario import Scenario, canonical_json

from tests.workflow.project import ROOT, Project, copy_project

sys.path.insert(0, str(ROOT / "tests/engines"))  # its modules are imported by file there
from tests.engines.engine_scenarios import dumbbell, linux_tcp, tcp

DATA = ROOT / Paths().data
TURNS = 3
#: Short runs of each engine's batch: a start of ns-2 and of a kernel takes longer.
RUNS = {"ns3": 200, "ns2": 50, "linux": 20}
SHORT_S = 2.0
#: The run by which builds of ns-3 are compared, in simulated seconds.
LONG_S = 60.0
NOTHING_DONE = "Nothing to be done"
#: Rules that are no part of a report, by parts of their names.
OTHERS = ("build_", "fetch_", "sensitivity", "expla", "map", "today")


@dataclass(frozen=True)
class Row:
    """A line of the table: a ratio of two times in seconds, or one time, or why there is none."""

    title: str
    ours: float | None = None
    other: float | None = None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the line's cells: ratio, our time, the other time, note."""
        ratio = f"{self.ours / self.other:.2f}" if self.ours and self.other else ""
        return (self.title, ratio, _seconds(self.ours), _seconds(self.other), self.note)


@dataclass(frozen=True)
class Times:
    """What a command took, with all that it started."""

    wall_s: float
    cpu_s: float


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s" if value < 120 else f"{value / 60:.1f} min"


def say(what: str) -> None:
    """Say on standard error what is measured now."""
    print(f"bench: {what}", file=sys.stderr)


def timed(command: Sequence[str | Path], folder: Path) -> Times:
    """Run a command in `folder` and time it; a failure ends the bench with its last line."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        sys.exit(f"bench: {shlex.join(map(str, command))[:120]} failed: {said}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Times(wall_s, cpu_s)


# -- batches and loops ----------------------------------------------------------------------------


def programs() -> dict[str, Path]:
    """Return the engines whose programs are built here, with their paths."""
    paths = Paths(data=DATA)
    found = {
        name: paths.program(name, engine.fingerprint(ROOT))
        for name, engine in ENGINES.items()
        if engine.is_available(ROOT)
    }
    return {name: program.resolve() for name, program in found.items() if program.is_file()}


def short_scenarios(engine: str, count: int) -> list[Scenario]:
    """Return short runs of one flow at different bottleneck rates."""
    flow = linux_tcp("t") if engine == "linux" else tcp("t", "newreno")
    return [
        Scenario.model_validate(
            dumbbell([flow], duration_s=SHORT_S, rate_bps=1e6 + 1e4 * i, access_bps=1e8)
        )
        for i in range(count)
    ]


#: What the rule's script does.
BATCH = """
import sys
from pathlib import Path
from replication.simulate.process import Limits
from replication.simulate.runtime import Launch
from replication.simulate.run import designed_batch, open_job, run_batch

engine, scenarios = designed_batch(Path("design.csv"), "bench")
launch, limits = Launch("native", engine, Path(sys.argv[1])), Limits(4 * 2**30, 1800.0)
job = open_job(Path(), launch, scenarios, Path(f"{engine}-bench"), limits)
run_batch(job, "bench", Path("usage"), (Path("flows"), Path("series")), None)
"""


def batch(engine: str, program: Path, scenarios: list[Scenario], folder: Path) -> Times:
    """Run scenarios as the workflow's rule does."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "scenarios").mkdir(parents=True)
    document = {s.id: s.model_dump(mode="json") for s in scenarios}
    (folder / "scenarios" / "design.json").write_text(canonical_json(document))
    rows = [f"{s.id},{engine},bench" for s in scenarios]
    (folder / "design.csv").write_text("\n".join(["scenario,engine,batch", *rows]))
    return timed([sys.executable, "-c", BATCH, program], folder)


def loop(engine: str, program: Path, scenarios: list[Scenario], folder: Path) -> Times:
    """Run a program in a shell loop over folders that hold its input."""
    shutil.rmtree(folder, ignore_errors=True)
    folders = [folder / str(number) for number in range(len(scenarios))]
    for own, scenario in zip(folders, scenarios, strict=True):
        write_inputs(own, scenario, ENGINES[engine])
    command = f"{shlex.quote(str(program))} --plan {PLAN_FILE} --output ."
    script = f'for folder in "$@"; do cd "$folder" && {command} || exit 1; done'
    return timed(["bash", "-c", script, "bash", *folders], folder)


def batch_rows(work: Path) -> Iterator[Row]:
    """Compare a batch with a shell loop, on every engine that is built."""
    built = programs()
    for name, count in RUNS.items():
        title = f"{name}: batch of {count} short runs / shell loop"
        if name not in built:
            yield Row(title, note="not built: make engines")
            continue
        say(title)
        scenarios, program = short_scenarios(name, count), built[name]
        turns = [
            (
                batch(name, program, scenarios, work / "batch").wall_s,
                loop(name, program, scenarios, work / "loop").wall_s,
            )
            for _ in range(TURNS)
        ]
        ours_s, loop_s = (min(times) for times in zip(*turns, strict=True))
        yield Row(title, ours_s, loop_s, f"{1e3 * (ours_s - loop_s) / count:.1f} ms a run beyond")


# -- builds of ns-3 -------------------------------------------------------------------------------


def compiled(prefix: Path, folder: Path) -> Path:
    """Compile our ns-3 program against an installed ns-3."""
    compile_program(ROOT, Prefix.find(prefix), folder)
    return folder / "replicate-ns3"


def build_row(work: Path) -> Row:
    """Compare our program on the wheel with that on NS3_PREFIX, in CPU time of the same run."""
    title = "ns3: wheel / NS3_PREFIX"
    named = os.environ.get("NS3_PREFIX")
    wheel = Paths(data=DATA).ns3_wheel(ENGINES["ns3"].version)
    if not named:
        return Row(title, note="NS3_PREFIX names no ns-3")
    if not wheel.is_dir():
        return Row(title, note="the wheel is not here: make engines")
    say(title)
    flows = [tcp(f"t{i}", "newreno", start_s=0.01 * i) for i in range(4)]
    scenario = Scenario.model_validate(
        dumbbell(flows, duration_s=LONG_S, rate_bps=2e7, access_bps=1e8)
    )
    both = [compiled(prefix, work / name) for name, prefix in (("a", wheel), ("b", Path(named)))]
    folders = [work / "on-a", work / "on-b"]
    turns = [
        [
            loop("ns3", program, [scenario], folder).cpu_s
            for program, folder in zip(both, folders, strict=True)
        ]
        for _ in range(TURNS)
    ]
    wheel_s, named_s = (min(times) for times in zip(*turns, strict=True))
    tables = [[(f / "0" / n).read_bytes() for n in ("flows.csv", "series.csv")] for f in folders]
    note = "CPU time; the same bytes" if tables[0] == tables[1] else "CPU time; other results"
    return Row(title, wheel_s, named_s, note)


# -- the workflow ---------------------------------------------------------------------------------


def rerun(project: Project, title: str, **config: str) -> Row:
    """Time a run that has nothing to do; one that has is not started."""
    dry = project.snakemake("all", dry=True, check=False, **config).stdout
    if NOTHING_DONE not in dry:
        return Row(title, note=f"not up to date: make report TIER={config['tier']}")
    say(title)
    times = []
    for _ in range(TURNS):
        started = time.monotonic()
        project.snakemake("all", **config)
        times.append(time.monotonic() - started)
    return Row(title, min(times))


def quick_rows(work: Path) -> list[Row]:
    """Run tier quick on ns3 in a copy of the project, and run it again."""
    project, config = copy_project(work / "project", ROOT), {"tier": "quick", "engines": "ns3"}
    project.snakemake("engines", **config)
    say("tier quick on ns3, in a copy")
    started = time.monotonic()
    project.snakemake("all", **config)
    first = Row("tier quick on ns3, engine built", time.monotonic() - started)
    return [first, rerun(project, "no-op, tier quick", **config)]


def paper_row() -> Row:
    """Return the time in which jobs of the last report of tier paper ran.

    A job's benchmark file, written at its end, holds how long it took.
    """
    title = "last report of tier paper"
    path = DATA / "provenance.json"
    ran = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    tier = ran.get("tier", {}).get("id")
    if tier != "paper":
        return Row(title, note=f"the last report is of tier {tier}" if tier else "no report here")
    spans = []
    folder = DATA / "benchmarks"
    for tsv in folder.rglob("*.tsv"):
        if any(part in tsv.relative_to(folder).parts[0] for part in OTHERS):
            continue
        wall_s = math.fsum(float(line.split("\t")[0]) for line in tsv.read_text().splitlines()[1:])
        spans.append((tsv.stat().st_mtime - wall_s, tsv.stat().st_mtime))
    # Jobs of another day are of another run.
    covered, until = 0.0, path.stat().st_mtime - 86400
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return Row(title, covered, note=f"{', '.join(sorted(ran['engines']))}; while any job ran")


# -- the table ------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """Return rows as an aligned table."""
    lines = [("", "ratio", "ours", "other", ""), *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in (1, 2, 3)), line[4]]
        ).rstrip()
        for line in lines
    )


def main() -> None:
    """Measure everything and print the table."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        work = Path(name)
        rows = [*batch_rows(work), build_row(work), *quick_rows(work)]
    paper = {"tier": "paper", "engines": "available"}
    rows += [rerun(Project(ROOT), "no-op, tier paper", **paper), paper_row()]
    print(table(rows))


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"bench: {error}")
