"""What more cores would give: the schedule of the finished batches, simulated.

Each batch takes what it took here. Snakemake starts the heavy ones first, a job when a core is
free; a cluster adds what its own profile says: jobs are submitted one after the other, start some
seconds later, and their end is seen at the next look.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from pathlib import Path

from replication.report.parts.bench_model import Figure, Speedup
from replication.study.files import read_yaml

from bench.cost_model import finished_batches

CORES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
PROFILE = Path("workflow/profiles/slurm/config.yaml")
#: Of a job: from sbatch to its answer, and from there to its start on a free node (the least
#: interval between two scheduling passes, Slurm's SchedulerParameters: sched_min_interval is 2 s).
SUBMIT_S, START_S = 0.1, 2.0
#: From the start of a job to its first simulation, here: Python and its libraries.
BATCH_START_S = 0.5


@dataclass(frozen=True)
class Overhead:
    """What a scheduler adds to each job, in seconds; `look_s` is between two looks."""

    submit_s: float = 0.0
    start_s: float = 0.0
    look_s: float = 0.0


def slurm_overhead(root: Path) -> Overhead:
    """Return what Slurm adds under the project's own profile."""
    look_s = read_yaml(root / PROFILE)["seconds-between-status-checks"]
    return Overhead(SUBMIT_S, START_S, float(look_s))


def wall_s(jobs_s: list[float], cores: int, overhead: Overhead) -> float:
    """Return how long `jobs_s` take on `cores`, the longest first, each on one core."""
    free = [0.0] * cores
    last = 0.0
    for number, job_s in enumerate(sorted(jobs_s, reverse=True), 1):
        submitted = number * overhead.submit_s
        ended = max(heapq.heappop(free), submitted) + overhead.start_s + job_s
        if overhead.look_s:
            # The core is free for the next job once Snakemake has looked.
            ended = math.ceil(ended / overhead.look_s) * overhead.look_s
        heapq.heappush(free, ended)
        last = max(last, ended)
    return last


def speedups(root: Path, data: Path) -> list[Speedup]:
    """Return the speed-up of the finished batches below `data` on more and more cores.

    Beside one core without a scheduler. None where nothing ran.
    """
    runs_s = _runs(data)
    batches_s = [BATCH_START_S + math.fsum(runs) for runs in runs_s]
    singles_s = [BATCH_START_S + run for runs in runs_s for run in runs]
    slurm = slurm_overhead(root)
    ways = {
        "one machine": (batches_s, Overhead()),
        "Slurm, batches": (batches_s, slurm),
        "Slurm, a job a run": (singles_s, slurm),
    }
    alone_s = wall_s(batches_s, 1, Overhead())
    return [
        Speedup(
            way=way,
            cores=cores,
            jobs=len(jobs_s),
            wall_s=round(found := wall_s(jobs_s, cores, overhead), 2),
            speedup=round(alone_s / found, 3),
        )
        for way, (jobs_s, overhead) in ways.items()
        if jobs_s
        for cores in CORES
    ]


def most_cores(rows: list[Speedup]) -> list[Figure]:
    """Return the speed-up of each way on as many cores as any; no goal was set for it."""
    return [
        Figure(
            id=f"speedup-{number}",
            title=f"Speed-up on {row.cores} cores: {row.way}",
            value=row.speedup,
            unit="1",
            how=f"one core's time over {row.wall_s:.0f} s of {row.jobs} jobs, simulated from the "
            "last report's batches",
        )
        for number, row in enumerate(row for row in rows if row.cores == max(CORES))
    ]


def _runs(data: Path) -> list[list[float]]:
    """Return the wall seconds of the runs of each finished batch, but for those taken over."""
    found = (
        [float(run["wall_s"]) for run in document["runs"] if not run["reused"]]
        for document in finished_batches(data).values()
    )
    return [own for own in found if own]
