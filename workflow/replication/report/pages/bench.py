"""The report's page on speed: what `make bench` measured, each figure beside its goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pandas as pd

from replication.engines.ns3_version import NS3_VERSION
from replication.plan.code import code_hash
from replication.report.charts.speed import goal_figure, speedup_figure
from replication.report.parts.bench_model import (
    MODULE,
    Alternative,
    Bench,
    EngineCost,
    Figure,
    Memory,
    Prediction,
    SetUp,
    Stage,
    Sweep,
    read_bench,
)
from replication.report.parts.figure import FigureView, write_figures
from replication.report.parts.source import Source
from replication.report.parts.verdicts.number import MISSING, count, duration, significant
from replication.report.parts.verdicts.verdict import Badge
from replication.study.errors import InputError

MET = Badge("met", "reproduced", "the goal, set before anything was measured, is met")
MISSED = Badge("missed", "failed", "the goal is not met")
NO_GOAL = Badge("no goal", "untestable", "only measured")
NOT_MEASURED = Badge("not measured", "untestable", "what it needs is not here")
NOT_JUDGED = Badge("not judged", "untestable", "a reduced bench is too short to judge by")

#: What a table of the page tells of.
R = TypeVar("R")


@dataclass(frozen=True)
class FigureRow:
    """A figure beside its goal, as the page shows them."""

    figure: Figure
    value: str
    goal: str
    verdict: Badge


@dataclass(frozen=True)
class BenchTable:
    """A table of the page; columns whose heads begin with # hold numbers."""

    id: str
    title: str
    intro: str
    columns: list[str]
    rows: list[list[str]]

    @classmethod
    def of(
        cls, id: str, title: str, intro: str, rows: list[R], columns: dict[str, Callable[[R], str]]
    ) -> BenchTable:
        """Fill each column with what its function says of each row."""
        filled = [[show(row) for show in columns.values()] for row in rows]
        return cls(id, title, intro, list(columns), filled)


@dataclass(frozen=True)
class BenchView:
    """The page; `problem` says why there is nothing to show."""

    problem: str = ""
    answer: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    charts: tuple[FigureView, ...] = ()
    figures: tuple[FigureRow, ...] = ()
    tables: tuple[BenchTable, ...] = ()


def bench_view(source: Source, out: Path) -> BenchView | None:
    """Return the page, its charts written below `out`; None where nothing was measured."""
    try:
        bench = read_bench(source.data)
    except InputError as error:
        return BenchView(problem=str(error))
    return None if bench is None else _view(bench, out)


def _view(bench: Bench, out: Path) -> BenchView:
    speedups = pd.DataFrame([row.model_dump() for row in bench.speedups])
    charts = [goal_figure(_shares(bench)), speedup_figure(speedups)]
    tables = (
        _engines(bench.engines),
        _builds(bench.builds),
        _ways(bench.ways),
        _predictions(bench.predictions),
        _stages(bench.stages),
        _sweeps(bench.sweeps),
        _set_up(bench.set_up),
        _memory(bench.memory),
    )
    return BenchView(
        answer=_answer(bench),
        facts=_facts(bench),
        charts=tuple(write_figures([chart for chart in charts if chart], out)),
        figures=tuple(_figure(figure, bench.quick) for figure in bench.figures),
        tables=tuple(table for table in tables if table.rows),
    )


def _shares(bench: Bench) -> pd.DataFrame:
    """Return the figures that a goal judges, as `goal_figure` takes them."""
    rows = [
        {"figure": f.title, "share": round(share, 4), "met": "met" if f.met else "missed"}
        for f in bench.figures
        if not bench.quick and (share := f.share_of_goal) is not None
    ]
    return pd.DataFrame(rows, columns=["figure", "share", "met"])


def _answer(bench: Bench) -> str:
    met = [figure.met for figure in bench.figures if figure.met is not None]
    if bench.quick or not met:
        return "A reduced bench: it shows that everything can be measured, and judges nothing."
    return f"{sum(met)} of {len(met)} goals are met, on {bench.cores} cores."


def _facts(bench: Bench) -> tuple[tuple[str, str], ...]:
    facts = [("Measured", bench.written), ("Machine", bench.machine)]
    facts.append(("Cores used", str(bench.cores)))
    if bench.others_share is not None:
        facts.append(("CPU time that other programs took meanwhile", f"{bench.others_share:.0%}"))
    if bench.code != code_hash(MODULE):
        facts.append(("Code", "the bench or what it times has changed since: `make bench`"))
    if bench.quick:
        facts.append(("Reduced", "a quick bench: runs too short to judge the goals by"))
    return tuple(facts)


def _figure(figure: Figure, quick: bool) -> FigureRow:
    goal = MISSING
    if figure.at_most is not None:
        goal = f"at most {_goal(figure.at_most, figure.unit)}"
    elif figure.at_least is not None:
        goal = f"at least {_goal(figure.at_least, figure.unit)}"
    return FigureRow(
        figure=figure,
        value=MISSING if figure.value is None else _quantity(figure.value, figure.unit),
        goal=goal,
        verdict=_verdict(figure, quick),
    )


def _verdict(figure: Figure, quick: bool) -> Badge:
    if figure.value is None:
        return NOT_MEASURED
    return NOT_JUDGED if quick else {True: MET, False: MISSED, None: NO_GOAL}[figure.met]


def _quantity(value: float, unit: str) -> str:
    """Return a value with its unit; seconds below one are said in milliseconds."""
    if unit == "1":
        return significant(value)
    if unit == "s" and abs(value) < 1:
        return f"{significant(value * 1e3)} ms"
    return f"{significant(value)} {unit}"


def _goal(value: float, unit: str) -> str:
    """Return a goal as it was set, without digits that nobody wrote."""
    return f"{value:g}" if unit == "1" else _quantity(value, unit)


def _per_packet(cost_s: float) -> str:
    return f"{cost_s * 1e6:.1f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:.0f}"


def _known(value: float | None, show: Callable[[float], str]) -> str:
    return MISSING if value is None else show(value)


def _engines(rows: list[EngineCost]) -> BenchTable:
    first = rows[0].cpu_per_packet_s if rows else 1.0
    return BenchTable.of(
        "per-packet",
        "One network on every engine",
        "The same dumbbell with NewReno flows, as each engine has it; packets are those that "
        "the bottleneck carried, CPU time is of the whole run, its start included. Neither ns-2 "
        "nor the kernel counts its events.",
        rows,
        {
            "Engine": lambda row: row.engine,
            "Version": lambda row: row.version,
            "#Packets": lambda row: count(row.packets),
            "#CPU time, s": lambda row: significant(row.cpu_s),
            "#CPU time a packet, µs": lambda row: _per_packet(row.cpu_per_packet_s),
            f"#beside {rows[0].engine if rows else ''}": lambda row: _ratio(
                row.cpu_per_packet_s / first
            ),
            "#Packets a second": lambda row: count(row.packets / row.cpu_s),
            "#Events a second": lambda row: _known(row.events_per_s or None, count),
        },
    )


def _builds(rows: list[EngineCost]) -> BenchTable:
    default = next((row.cpu_per_packet_s for row in rows if row.version == NS3_VERSION), 1.0)
    return BenchTable.of(
        "builds",
        "Other versions of ns-3",
        "The same network and program on each version that was built here. 3.37 is Debian’s, "
        "compiled as a release, without ns-3’s assertions; the wheels have them. Results "
        "differ between versions: the ladder on the page of the engines says where.",
        rows,
        {
            "Version": lambda row: row.version,
            "#Packets": lambda row: count(row.packets),
            "#CPU time, s": lambda row: significant(row.cpu_s),
            "#CPU time a packet, µs": lambda row: _per_packet(row.cpu_per_packet_s),
            "#beside default": lambda row: _ratio(row.cpu_per_packet_s / default),
        },
    )


def _ways(rows: list[Alternative]) -> BenchTable:
    ours_s = rows[0].cpu_per_packet_s or 1.0
    return BenchTable.of(
        "ways",
        "What a user would do instead",
        "The same dumbbells on one core, the first three ways by turns, of which the "
        "quickest stands here. The flow monitor runs in a C++ program "
        "with the same network and sockets as ours, and counts the same packets; the "
        "Python bindings are driven by a script of the usual helpers. Only the first way checks, "
        "gathers its results. A start is a run in which next to nothing is simulated.",
        rows,
        {
            "Way": lambda row: row.name,
            "Metrics": lambda row: f"{row.metrics} ({row.reason})" if row.reason else row.metrics,
            "#Packets": lambda row: _known(row.packets, count),
            "#CPU time, s": lambda row: _known(row.cpu_s, significant),
            "#Wall time, s": lambda row: _known(row.wall_s, significant),
            "#of it one start, s": lambda row: _known(row.start_s, significant),
            "#CPU time a packet, µs": lambda row: _known(row.cpu_per_packet_s, _per_packet),
            "#beside ours": lambda row: _known(
                row.cpu_per_packet_s, lambda cost_s: _ratio(cost_s / ours_s)
            ),
        },
    )


def _predictions(rows: list[Prediction]) -> BenchTable:
    return BenchTable.of(
        "predictions",
        "Predicted and used CPU time",
        "The cost model decides batches, their order and the time that is said before a run "
        "starts. Of the last report’s finished runs: a factor is the larger of predicted and used "
        "over the smaller, of each scenario.",
        rows,
        {
            "Engine": lambda row: row.engine,
            "Study": lambda row: row.study,
            "#Scenarios": lambda row: count(row.scenarios),
            "#Predicted, s": lambda row: significant(row.predicted_s),
            "#Used, s": lambda row: significant(row.used_s),
            "#Predicted over used": lambda row: _ratio(row.total_ratio),
            "#Median factor": lambda row: _ratio(row.median_factor),
            "#90th percentile": lambda row: _ratio(row.p90_factor),
            "#without the machine’s speed": lambda row: _known(row.p90_factor_apart, _ratio),
        },
    )


def _stages(rows: list[Stage]) -> BenchTable:
    simulate_s = next((row.wall_s for row in rows if row.name == "simulate"), 0.0)
    return BenchTable.of(
        "stages",
        "Stages",
        "Of a whole run of tier quick on ns-3, and of starting our programs.",
        rows,
        {
            "Stage": lambda row: row.name,
            "Measured as": lambda row: row.how,
            "#Jobs": lambda row: count(row.jobs),
            "#Wall time": lambda row: duration(row.wall_s),
            "#beside simulate": lambda row: (
                _ratio(row.wall_s / simulate_s) if simulate_s else MISSING
            ),
        },
    )


def _sweeps(rows: list[Sweep]) -> BenchTable:
    return BenchTable.of(
        "sweeps",
        "How it grows",
        "Sweeps of short runs through the whole workflow, on an engine that returns at once: "
        "all that is measured is the workflow’s own. Reading the configuration and designing is "
        "the plan; the graph of jobs is Snakemake’s.",
        rows,
        {
            "Scenarios": lambda row: count(row.scenarios),
            "#Jobs": lambda row: count(row.jobs),
            "#Plan, s": lambda row: significant(row.plan_s),
            "#Graph, s": lambda row: significant(row.dag_s),
            "#Whole, s": lambda row: significant(row.total_s),
            "#A scenario, ms": lambda row: significant(
                1e3 * row.cores * row.total_s / row.scenarios
            ),
            "#Nothing to do, s": lambda row: significant(row.no_op_s),
            "#Snakemake, MB": lambda row: _megabytes(row.snakemake_bytes),
            "#Largest job, MB": lambda row: (
                f"{_megabytes(row.largest_worker_bytes)} ({row.largest_worker})"
            ),
            "#Entries of the store": lambda row: count(row.store_entries),
            "#Files": lambda row: count(row.files),
            "#On disk, MB": lambda row: _megabytes(row.disk_bytes),
        },
    )


def _set_up(rows: list[SetUp]) -> BenchTable:
    return BenchTable.of(
        "set-up",
        "Set-up",
        "What an installation fetches and unpacks, and the time from what was fetched to "
        "what is ready; how long fetching takes is the network’s. Beside each part what it was "
        "before: packages resolved and compiled, as pip does by itself, and all of the wheel.",
        rows,
        {
            "Part": lambda row: row.name,
            "#Fetched, MB": lambda row: _megabytes(row.downloaded_bytes),
            "#Unpacked, MB": lambda row: _megabytes(row.unpacked_bytes),
            "#Time, s": lambda row: significant(row.wall_s),
        },
    )


def _memory(rows: list[Memory]) -> BenchTable:
    words = {"duration_s": "seconds simulated", "flows": "flows"}
    return BenchTable.of(
        "memory",
        "Memory of one run",
        "Peak resident size of the largest process of a run, while the duration grows and "
        "while the flows do; ns-2 and Linux are started by a small Python program of ours.",
        rows,
        {
            "Engine": lambda row: row.engine,
            "What grows": lambda row: words[row.varied],
            "#to": lambda row: significant(row.value),
            "#Peak, MB": lambda row: f"{row.peak_memory_bytes / 1e6:.1f}",
            "#series.csv, kB": lambda row: f"{row.series_bytes / 1e3:.1f}",
        },
    )
