"""A point's page: what was run there, on what, with which parameters, and what came out.

A reader comes here from a number or a claim: the scenarios with their seeds and the commands that
run them again, the flows of every replicate, the first replicate over time, and every parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.judge.verdict_table import is_supported
from replication.measure.results import Results
from replication.report.charts.data import (
    DrawnRun,
    flow_algorithm,
    level_label,
    read_series,
    runs_of,
    unsaid_unit,
)
from replication.report.charts.run import FLOWS, run_data
from replication.report.pages.ledger import plain
from replication.report.pages.number import MISSING, significant
from replication.report.pages.source import PointLink, PointLinks, Source
from replication.report.pages.topology import Topology, draw
from replication.study.parameter import Factor, Parameter
from replication.study.storage.table import Row
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import TemplateError, resolve

#: Rows of flows that a page shows for each engine; the Parquet file has all.
FLOW_ROWS = 12
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


@dataclass(frozen=True)
class FlowRow:
    """A flow of one replicate, as text in the order of `FLOW_COLUMNS`."""

    replicate: int
    flow: str
    algorithm: str
    values: list[str]


@dataclass(frozen=True)
class EngineRuns:
    """A point on one engine; `data` are those of its chart."""

    engine: str
    version: str
    refusal: str
    #: Each replicate in the design, and its scenario.
    runs: list[tuple[Row, Mapping[str, Any]]]
    flows: list[FlowRow]
    more_flows: int
    drawn: str
    data: dict[str, Any] | None


@dataclass(frozen=True)
class PointPage:
    """Everything on the page; `file` is relative to the report's folder."""

    file: str
    study: Study
    experiment: Experiment
    title: str
    levels: list[tuple[str, str]]
    engines: list[EngineRuns]
    topology: Topology
    #: Name, value at the point, and whether a level, the paper or we set it.
    parameters: list[tuple[str, str, str]]


def point_pages(source: Source, study: Study, results: Results) -> Iterator[PointPage]:
    """Yield the page of each point of a study that an engine ran."""
    design = source.design(study.id)
    links = PointLinks.of(study, design)
    by_point: dict[tuple[str, str], list[Row]] = {}
    for row in design:
        by_point.setdefault((row["experiment"], row["point"]), []).append(row)
    for experiment in study.experiments:
        material = _PageSources.of(source, study, experiment, results)
        for link in links.links:
            if link.experiment == experiment.id:
                yield _page(link, by_point[link.experiment, link.point], material)


@dataclass(frozen=True)
class _PageSources:
    """What the pages of an experiment are made from."""

    study: Study
    experiment: Experiment
    results: Results
    #: The engines, that of the study's headline first.
    order: list[str]
    versions: Mapping[str, str]
    flows: Mapping[tuple[str, str], pd.DataFrame]
    series: Mapping[tuple[str, str], pd.DataFrame]
    parameters: Mapping[str, Parameter]

    @classmethod
    def of(
        cls, source: Source, study: Study, experiment: Experiment, results: Results
    ) -> _PageSources:
        first: dict[tuple[str, str], DrawnRun] = {}
        for run in runs_of(results, experiment):
            first.setdefault((run.point, run.engine), run)
        runs = list(first.values())
        series = read_series(results, runs) if runs else pd.DataFrame()
        engines = source.provenance.get("engines") or {}
        return cls(
            study=study,
            experiment=experiment,
            results=results,
            order=list(dict.fromkeys([*source.shown_engines(study.id), *source.parts[study.id]])),
            versions={name: str(e.get("version", "")) for name, e in engines.items()},
            flows=_by_run(results.flows),
            series=_by_run(series),
            parameters=parameters_of(study, experiment),
        )


def _by_run(frame: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    if frame.empty:
        return {}
    grouped = frame.groupby(["scenario", "engine"], sort=False, observed=True)
    return {(str(key[0]), str(key[1])): part for key, part in grouped}


def _page(link: PointLink, rows: list[Row], material: _PageSources) -> PointPage:
    experiment, keys = material.experiment, link.levels
    factors = [factor for factor in experiment.factors if factor.id in keys]
    by_engine: dict[str, list[Row]] = {}
    for row in rows:
        by_engine.setdefault(row["engine"], []).append(row)
    first = next(row["scenario"] for row in rows if is_supported(row))
    return PointPage(
        file=link.file,
        study=material.study,
        experiment=experiment,
        title=link.label,
        levels=[
            (f"{f.label}{f' ({unit})' if unit else ''}", level_label(f, keys[f.id]))
            for f in factors
            for unit in [unsaid_unit(f)]
        ],
        engines=[
            _engine(name, by_engine[name], material)
            for name in sorted(by_engine, key=material.order.index)
        ],
        topology=draw(material.results.scenarios[first]),
        parameters=_parameters(experiment, keys, material.parameters),
    )


def _engine(engine: str, rows: list[Row], material: _PageSources) -> EngineRuns:
    ran = [row for row in rows if is_supported(row)]
    scenarios = material.results.scenarios
    flows = [
        line
        for row in ran
        for line in _flows(int(row["replicate"]), scenarios[row["scenario"]], row, material)
    ]
    first = ran[0]["scenario"] if ran else ""
    samples = material.series.get((first, engine))
    data = None if samples is None else run_data(scenarios[first], samples)
    return EngineRuns(
        engine=engine,
        version=material.versions.get(engine, ""),
        refusal="" if ran else rows[0]["reason"],
        runs=[(row, scenarios[row["scenario"]]) for row in ran],
        flows=flows[:FLOW_ROWS],
        more_flows=max(0, len(flows) - FLOW_ROWS),
        drawn=_drawn(scenarios[first]) if data else "",
        data=data,
    )


def _flows(
    replicate: int, scenario: Mapping[str, Any], row: Row, material: _PageSources
) -> Iterator[FlowRow]:
    table = material.flows.get((row["scenario"], row["engine"]))
    if table is None:
        return
    algorithms = {
        flow["id"]: "CBR" if flow["kind"] == "cbr" else flow_algorithm(flow)
        for flow in scenario["flows"]
    }
    for line in table.to_dict("records"):
        yield FlowRow(
            replicate=replicate + 1,
            flow=str(line["flow"]),
            algorithm=algorithms.get(str(line["flow"]), ""),
            values=[
                MISSING if pd.isna(line[name]) else significant(float(line[name]) * factor)
                for name, _, factor in FLOW_COLUMNS
            ],
        )


def _drawn(scenario: Mapping[str, Any]) -> str:
    """Return which of many flows the chart shows; empty if all."""
    tcp = [flow["id"] for flow in scenario["flows"] if flow["kind"] == "tcp"]
    return f"the first {FLOWS} of {len(tcp)} TCP flows" if len(tcp) > FLOWS else ""


def _parameters(
    experiment: Experiment, keys: Mapping[str, str], parameters: Mapping[str, Parameter]
) -> list[tuple[str, str, str]]:
    """Return each parameter as the point has it: what its levels set is varied."""
    values = {name: parameter.value for name, parameter in parameters.items()}
    varied: dict[str, Factor] = {}
    for factor in experiment.factors:
        for level in factor.levels:
            if level.key == keys.get(factor.id):
                values |= level.set
                varied |= dict.fromkeys(level.set, factor)
    return [
        (name, f"{_resolved(name, values)} {p.unit}".strip(), _kind(p, varied.get(name)))
        for name, p in parameters.items()
    ]


def _resolved(name: str, values: dict[str, Any]) -> str:
    try:
        return plain(resolve(f"${name}", values))
    except TemplateError:
        return plain(values[name])


def _kind(parameter: Parameter, factor: Factor | None) -> str:
    tagged = parameter if factor is None else factor
    return ("varied, " if factor else "") + ("published" if tagged.published else "assumed")
