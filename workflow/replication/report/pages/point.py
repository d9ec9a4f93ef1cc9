"""The page of a point: its first replicate over time, how to rerun it, flows and numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from replication.metrics.results import Results
from replication.report.charts.data import flow_algorithm, read_series, runs_of
from replication.report.charts.run import run_picture
from replication.report.pages.shown import number
from replication.report.pages.source import Source
from replication.study.study import Study
from replication.study.table import Row, grouped
from replication.verdicts.verdict_table import is_supported

#: Replicates and rows of flows shown for each engine; the Parquet files have all.
SHOWN_ROWS = 3
#: Column of the flows, its heading, and the factor to the unit in the heading.
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


def point_pages(source: Source, study: Study, results: Results) -> Iterator[dict[str, Any]]:
    """Yield the page of each point of a study that an engine ran."""
    by_point = grouped(source.design(study.id), "experiment", "point")
    engines = dict.fromkeys([*source.shown_engines(study.id), *source.parts[study.id]])
    flows = results.design.merge(results.flows, on=["scenario", "engine"])
    flows_of = dict(iter(flows.groupby(["experiment", "point", "engine"], sort=False)))
    series = {}
    for one in study.experiments:
        first = runs_of(results, one).drop_duplicates(["point", "engine"])
        runs = read_series(results, first).groupby(["scenario", "engine"], observed=True)
        series[one.id] = dict(iter(runs))
    for (experiment, point), link in source.points(study.id).items():
        rows = by_point[experiment, point]
        of_engines = [own for one in engines if (own := [r for r in rows if r["engine"] == one])]
        keys = [(experiment, point, engine) for engine in engines]
        shown, more = _flows([flows_of[key] for key in keys if key in flows_of], results)
        yield {
            "file": link.file,
            "study": study,
            "experiment": study.experiment(experiment),
            "title": link.label,
            "engines": [_engine(source, own, results, series[experiment]) for own in of_engines],
            "flows": shown,
            "more_flows": more,
        }


def _engine(
    source: Source, rows: list[Row], results: Results, series: Mapping[Any, pd.DataFrame]
) -> dict[str, Any]:
    """Return a point on one engine; only the primary engine has a picture."""
    engine, versions = rows[0]["engine"], source.provenance.get("engines") or {}
    runs = [(row, results.scenarios[row["scenario"]]) for row in rows if is_supported(row)]
    is_primary = engine == source.primary_engines[results.study_id].engine
    samples = series.get((runs[0][0]["scenario"], engine)) if runs and is_primary else None
    return {
        "engine": engine,
        "version": str(versions.get(engine, {}).get("version", "")),
        "refusal": "" if runs else rows[0]["reason"],
        "runs": runs[:SHOWN_ROWS],
        "replicates": len(runs),
        "picture": None if samples is None else run_picture(runs[0][1], samples),
    }


def _flows(of_engines: list[pd.DataFrame], results: Results) -> tuple[list[tuple[Any, ...]], int]:
    """Return the first rows of each engine for the table of flows, and the number of others."""
    shown: list[tuple[Any, ...]] = []
    first = [row for own in of_engines for row in own.head(SHOWN_ROWS).to_dict("records")]
    for row in first:
        known = {one["id"]: one for one in results.scenarios[row["scenario"]]["flows"]}
        values = [number(row[name] * factor).shown for name, _, factor in FLOW_COLUMNS]
        algorithm = flow_algorithm(known[row["flow"]])
        shown.append((row["engine"], row["replicate"] + 1, row["flow"], algorithm, values))
    return shown, sum(map(len, of_engines)) - len(first)
