"""The page of a point: its first replicate over time, how to rerun it, flows and numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from replication.base.table import Row, grouped
from replication.metrics.results import Results
from replication.report.charts.data import flow_algorithm, read_series, runs_of
from replication.report.charts.run import run_picture
from replication.report.pages.shown import number
from replication.report.pages.source import Source
from replication.study.study import Experiment, Study
from replication.verdicts.verdict_table import is_supported

#: Replicates and rows of flows shown for each engine; the Parquet files have all.
SHOWN_ROWS = 3


class Column(NamedTuple):
    """A column of the table of flows: its name in results, heading, and factor to its unit."""

    name: str
    heading: str
    factor: float


FLOW_COLUMNS = (
    Column("throughput_bps", "Throughput (Mbit/s)", 1e-6),
    Column("goodput_bps", "Goodput (Mbit/s)", 1e-6),
    Column("delay_mean_s", "Delay, mean (ms)", 1e3),
    Column("delay_p95_s", "Delay, 95 % (ms)", 1e3),
    Column("rtt_mean_s", "RTT, mean (ms)", 1e3),
    Column("packets_sent", "Sent", 1.0),
    Column("packets_received", "Received", 1.0),
    Column("packets_dropped", "Dropped", 1.0),
    Column("retransmissions", "Sent again", 1.0),
    Column("timeouts", "Timeouts", 1.0),
)


class Run(NamedTuple):
    """A replicate: its row of the design, and its scenario."""

    row: Row
    scenario: Mapping[str, Any]


@dataclass(frozen=True)
class PointOnEngine:
    """A point on one engine: its first runs, or why it was refused.

    Only the primary engine has a picture.
    """

    engine: str
    version: str
    refusal: str
    runs: list[Run]
    replicates: int
    picture: Any


class FlowLine(NamedTuple):
    """A flow of a replicate, with its numbers in words."""

    engine: str
    replicate: int
    flow: str
    algorithm: str
    values: list[str]


@dataclass(frozen=True)
class PointView:
    """The page of a point; `more_flows` are not in the table."""

    file: str
    study: Study
    experiment: Experiment
    title: str
    engines: list[PointOnEngine]
    flows: list[FlowLine]
    more_flows: int


def point_pages(source: Source, study: Study, results: Results) -> Iterator[PointView]:
    """Yield the page of each point of a study that an engine ran."""
    by_point = grouped(source.design(study.id), "experiment", "point")
    engines = dict.fromkeys([*source.shown_engines(study.id), *source.parts[study.id]])
    flows = results.design.merge(results.flows, on=["scenario", "engine"])
    flows_of = dict(iter(flows.groupby(["experiment", "point", "engine"], sort=False)))
    series = {each.id: _first_runs(results, each) for each in study.experiments}
    for (experiment, point), link in source.points(study.id).items():
        rows = grouped(by_point[experiment, point], "engine")
        of_engines = [rows[engine,] for engine in engines if (engine,) in rows]
        keys = [(experiment, point, engine) for engine in engines]
        shown, more = _flows([flows_of[key] for key in keys if key in flows_of], results)
        yield PointView(
            file=link.file,
            study=study,
            experiment=study.experiment(experiment),
            title=link.label,
            engines=[_engine(source, same, results, series[experiment]) for same in of_engines],
            flows=shown,
            more_flows=more,
        )


def _first_runs(results: Results, experiment: Experiment) -> dict[Any, pd.DataFrame]:
    """Return the series of the first run of each point, by scenario and engine."""
    first = runs_of(results, experiment).drop_duplicates(["point", "engine"])
    runs = read_series(results, first).groupby(["scenario", "engine"], observed=True)
    return dict(iter(runs))


def _engine(
    source: Source, rows: list[Row], results: Results, series: Mapping[Any, pd.DataFrame]
) -> PointOnEngine:
    """Return a point on one engine."""
    engine = rows[0]["engine"]
    versions = source.provenance.get("engines") or {}
    runs = [Run(row, results.scenarios[row["scenario"]]) for row in rows if is_supported(row)]
    picture = None
    if runs and engine == source.primary_engines[results.study_id].engine:
        samples = series.get((runs[0].row["scenario"], engine))
        picture = None if samples is None else run_picture(runs[0].scenario, samples)
    return PointOnEngine(
        engine=engine,
        version=str(versions.get(engine, {}).get("version", "")),
        refusal="" if runs else rows[0]["reason"],
        runs=runs[:SHOWN_ROWS],
        replicates=len(runs),
        picture=picture,
    )


def _flows(of_engines: list[pd.DataFrame], results: Results) -> tuple[list[FlowLine], int]:
    """Return the first rows of each engine for the table of flows, and the number of others."""
    shown: list[FlowLine] = []
    for flows in of_engines:
        for row in flows.head(SHOWN_ROWS).to_dict("records"):
            known = {flow["id"]: flow for flow in results.scenarios[row["scenario"]]["flows"]}
            values = [number(row[c.name] * c.factor).shown for c in FLOW_COLUMNS]
            algorithm = flow_algorithm(known[row["flow"]])
            replicate = row["replicate"] + 1
            shown.append(FlowLine(row["engine"], replicate, row["flow"], algorithm, values))
    return shown, sum(len(flows) for flows in of_engines) - len(shown)
