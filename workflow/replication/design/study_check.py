"""Checks of a study and its published numbers before anything runs."""

from collections.abc import Sequence
from pathlib import Path

from replication.design.design import combinations, scenario_at
from replication.metrics.cell_map import MappedCell, check_complete, map_cells
from replication.metrics.metric_model import check_metric, is_total
from replication.study.claim_model import Quantity, StartOrder, covers, sides
from replication.study.errors import InputError, check_known
from replication.study.published import read_published
from replication.study.scenario import Scenario
from replication.study.study import Experiment, Study
from replication.study.table import COMPLETION, SOCKET_NUMBERS
from replication.study.variation import check_parameters_used

#: Tolerance of window ends: sampling times are sums of intervals, which have rounding errors.
_SLACK_S = 1e-9


def check_study(study: Study, published: Path) -> list[MappedCell]:
    """Return the study's cells; InputError for whatever can be found wrong before a run."""
    where = f"configs/studies/{study.id}"
    if not study.tables and not study.claims:
        raise InputError(f"{where}: has neither tables nor claims, so nothing to judge; add one")
    check_parameters_used(study)
    cells = map_cells(study, read_published(published))
    check_complete(study, cells, str(published))
    check_quantities(study, cells)
    return cells


def check_quantities(study: Study, cells: Sequence[MappedCell] = ()) -> None:
    """Raise InputError for a quantity of a claim or cell that the study's runs cannot have."""
    for claim in study.claims:
        for test in claim.tests():
            if over := getattr(test, "over", ""):
                for side in sides(test):
                    experiment = study.experiment(side.experiment)
                    _check_axis(f"{study.id}: claim {claim.id}: over", experiment, over)
    points = {
        experiment.id: [
            (levels, scenario_at(study, experiment, levels, values))
            for levels, values in combinations(experiment.factors)
        ]
        for experiment in study.experiments
    }
    named = [(f"claim {claim.id}", one) for claim in study.claims for one in claim.quantities()]
    named += [
        (f"table {cell.table}, row {cell.row}, column {cell.column}", cell.quantity)
        for cell in cells
    ]
    for name, quantity in named:
        own = points[quantity.experiment]
        runs = [scenario for levels, scenario in own if covers(quantity.where, levels)]
        try:
            _check_flows(quantity, runs)
            _check_metric(quantity, runs)
        except InputError as error:
            where = f"configs/studies/{study.id}: {name}, experiment {quantity.experiment}"
            raise InputError(f"{where}: {error}") from None


def _check_axis(where: str, experiment: Experiment, over: str) -> None:
    factors = {factor.id: factor for factor in experiment.factors}
    check_known(where, [over], factors)
    levels = factors[over].levels
    if without := sorted(level.key for level in levels if level.value is None):
        raise InputError(
            f"{where}: level {without[0]!r} of factor {over!r} has no value; "
            "a trend or crossover needs a number for each level"
        )


def _check_flows(quantity: Quantity, runs: list[Scenario]) -> None:
    flows, kinds = quantity.flows, [[flow.kind for flow in run.flows] for run in runs]
    if isinstance(flows, list):
        check_known("flows", flows, {flow.id for run in runs for flow in run.flows})
    elif isinstance(flows, StartOrder):
        fewest = min((own.count("tcp") for own in kinds), default=0)
        if flows.start_order > fewest:
            raise InputError(f"flows: start_order is {flows.start_order} of {fewest} tcp flows")
    elif flows != "all" and not any(flows in own for own in kinds):
        raise InputError(f"flows: there is no {flows} flow")


def _check_metric(quantity: Quantity, runs: list[Scenario]) -> None:
    windowed = quantity.window_s is not None
    metric = check_metric(quantity.metric, quantity.aggregate, windowed, quantity.links)
    needed = "stop_after_bytes" if quantity.metric == COMPLETION else ""
    if not is_total(quantity) and metric.column in SOCKET_NUMBERS:
        needed = "socket_samples"
    if needed and not all(any(getattr(f, needed, None) for f in run.flows) for run in runs):
        raise InputError(f"metric: {quantity.metric} needs a flow with {needed} at every point")
    if metric.source == "queue":
        if not all(run.monitors for run in runs):
            raise InputError(f"metric: {quantity.metric} needs a queue in topology.monitors")
        monitored = {f"{one.link}:{one.direction}" for run in runs for one in run.monitors}
        check_known("links of topology.monitors", quantity.links or [], monitored)
    shortest_s = min((run.duration_s for run in runs), default=0.0)
    if quantity.window_s is not None and quantity.window_s[1] > shortest_s + _SLACK_S:
        raise InputError(
            f"window_s: ends at {quantity.window_s[1]:g} s, but the run lasts {shortest_s:g} s"
        )
