"""The last report: what it recorded of its own run, as figures beside their goals.

When a job ran is what its benchmark file says, which Snakemake writes at its end: the file's own
time is the end, the seconds in it are how long the job took. The time between two jobs, in which
Snakemake alone runs, is not in it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.config import study_ids
from replication.report.parts.bench_model import Figure
from replication.report.parts.source import read_provenance
from replication.report.provenance import covered_s

from bench.cost_model import finished_batches

EFFICIENCY_AT_LEAST = 0.95
#: The tail is a part of what efficiency allows the stage to lose.
TAIL_AT_MOST = 0.05
TIER = "paper"
#: Goals: minutes of `make report` at tier paper on ns-3 alone, and on every engine.
MINUTES_AT_MOST = {"ns3": 12.0, "every engine": 18.0}
#: The rules of a report. Those that build engines, and of maps and of the sensitivity, are others.
RULES = (
    *("design_study", "simulate_batch", "collect_results", "evaluate_study", "judge_own_data"),
    *("merge_evaluations", "compare_engines", "run_conformance", "merge_conformance"),
    *("compare_traces", "execute_notebook", "write_provenance", "render_page", "assemble_report"),
)
#: A report's time is none if more than this share of its simulators' CPU time is of earlier runs.
_TAKEN_OVER_AT_MOST = 0.01


@dataclass(frozen=True)
class Job:
    """A finished job: its rule, what it was for, and when it ran, in seconds since 1970."""

    rule: str
    subject: str
    started_s: float
    ended_s: float

    @property
    def wall_s(self) -> float:
        """Return how long it took."""
        return self.ended_s - self.started_s

    @property
    def engine(self) -> str:
        """Return the engine that it ran, or judged by known physics; empty where there is none."""
        of_one = self.rule in ("simulate_batch", "run_conformance")
        return self.subject.partition("-")[0] if of_one else ""


def last_report(root: Path, data: Path, set_up_s: float | None) -> list[Figure]:
    """Return the figures of the report that was finished last below `data`.

    `set_up_s` is what making the environment took; None where it was not measured.
    """
    path = data / "provenance.json"
    provenance = read_provenance(path) if path.is_file() else {}
    batches = finished_batches(data)
    jobs = report_jobs(data, batches)
    return [
        *_simulate_stage(provenance, list(batches.values())),
        *_each_engine(provenance, batches, jobs),
        *_minutes(unfit(root, provenance, batches), provenance, jobs, set_up_s),
    ]


def report_jobs(data: Path, batches: Iterable[str]) -> list[Job]:
    """Return the jobs of the report: of its simulations those of the designs' `batches`."""
    folder, wanted, found = data / "benchmarks", set(batches), []
    for path in sorted(folder.rglob("*.tsv")):
        rule, *subject = path.relative_to(folder).with_suffix("").parts
        with path.open(encoding="utf-8", newline="") as file:
            wall_s = math.fsum(float(row["s"]) for row in csv.DictReader(file, delimiter="\t"))
        ended_s = path.stat().st_mtime
        job = Job(rule, "/".join(subject), ended_s - wall_s, ended_s)
        if rule in RULES and (rule != "simulate_batch" or job.subject in wanted):
            found.append(job)
    return found


def _simulate_stage(provenance: dict[str, Any], batches: list[dict[str, Any]]) -> list[Figure]:
    """Return efficiency and tail of the stage; none where all its runs were taken over."""
    simulate = provenance.get("simulate", {})
    if simulate.get("efficiency") is None:
        return []
    tier, cores = provenance["tier"]["id"], provenance["platform"]["cores"]
    ran = [(b["started"], b["finished"]) for b in batches if _fresh_cpu_s(b) > 0]
    return [
        Figure(
            id="efficiency-report",
            title=f"Efficiency of the last report's simulate stage, tier {tier}",
            value=simulate["efficiency"],
            unit="1",
            how=f"simulators' CPU over cores x wall time, {simulate['scenarios']} runs",
            at_least=EFFICIENCY_AT_LEAST,
        ),
        Figure(
            id="tail-report",
            title="Tail of the last report's simulate stage",
            value=round(tail_s(ran, cores) / simulate["wall_s"], 4),
            unit="1",
            how=f"wall time after {cores} batches ran side by side for the last time, over the "
            "stage's; other jobs may have had the cores meanwhile",
            at_most=TAIL_AT_MOST,
        ),
    ]


def tail_s(intervals: Iterable[tuple[float, float]], cores: int) -> float:
    """Return the seconds from when `cores` of the intervals last ran side by side to the end."""
    spans = list(intervals)
    steps = sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans])
    running, full = 0, min((start for start, _ in spans), default=0.0)
    for moment, step in steps:
        if running >= cores:
            full = moment
        running += step
    return (steps[-1][0] - full) if steps else 0.0


def _each_engine(
    provenance: dict[str, Any], batches: dict[str, dict[str, Any]], jobs: list[Job]
) -> list[Figure]:
    """Return how much of its batches' jobs each engine's simulators had."""
    wall_s = {job.subject: job.wall_s for job in jobs if job.rule == "simulate_batch"}
    found = []
    for engine in ENGINES:
        own = [
            (_fresh_cpu_s(batch), wall_s[name])
            for name, batch in batches.items()
            if batch["engine"] == engine and name in wall_s and _fresh_cpu_s(batch) > 0
        ]
        if not own:
            continue
        cpu_s, job_s = (math.fsum(values) for values in zip(*own, strict=True))
        found.append(
            Figure(
                id=f"efficiency-{engine}",
                title=f"Efficiency of the last report's simulate jobs on {engine}",
                value=round(cpu_s / job_s, 4),
                unit="1",
                how=f"simulators' CPU over wall time of {len(own)} jobs, a core each, their start "
                f"and end included, tier {provenance.get('tier', {}).get('id')}",
                at_least=EFFICIENCY_AT_LEAST,
            )
        )
    return found


def _fresh_cpu_s(batch: dict[str, Any]) -> float:
    return math.fsum(run["cpu_s"] for run in batch["runs"] if not run["reused"])


def unfit(root: Path, provenance: dict[str, Any], batches: dict[str, dict[str, Any]]) -> str:
    """Return why the last report says nothing of one from a fresh clone; empty if it does.

    Of one with ns-3 built from its sources at hand, that is.
    """
    if not provenance:
        return "no report is finished here"
    if (its := provenance["tier"]["id"]) != TIER:
        return f"the last report is of tier {its}"
    if set(provenance["studies"]) != set(study_ids(root)):
        return "the last report has not every study"
    if not provenance["engines"].get("ns3", {}).get("from_source"):
        return "the last report ran no ns-3 that is built from its sources"
    all_s = math.fsum(run["cpu_s"] for batch in batches.values() for run in batch["runs"])
    fresh_s = math.fsum(map(_fresh_cpu_s, batches.values()))
    if fresh_s < (1 - _TAKEN_OVER_AT_MOST) * all_s:
        return f"the last report took {1 - fresh_s / all_s:.0%} of its simulations over"
    return ""


def _minutes(
    reason: str, provenance: dict[str, Any], jobs: list[Job], set_up_s: float | None
) -> list[Figure]:
    """Return the minutes of a report on ns-3 alone, and on every engine."""
    engines = set(provenance.get("engines", {}))
    whole_s = covered_s((job.started_s, job.ended_s) for job in jobs)
    made_s = set_up_s or 0.0
    summed = f"{whole_s:.0f} s in which a job of the last report ran"
    lacks = f"the last report ran {' and '.join(sorted(engines))} alone"
    alone = [job.wall_s for job in jobs if job.engine in ("", "ns3")]
    share = math.fsum(alone) / (math.fsum(job.wall_s for job in jobs) or 1.0)
    estimate = f"{summed}, times the {share:.3f} of its jobs' time that no other engine ran in"
    rest = f", and {made_s:.0f} s of set-up; without downloads, and Snakemake's own time"
    return [
        _report_minutes("ns3", reason, share * whole_s + made_s, estimate + rest),
        _report_minutes(
            "every engine",
            reason or (lacks if engines < set(ENGINES) else ""),
            whole_s + made_s,
            summed + rest,
        ),
    ]


def _report_minutes(engines: str, reason: str, wall_s: float, how: str) -> Figure:
    return Figure(
        id=f"report-{TIER}-{engines.replace(' ', '-')}",
        title=f"Tier {TIER} of every study on {engines}, from set-up to the report",
        value=None if reason else round(wall_s / 60, 2),
        unit="min",
        how=reason or how,
        at_most=MINUTES_AT_MOST[engines],
    )
