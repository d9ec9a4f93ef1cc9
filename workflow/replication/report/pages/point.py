"""A point's page: what was run there, on what, with which parameters, and what came out.

A reader comes here from a number or a claim: the scenarios with their seeds and the commands that
run them again, the flows of every replicate, the first replicate over time, and every parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from replication.metrics.results import Results
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
from replication.report.pages.source import Source, grouped, point_links
from replication.report.pages.topology import draw
from replication.study.parameter import Factor, Parameter
from replication.study.storage.table import Row
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import TemplateError, resolve
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
        parameters = parameters_of(study, experiment)
        for key, link in links.items():
            if key[0] != experiment.id:
                continue
            rows = by_point[key]
            first = next(row["scenario"] for row in rows if is_supported(row))
            by_engine = {e: [row for row in rows if row["engine"] == e] for e in engines}
            yield {
                "file": link.file,
                "study": study,
                "experiment": experiment,
                "title": link.label,
                "levels": _levels(experiment, link.levels),
                "engines": [
                    _engine(source, own, results, flows, series)
                    for own in by_engine.values()
                    if own
                ],
                "topology": draw(results.scenarios[first]),
                "parameters": _parameters(experiment, link.levels, parameters),
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


def _levels(experiment: Experiment, keys: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (f"{f.label}{f' ({unit})' if unit else ''}", level_label(f, keys[f.id]))
        for f in experiment.factors
        if f.id in keys
        for unit in [unsaid_unit(f)]
    ]


def _engine(
    source: Source, rows: list[Row], results: Results, flows: ByRun, series: ByRun
) -> dict[str, Any]:
    """Return a point on one engine; `data` are those of its chart."""
    engine, scenarios = rows[0]["engine"], results.scenarios
    versions = source.provenance.get("engines") or {}
    runs = [(row, scenarios[row["scenario"]]) for row in rows if is_supported(row)]
    lines = [line for row, scenario in runs for line in _flows(row, scenario, flows)]
    samples = series.get((runs[0][0]["scenario"], engine)) if runs else None
    data = None if samples is None else run_data(runs[0][1], samples)
    return {
        "engine": engine,
        "version": str(versions.get(engine, {}).get("version", "")),
        "refusal": "" if runs else rows[0]["reason"],
        "runs": runs[:SHOWN_ROWS],
        "more_runs": max(0, len(runs) - SHOWN_ROWS),
        "flows": lines[:SHOWN_ROWS],
        "more_flows": max(0, len(lines) - SHOWN_ROWS),
        "drawn": _drawn(runs[0][1]) if data else "",
        "data": data,
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


def _drawn(scenario: Mapping[str, Any]) -> str:
    """Return which of many flows the chart shows; empty if all."""
    tcp = [flow["id"] for flow in scenario["flows"] if flow["kind"] == "tcp"]
    return f"the first {FLOWS} of {len(tcp)} TCP flows" if len(tcp) > FLOWS else ""


def _parameters(
    experiment: Experiment, keys: Mapping[str, str], parameters: Mapping[str, Parameter]
) -> list[tuple[str, str, str]]:
    """Return of each parameter its name, value at the point, and who set it: a level varies it."""
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
