"""The section on published traces: figures of the windows beside ours, and who is nearer."""

from __future__ import annotations

from dataclasses import dataclass

from replication.compare.trace_comparison import COMPARISON, NEARNESS, RAW, WINDOWS
from replication.measure.cwnd import LABELS
from replication.measure.trace_folder import TABLE_PREFIX
from replication.report.charts.figure import Figure, name_of, with_prefix
from replication.report.charts.trace import overlay_figures
from replication.report.pages import number as numbers
from replication.report.pages.source import Source, of_study
from replication.study.storage.parquet import read_parquet
from replication.study.storage.table import (
    TRACE_COLUMNS,
    TRACE_NEARNESS_COLUMNS,
    Row,
    read_frame,
    read_rows,
)
from replication.study.study import Study

FILES = (COMPARISON, NEARNESS)


@dataclass(frozen=True)
class TraceRow:
    """A figure of one flow: its row on each engine of the section (None: not run), and any one."""

    metric: str
    any_row: Row
    engines: list[Row | None]


@dataclass(frozen=True)
class TraceView:
    """One published trace."""

    name: str
    html_id: str
    rows: list[TraceRow]


@dataclass(frozen=True)
class NearnessRow:
    """For one metric, to how many of the flows each engine is the nearest."""

    metric: str
    flows: str
    shares: list[str]


@dataclass(frozen=True)
class TraceSection:
    """All published traces of a study."""

    engines: list[str]
    traces: list[TraceView]
    nearness: list[NearnessRow]
    missing: list[str]


def trace_rows(source: Source, study: Study) -> list[Row]:
    """Return the study's rows of the comparison; none where it was not made."""
    path = source.data / COMPARISON
    return of_study(read_rows(path, TRACE_COLUMNS), study.id) if path.is_file() else []


def trace_figures(source: Source, study: Study) -> dict[str, list[Figure]]:
    """Return the overlays of a study's traces by experiment; none where nothing was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return {}
    windows = read_parquet(source.data / WINDOWS).to_pandas()
    comparison = read_frame(source.data / COMPARISON)
    ours = (table[table["study"] == study.id] for table in (windows, comparison))
    drawn = {figure.id: figure for figure in overlay_figures(*ours)}
    homes = {row["trace"]: row["experiment"] for row in rows}
    order = [table.id.removeprefix(TABLE_PREFIX) for table in study.tables]
    found: dict[str, list[Figure]] = {}
    for trace in sorted(homes, key=order.index):
        figure = drawn[name_of("", "trace", trace)]
        found.setdefault(homes[trace], []).extend(with_prefix([figure], study.id))
    return found


def trace_section(source: Source, study: Study) -> TraceSection | None:
    """Gather the section; None where no trace of the study was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return None
    engines = [e for e in source.shown_engines(study.id) if any(r["engine"] == e for r in rows)]
    by_trace: dict[str, list[Row]] = {}
    for row in rows:
        by_trace.setdefault(row["trace"], []).append(row)
    return TraceSection(
        engines=engines,
        traces=[
            TraceView(name, f"compared={name_of(name)}", _rows(own, engines))
            for name, own in by_trace.items()
        ],
        nearness=_nearness(source, study, engines),
        missing=[name for name, own in by_trace.items() if own[0]["evidence"] != RAW],
    )


def _rows(rows: list[Row], engines: list[str]) -> list[TraceRow]:
    grouped: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        grouped.setdefault((row["flow"], row["metric"]), {})[row["engine"]] = row
    return [
        TraceRow(LABELS[metric], next(iter(found.values())), [found.get(e) for e in engines])
        for (_, metric), found in grouped.items()
    ]


def _nearness(source: Source, study: Study, engines: list[str]) -> list[NearnessRow]:
    path = source.data / NEARNESS
    rows = of_study(read_rows(path, TRACE_NEARNESS_COLUMNS), study.id) if path.is_file() else []
    grouped: dict[str, dict[str, Row]] = {}
    for row in rows:
        grouped.setdefault(row["metric"], {})[row["engine"]] = row
    return [
        NearnessRow(
            metric=LABELS[metric],
            flows=next(iter(by_engine.values()))["flows"],
            shares=[
                numbers.significant(float(by_engine[e]["share"])) if e in by_engine else "–"
                for e in engines
            ],
        )
        for metric, by_engine in grouped.items()
    ]
