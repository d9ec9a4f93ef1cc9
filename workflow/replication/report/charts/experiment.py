"""Charts of a study: which figures each type of experiment has."""

from __future__ import annotations

import pandas as pd

from replication.metrics.results import Results
from replication.metrics.trace_folder import TABLE_PREFIX
from replication.report.charts.cells import column_figures
from replication.report.charts.data import PublishedValue, axis_factor, flow_ids, published_values
from replication.report.charts.figure import Figure, with_prefix
from replication.report.charts.points import (
    factor_figures,
    pair_figures,
    published_figures,
    share_figures,
)
from replication.report.charts.time import jain_figures, time_figures
from replication.study.claim_model import Quantity
from replication.study.study import Experiment, Study
from replication.study.table_model import Table

SWEEP_METRICS = ("throughput_bps", "delay_mean_s", "loss_rate")
DELAY_METRICS = ("throughput_bps", "rtt_mean_s", "loss_rate")
#: Jain's index needs flows to compare; two or three of them are drawn as such.
MANY_FLOWS = 4


def figures_of(
    results: Results, cells: pd.DataFrame, study: Study, experiment_id: str
) -> list[Figure]:
    """Return the figures of one experiment, published values drawn in; cells are of one engine."""
    experiment = study.experiment(experiment_id)
    published = published_values(experiment, cells)
    asked = [one for claim in study.claims for one in claim.quantities()]
    asked = [one for one in asked if one.experiment == experiment.id]
    asked += [value.quantity for value in published]
    figures = _figures_of_type(results, experiment, published, asked)
    # What is in a chart already needs no other.
    drawn = frozenset[tuple[str, str, str]]().union(*(figure.published for figure in figures))
    keys = cells[["table", "row", "column"]].itertuples(index=False) if len(cells) else []
    rest = cells[[tuple(key) not in drawn for key in keys]]
    return with_prefix([*figures, *_cells_figures(rest, study, experiment)], study.id)


def _figures_of_type(
    results: Results,
    experiment: Experiment,
    published: list[PublishedValue],
    asked: list[Quantity],
) -> list[Figure]:
    """Return what the experiment's type has beside the comparison of its cells."""
    match experiment.type:
        case "cbr_sweep":
            return factor_figures(results, experiment, SWEEP_METRICS, published, asked)
        case "pairwise_fairness":
            return pair_figures(results, experiment, SWEEP_METRICS, published, asked)
        case "queuing":
            return time_figures(results, experiment)
        case "bdp_jain":
            flows = len(flow_ids(results, experiment))
            found = jain_figures(results, experiment) if flows >= MANY_FLOWS else []
            if axis_factor(experiment) is not None:
                # Of a few flows each is drawn: their mean says nothing about fairness.
                draw = pair_figures if 1 < flows < MANY_FLOWS else factor_figures
                found += draw(results, experiment, DELAY_METRICS, published, asked)
            return found
        case "cwnd_traces":
            return share_figures(results, experiment, published)
        case "throughput_tables":
            return published_figures(results, experiment, published)
        case _:
            return []


def _cells_figures(cells: pd.DataFrame, study: Study, experiment: Experiment) -> list[Figure]:
    shown: dict[tuple[str, ...], list[Table]] = {}
    parts = []
    for table in study.tables if len(cells) else []:
        if table.id.startswith(TABLE_PREFIX):
            continue  # Numbers of traces are in tables, and their windows in charts of their own.
        rows = table.rows or {}
        homes = {key: row.experiment or table.experiment for key, row in rows.items()}
        ours = cells[cells["table"] == table.id]
        home = ours["row"].map(lambda key: homes.get(key, table.experiment))  # noqa: B023
        ours = ours[home == experiment.id]
        if not ours.empty:
            parts.append(ours)
            shown.setdefault(tuple(dict.fromkeys(ours["column"])), []).append(table)
    found = []
    for same in shown.values():
        found += column_figures(pd.concat(parts), *same)
    return with_prefix(found, experiment.id)
