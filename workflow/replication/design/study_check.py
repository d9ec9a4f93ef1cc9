"""Checks of a study and its published numbers before anything runs."""

from __future__ import annotations

from pathlib import Path

from replication.design.design import combinations, scenario_at
from replication.metrics.cell_map import MappedCell, check_complete, map_cells
from replication.metrics.metric_model import METRICS, is_total, validate_study_metrics
from replication.study.claim_model import (
    CrossoverTest,
    Quantity,
    StartOrder,
    StepsTest,
    TrendTest,
    covers,
    sides,
)
from replication.study.errors import InputError
from replication.study.published import read_published
from replication.study.scenario import Scenario
from replication.study.storage.table import COMPLETION, SOCKET_NUMBERS
from replication.study.study import Experiment, Study
from replication.study.variation import check_parameters_used

#: Tolerance of window ends: sampling times are sums of intervals, which have rounding errors.
_SLACK_S = 1e-9


def check_study(study: Study, published: Path) -> list[MappedCell]:
    """Return the study's cells; InputError for whatever can be found wrong before a run."""
    where = f"configs/studies/{study.id}"
    if not study.tables and not study.claims:
        raise InputError(f"{where}: has neither tables nor claims, so nothing to judge; add one")
    check_parameters_used(study)
    validate_study_metrics(study)
    check_claims(study)
    cells = map_cells(study, read_published(published))
    check_complete(study, cells, str(published))
    _check_quantities(study, cells, where)
    return cells


def check_claims(study: Study) -> None:
    """Raise InputError unless the axes of trends, steps and crossovers are factors of numbers."""
    for claim in study.claims:
        for test in claim.tests():
            if isinstance(test, TrendTest | StepsTest | CrossoverTest):
                for side in sides(test):
                    experiment = study.experiment(side.experiment)
                    _check_axis(f"{study.id}: claim {claim.id}", experiment, test.over)


def _check_axis(where: str, experiment: Experiment, over: str) -> None:
    levels = next((axis.levels for axis in experiment.axes if axis.id == over), None)
    if levels is None:
        raise InputError(f"{where}: over: experiment {experiment.id} has no factor {over!r}")
    if without := sorted(level.key for level in levels if level.value is None):
        raise InputError(
            f"{where}: level {without[0]!r} of factor {over!r} has no value; "
            "a trend or crossover needs a number for each level"
        )


def _check_quantities(study: Study, cells: list[MappedCell], where: str) -> None:
    points = {
        experiment.id: [
            (levels, scenario_at(study, experiment, levels, values))
            for levels, values in combinations(experiment.factors)
        ]
        for experiment in study.experiments
    }
    wanted = [(f"claim {claim.id}", one) for claim in study.claims for one in claim.quantities()]
    wanted += [
        (f"table {cell.table}, row {cell.row}, column {cell.column}", cell.quantity)
        for cell in cells
    ]
    for name, quantity in wanted:
        own = points[quantity.experiment]
        runs = [scenario for levels, scenario in own if covers(quantity.where, levels)]
        _check_quantity(f"{where}: {name}", quantity, runs)


def _check_quantity(where: str, wanted: Quantity, runs: list[Scenario]) -> None:
    _check_flows(where, wanted, runs)
    needed = "stop_after_bytes" if wanted.metric == COMPLETION else ""
    if not is_total(wanted) and METRICS[wanted.metric].column in SOCKET_NUMBERS:
        needed = "socket_samples"
    if needed and not all(any(getattr(f, needed, None) for f in run.flows) for run in runs):
        raise InputError(
            f"{where}: metric: {wanted.metric} needs a flow with {needed} at every point of "
            f"experiment {wanted.experiment} there"
        )
    if METRICS[wanted.metric].source == "queue":
        _check_links(where, wanted, runs)
    shortest_s = min((run.duration_s for run in runs), default=0.0)
    if wanted.window_s is not None and wanted.window_s[1] > shortest_s + _SLACK_S:
        raise InputError(
            f"{where}: window_s: ends at {wanted.window_s[1]:g} s, after the run, which lasts "
            f"{shortest_s:g} s"
        )


def _check_flows(where: str, wanted: Quantity, runs: list[Scenario]) -> None:
    if isinstance(wanted.flows, list):
        known = {flow.id for run in runs for flow in run.flows}
        if unknown := [flow for flow in wanted.flows if flow not in known]:
            raise InputError(
                f"{where}: flows: {unknown[0]!r} is no flow of experiment {wanted.experiment} "
                f"there; it has {', '.join(sorted(known)[:20])}"
            )
        return
    kinds = [[flow.kind for flow in run.flows] for run in runs]
    if isinstance(wanted.flows, StartOrder):
        fewest = min((own.count("tcp") for own in kinds), default=0)
        if wanted.flows.start_order > fewest:
            raise InputError(
                f"{where}: flows: start_order {wanted.flows.start_order}, but experiment "
                f"{wanted.experiment} has {fewest} tcp flows there"
            )
    elif wanted.flows != "all" and not any(wanted.flows in own for own in kinds):
        raise InputError(
            f"{where}: flows: experiment {wanted.experiment} has no {wanted.flows} flow there"
        )


def _check_links(where: str, wanted: Quantity, runs: list[Scenario]) -> None:
    if not all(run.monitors for run in runs):
        raise InputError(
            f"{where}: metric: {wanted.metric} needs a monitored queue; add one to "
            f"topology.monitors of experiment {wanted.experiment}"
        )
    known = {f"{monitor.link}:{monitor.direction}" for run in runs for monitor in run.monitors}
    if unknown := [link for link in wanted.links or [] if link not in known]:
        raise InputError(
            f"{where}: links: {unknown[0]!r} is no monitored link of experiment "
            f"{wanted.experiment} there; it monitors {', '.join(sorted(known)[:20])}; add it to "
            "topology.monitors"
        )
