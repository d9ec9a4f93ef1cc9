"""The section on published traces: figures of the windows beside ours, and who is nearer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replication.compare.raw_samples import SAMPLES
from replication.compare.trace_comparison import COMPARISON, NEARNESS, RAW, WINDOWS
from replication.metrics.cwnd import LABELS
from replication.report.charts.figure import Figure, name_of, with_prefix
from replication.report.charts.time import trace_figures
from replication.report.pages.source import Source, grouped, of_study
from replication.study.storage.parquet import read_parquet
from replication.study.storage.table import (
    TRACE_COLUMNS,
    TRACE_SAMPLE_COLUMNS,
    Row,
    read_frame,
    read_rows,
)
from replication.study.study import Study

FILES = (COMPARISON, NEARNESS, SAMPLES)


def trace_rows(source: Source, study: Study) -> list[Row]:
    """Return the study's rows of the comparison; none where it was not made."""
    path = source.data / COMPARISON
    return of_study(read_rows(path, TRACE_COLUMNS), study.id) if path.is_file() else []


def figures_of_traces(source: Source, study: Study) -> dict[str, list[Figure]]:
    """Return the figure of a study's traces by experiment; none where nothing was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return {}
    windows = read_parquet(source.data / WINDOWS).to_pandas()
    comparison = read_frame(source.data / COMPARISON)
    windows, comparison = (one[one["study"] == study.id] for one in (windows, comparison))
    engine = source.headlines[study.id].engine
    found = {}
    for (experiment,), own in grouped(rows, "experiment").items():
        traces = list(dict.fromkeys(row["trace"] for row in own))
        drawn = trace_figures(windows, comparison, traces, engine)
        found[experiment] = with_prefix(drawn, study.id, experiment)
    return found


def trace_section(source: Source, study: Study) -> dict[str, Any] | None:
    """Gather the section; None where no trace of the study was compared."""
    rows = trace_rows(source, study)
    if not rows:
        return None
    ran = {row["engine"] for row in rows}
    by_trace = {name: own for (name,), own in grouped(rows, "trace").items()}
    return {
        "engines": [engine for engine in source.shown_engines(study.id) if engine in ran],
        "traces": [
            (name, f"compared={name_of(name)}", _by_engine(own, "flow", "metric"))
            for name, own in by_trace.items()
        ],
        "samples": _samples(source, study),
        "missing": [name for name, own in by_trace.items() if own[0]["evidence"] != RAW],
        "labels": LABELS,
    }


def _samples(source: Source, study: Study) -> list[Row]:
    """Return the published first samples and those of the study's primary engine, as shown."""
    path = source.data / SAMPLES
    rows = of_study(read_rows(path, TRACE_SAMPLE_COLUMNS), study.id) if path.is_file() else []
    primary = source.shown_engines(study.id)[:1]
    return [
        {
            **row,
            "minrtt": _in(1e-3, row["minrtt_s"]),
            "our_rtt": _in(1e-3, row["our_rtt_low_s"], row["our_rtt_high_s"]),
            "pacing": _in(1e6, row["first_pacing_rate_bps"]),
            "our_pacing": _in(1e6, row["our_pacing_low_bps"], row["our_pacing_high_bps"]),
            "age": _in(1e-3, row["first_busy_s"]),
            "our_cwnd": _in(1.0, row["our_cwnd_segments"]),
        }
        for row in rows
        if row["engine"] in primary
    ]


def _in(unit: float, *numbers: str) -> str:
    """Return a number, or a range, with three digits in a unit; a dash for none."""
    known = [f"{float(number) / unit:.3g}" for number in numbers if number]
    return " to ".join(dict.fromkeys(known)) or "–"


def _by_engine(rows: Sequence[Row], *keys: str) -> list[dict[str, Row]]:
    """Return the rows that agree in `keys`, by engine."""
    return [{row["engine"]: row for row in same} for same in grouped(rows, *keys).values()]
