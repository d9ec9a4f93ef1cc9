"""A point's page: what was run there, on what, with which parameters, and what came out.

A reader comes here from a number or a claim: the first replicate over time, the command that runs
it again, the flows of every replicate, and the numbers that rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from replication.metrics.results import Results
from replication.report.charts.data import (
    DrawnRun,
    flow_algorithm,
    read_series,
    runs_of,
)
from replication.report.charts.run import run_picture
from replication.report.pages.shown import MISSING, significant
from replication.report.pages.source import Source, grouped, point_links
from replication.study.storage.table import Row
from replication.study.study import Experiment, Study
from replication.verdicts.verdict_table import is_supported

#: Replicates and rows of flows that a page shows for each engine; the Parquet files have all.
SHOWN_ROWS = 3
#: Column of the flows, its heading and its factor to the unit there.
FLOW_COLUMNS = (
    ("throughput_bps", "Throughput (Mbit/s)", 1e-6),
    ("goodput_bps", "Goodput (Mbit/s)", 1e-6),
    ("delay_mean_s", "Delay, mean (ms)", 1e3),
    ("delay_p95_s", "Delay, 95 % (ms)", 1e3),
    ("rtt_mean_s", "RTT, mean (ms)", 1e3),
    ("packets_sent", "Sent", 1.0),
    ("packets_received", "Received", 1.0),
    ("packets_dropped", "Dropped", 1.0),
    ("retransmissions", "Sent again", 1.0),
    ("timeouts", "Timeouts", 1.0),
)


#: The rows of a table by scenario and engine.
ByRun = Mapping[tuple[str, str], pd.DataFrame]


def point_pages(source: Source, study: Study, results: Results) -> Iterator[dict[str, Any]]:
    """Yield the page of each point of a study that an engine ran."""
    design = source.design(study.id)
    links = point_links(study, design)
    by_point = grouped(design, "experiment", "point")
    # That of the study's headline first.
    engines = dict.fromkeys([*source.shown_engines(study.id), *source.parts[study.id]])
    flows = _by_run(results.flows)
    for experiment in study.experiments:
        series = _by_run(_first_series(results, experiment))
        for key, link in links.items():
            if key[0] != experiment.id:
                continue
            rows = by_point[key]
            by_engine = {e: [row for row in rows if row["engine"] == e] for e in engines}
            yield {
                "file": link.file,
                "study": study,
                "experiment": experiment,
                "title": link.label,
                "engines": [
                    _engine(source, own, results, flows, series)
                    for own in by_engine.values()
                    if own
                ],
            }


def _first_series(results: Results, experiment: Experiment) -> pd.DataFrame:
    """Return the series of the first replicate of each point and engine."""
    first: dict[tuple[str, str], DrawnRun] = {}
    for run in runs_of(results, experiment):
        first.setdefault((run.point, run.engine), run)
    return read_series(results, list(first.values())) if first else pd.DataFrame()


def _by_run(frame: pd.DataFrame) -> ByRun:
    if frame.empty:
        return {}
    grouped = frame.groupby(["scenario", "engine"], sort=False, observed=True)
    return {(str(key[0]), str(key[1])): part for key, part in grouped}


def _engine(
    source: Source, rows: list[Row], results: Results, flows: ByRun, series: ByRun
) -> dict[str, Any]:
    """Return a point on one engine."""
    engine, scenarios = rows[0]["engine"], results.scenarios
    versions = source.provenance.get("engines") or {}
    runs = [(row, scenarios[row["scenario"]]) for row in rows if is_supported(row)]
    lines = [line for row, scenario in runs for line in _flows(row, scenario, flows)]
    samples = series.get((runs[0][0]["scenario"], engine)) if runs else None
    picture = None
    if samples is not None and engine == source.headlines[results.study_id].engine:
        picture = run_picture(runs[0][1], samples)
    return {
        "engine": engine,
        "version": str(versions.get(engine, {}).get("version", "")),
        "refusal": "" if runs else rows[0]["reason"],
        "runs": runs[:SHOWN_ROWS],
        "replicates": len(runs),
        "flows": lines[:SHOWN_ROWS],
        "more_flows": max(0, len(lines) - SHOWN_ROWS),
        "picture": picture,
    }


def _flows(
    row: Row, scenario: Mapping[str, Any], flows: ByRun
) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield replicate, flow, algorithm and the texts of `FLOW_COLUMNS` for each flow of a run."""
    table = flows.get((row["scenario"], row["engine"]))
    if table is None:
        return
    algorithms = {flow["id"]: flow_algorithm(flow) for flow in scenario["flows"]}
    for line in table.to_dict("records"):
        values = [
            MISSING if pd.isna(line[name]) else significant(float(line[name]) * factor)
            for name, _, factor in FLOW_COLUMNS
        ]
        flow = str(line["flow"])
        yield int(row["replicate"]) + 1, flow, algorithms.get(flow, ""), values
