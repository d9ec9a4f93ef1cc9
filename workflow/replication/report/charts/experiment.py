"""Charts of a study: which figures each type of experiment has."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from replication.measure.results import Results
from replication.report.charts.cells import cells_figure
from replication.report.charts.points import factor_figures, pair_figures, published_figures
from replication.report.charts.time import jain_figures, time_figures
from replication.report.charts.trace import trace_figures
from replication.report.drawing.data import (
    PublishedValue,
    axis_factor,
    flow_ids,
    published_values,
)
from replication.report.drawing.figure import Figure, with_prefix
from replication.study.study import Experiment, ExperimentType, Study
from replication.study.table_model import Table

SWEEP_METRICS = ("throughput_bps", "delay_mean_s", "loss_rate")
DELAY_METRICS = ("throughput_bps", "rtt_mean_s", "loss_rate")
#: Jain's index needs flows to compare; two or three of them are drawn as such.
MANY_FLOWS = 4


def figures_of(
    results: Results, cells: pd.DataFrame, study: Study, experiment_id: str
) -> list[Figure]:
    """Return the figures of one experiment, published values drawn in.

    Parameters
    ----------
    results, cells
        The study's, already loaded.
    study, experiment_id
        The experiment; KeyError where the study has none of that id.
    """
    experiment = study.experiment(experiment_id)
    published = published_values(experiment, cells)
    make = FIGURES.get(experiment.type)
    figures = make(results, study, experiment, published) if make else []
    return with_prefix([*figures, *_cells_figures(cells, study, experiment)], study.id)


def _cells_figures(cells: pd.DataFrame, study: Study, experiment: Experiment) -> list[Figure]:
    shown: dict[tuple[str, ...], list[Table]] = {}
    parts = []
    for table in tables_of(study, experiment):
        rows = table.rows or {}
        own = [
            key
            for key, row in rows.items()
            if (row.experiment or table.experiment) == experiment.id
        ]
        ours = cells if cells.empty else cells[cells["table"] == table.id]
        if rows:
            ours = ours if ours.empty else ours[ours["row"].isin(own)]
        if not ours.empty:
            parts.append(ours)
            shown.setdefault(tuple(dict.fromkeys(ours["column"])), []).append(table)
    if not parts:
        return []
    ours = pd.concat(parts)
    return with_prefix([cells_figure(ours, *same) for same in shown.values()], experiment.id)


def _bdp_figures(results: Results, study: Study, experiment: Experiment) -> list[Figure]:
    axis = axis_factor(experiment)
    figures = []
    if len(flow_ids(results, experiment)) >= MANY_FLOWS:
        figures += jain_figures(results, experiment)
    if axis is not None:
        figures += factor_figures(results, study, experiment, DELAY_METRICS)
    return figures


#: The figures of each type of experiment, beside the comparison of its cells that each one has.
FIGURES: dict[
    ExperimentType, Callable[[Results, Study, Experiment, list[PublishedValue]], list[Figure]]
] = {
    "cbr_sweep": lambda results, study, experiment, published: factor_figures(
        results, study, experiment, SWEEP_METRICS, published
    ),
    "pairwise_fairness": lambda results, study, experiment, published: pair_figures(
        results, study, experiment, SWEEP_METRICS
    ),
    "queuing": lambda results, study, experiment, published: time_figures(results, experiment),
    "bdp_jain": lambda results, study, experiment, published: _bdp_figures(
        results, study, experiment
    ),
    "cwnd_traces": lambda results, study, experiment, published: trace_figures(
        results, experiment, published
    ),
    "throughput_tables": lambda results, study, experiment, published: published_figures(
        results, experiment, published
    ),
}


def tables_of(study: Study, experiment: Experiment) -> list[Table]:
    """Return the published tables with rows of an experiment."""
    return [
        table
        for table in study.tables
        if table.experiment == experiment.id
        or any(row.experiment == experiment.id for row in (table.rows or {}).values())
    ]
