"""Measure the project's speed as ratios within one run: `python -m tests.bench` in its root.

- A batch of short runs against a plain shell loop over the same simulator, for each engine that is
  built here: what checking, keeping and gathering results costs.
- A rerun with nothing to do, at tiers quick and paper, where their reports are up to date.

Everything takes turns and the minimum counts, since other load can only add time. It prints a table
and keeps nothing.
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measurements.scenarios import dumbbell, linux_tcp, tcp
from replication.design.design import write_scenarios
from replication.engines.catalogue import ENGINES
from replication.engines.input_file import INPUT_FILE, write_inputs
from replication.study.scenario import Scenario

from tests.workflow.project import ROOT, Project

TURNS = 3
#: Number of short runs in each engine's batch; ns-2 and a kernel take longer to start.
RUNS = {"ns3": 200, "ns2": 50, "linux": 20}
#: Code of the rule's script.
BATCH = """
import sys
from pathlib import Path
from replication.simulate.runtime import Launch
from replication.simulate.run import designed_batch, open_job, run_batch
from replication.simulate.store import Progress

engine, scenarios = designed_batch(Path("design.csv"), "bench")
launch = Launch("native", engine, sys.argv[1], store=f"{engine}-bench")
job = open_job(Path(), launch, scenarios)
run_batch(job, "bench", "", Path("usage"), (Path("flows"), Path("series")), Progress())
"""


def timed(command, folder):
    """Return the wall seconds of a command in `folder`; a failure ends the bench."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: {shlex.join(map(str, command))[:120]} failed: {done.stderr[-500:]}")
    return time.monotonic() - started


def batch(engine, program, scenarios, folder):
    """Run scenarios as the workflow's rule does."""
    shutil.rmtree(folder, ignore_errors=True)
    write_scenarios({s.id: s for s in scenarios}, "design", folder)
    rows = [f"{s.id},{engine},bench" for s in scenarios]
    (folder / "design.csv").write_text("\n".join(["scenario,engine,batch", *rows]))
    return timed([sys.executable, "-c", BATCH, program], folder)


def loop(engine, program, scenarios, folder):
    """Run a program in a shell loop over folders that hold its input."""
    shutil.rmtree(folder, ignore_errors=True)
    folders = [folder / str(number) for number in range(len(scenarios))]
    for run_folder, scenario in zip(folders, scenarios, strict=True):
        write_inputs(run_folder, scenario, ENGINES[engine])
    command = f"{shlex.quote(str(program))} --input {INPUT_FILE} --output ."
    script = f'for folder in "$@"; do cd "$folder" && {command} || exit 1; done'
    return timed(["bash", "-c", script, "bash", *folders], folder)


def batch_line(engine, work):
    """Compare a batch of short runs at different rates with a shell loop, by turns."""
    title = f"{engine}: batch of {RUNS[engine]} short runs / shell loop"
    program = (ROOT / ENGINES[engine].program(ROOT, Path("data/reproduced"))).resolve()
    if not program.is_file():
        return title, "not built: make engines"
    flow = linux_tcp("t") if engine == "linux" else tcp("t", "newreno")
    rates = [1e6 + 1e4 * i for i in range(RUNS[engine])]
    documents = [dumbbell([flow], duration_s=2, rate_bps=bps, access_bps=1e8) for bps in rates]
    run = (engine, program, [Scenario.model_validate(document) for document in documents])
    turns = [(batch(*run, work / "batch"), loop(*run, work / "loop")) for _ in range(TURNS)]
    ours_s, other_s = (min(times) for times in zip(*turns, strict=True))
    return title, f"{ours_s / other_s:.2f}", f"{ours_s:.2f} s", f"{other_s:.2f} s"


def rerun_line(tier):
    """Time a run with nothing to do; skip it if it has work."""
    title, config = f"no-op, tier {tier}", {"tier": tier, "engines": "available"}
    project = Project(ROOT)
    if project.jobs("all", **config):
        return title, f"not up to date: make report TIER={tier}"
    times = []
    for _ in range(TURNS):
        started = time.monotonic()
        project.snakemake("all", **config)
        times.append(time.monotonic() - started)
    return title, "", f"{min(times):.2f} s"


def main():
    """Measure everything and print the table."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        lines = [batch_line(engine, Path(name)) for engine in RUNS]
    lines += [rerun_line(tier) for tier in ("quick", "paper")]
    for title, ratio, *times in [("", "ratio", "ours", "other"), *lines]:
        print(f"{title:44}{ratio:>6}  " + "".join(f"{time:>10}" for time in times))


if __name__ == "__main__":
    main()
