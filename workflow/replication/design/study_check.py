"""Checks of a study and its published numbers before anything runs."""

import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from replication.base.errors import InputError, check_known
from replication.base.position import within
from replication.base.table import COMPLETION, SOCKET_NUMBERS
from replication.design.design import Run, combinations, scenario_at
from replication.engines.routing import Routes
from replication.metrics.cell_map import MappedCell, check_complete, map_cells
from replication.metrics.metric_model import check_metric, is_total, largest
from replication.study.claim_model import (
    SIDES,
    Claim,
    CrossoverTest,
    Quantity,
    SimpleTest,
    StartOrder,
    TrendTest,
    ValueTest,
    check_bounds,
    covers,
    sides,
)
from replication.study.published import read_published
from replication.study.scenario import Scenario
from replication.study.series import read_series
from replication.study.study import Experiment, Study
from replication.study.variation import check_parameters_used

#: Tolerance of window ends: sampling times are sums of intervals, which have rounding errors.
_SLACK_S = 1e-9


def check_study(study: Study, published: Path) -> list[MappedCell]:
    """Return the study's cells; InputError for whatever can be found wrong before a run."""
    if not study.tables and not study.claims:
        raise InputError("has neither tables nor claims, so nothing to judge; add one", ())
    check_parameters_used(study)
    cells = map_cells(study, read_published(published))
    check_complete(study, cells, str(published))
    check_quantities(study, cells)
    return cells


def check_series(runs: Iterable[Run], root: Path) -> None:
    """Raise InputError for a series of opportunities whose file is missing or wrong."""
    for run in runs:
        for link in run.scenario.links:
            for way in ("ab", "ba"):
                key = f"opportunities_{way}"
                place = "experiments", run.experiment, "topology", "links", link.id, key
                if (series := link.opportunities(way)) is not None:
                    with within(*place, words=f"link {link.id}: {key}"):
                        read_series(series, root)


def check_quantities(study: Study, cells: Sequence[MappedCell] = ()) -> None:
    """Raise InputError for a quantity of a claim or cell that the study's runs cannot have."""
    points = study_points(study)
    for experiment in study.experiments:
        _check_paths(experiment, [run for _, run in points[experiment.id]])
    for claim in study.claims:
        with within("claims", claim.id, words=f"claim {claim.id}"):
            check_claim(study, claim, points)
    for cell in cells:
        table = {table.id: table for table in study.tables}[cell.table]
        place = "tables", cell.table, "columns" if table.cell is None else "cell", cell.column
        with within(*place, words=f"table {cell.table}, row {cell.row}, column {cell.column}"):
            _check_quantity(cell.quantity, points)


#: The points of experiments: levels by factor, and the scenario.
Points = dict[str, list[tuple[dict[str, str], Scenario]]]


def study_points(study: Study) -> Points:
    """Return the points of a study's experiments; InputError for one without a scenario."""
    points: Points = {}
    for experiment in study.experiments:
        points[experiment.id] = []
        for levels, values in combinations(experiment.factors):
            scenario = scenario_at(study, experiment, levels, values)
            points[experiment.id].append((levels, scenario))
    return points


def check_claim(study: Study, claim: Claim, points: Points) -> None:
    """Raise InputError for a test of a claim that the study's runs cannot have, or never meet."""
    for place, test in claim.placed_tests():
        with within(*place):
            check_test(study, test, points)


def check_test(study: Study, test: SimpleTest, points: Points) -> None:
    """Raise InputError for a test that the study's runs cannot have, or can never meet."""
    for side in SIDES:
        if (quantity := getattr(test, side, None)) is not None:
            with within(side):
                study.check_where(quantity.experiment, quantity.where)
                _check_quantity(quantity, points)
    if isinstance(test, TrendTest | CrossoverTest):
        for quantity in sides(test):
            values = _axis(study.experiment(quantity.experiment), test.over)
            if isinstance(test, CrossoverTest):
                check_bounds(test, min(values), max(values), f"the levels of {test.over}")
    if isinstance(test, ValueTest):
        check_bounds(test, -math.inf, largest(test.of.metric, test.of.aggregate), test.of.metric)


def _check_quantity(quantity: Quantity, points: Points) -> None:
    runs = [run for levels, run in points[quantity.experiment] if covers(quantity.where, levels)]
    with within(words=f"experiment {quantity.experiment}"):
        _check_flows(quantity, runs)
        _check_metric(quantity, runs)


def _axis(experiment: Experiment, over: str) -> list[float]:
    """Return the levels' values of the factor that a test is over."""
    factors = {factor.id: factor for factor in experiment.factors}
    check_known("over", [over], factors, ("over",))
    levels = factors[over].levels
    if without := sorted(level.key for level in levels if level.value is None):
        raise InputError(
            f"over: level {without[0]!r} of factor {over!r} has no value; "
            "a trend or crossover needs a number for each level",
            ("over",),
        )
    return [level.value for level in levels if level.value is not None]


def _check_paths(experiment: Experiment, runs: Sequence[Scenario]) -> None:
    """Raise InputError for a flow without a path, and for a node without a link."""
    checked = set()
    for run in runs:
        links = tuple((link.a, link.b) for link in run.links)
        ends = tuple((flow.id, flow.source, flow.destination) for flow in run.flows)
        network = (tuple(run.nodes), links, ends)
        if network in checked:
            continue
        checked.add(network)
        number = {name: index for index, name in enumerate(run.nodes)}
        routes = Routes(len(number), [(number[a], number[b]) for a, b in links])
        where = f"experiment {experiment.id}"
        for name, source, destination in ends:
            if not routes.path(number[source], number[destination]):
                raise InputError(
                    f"{where}: flow {name}: destination {destination!r} cannot be reached from "
                    f"{source!r}; add links, or correct an end of one",
                    ("experiments", experiment.id, "flows", name, "destination"),
                )
        linked = set(itertools.chain.from_iterable(links))
        for name in run.nodes:
            if name not in linked:
                raise InputError(
                    f"{where}: node {name!r} has no link; add one, or remove the node",
                    ("experiments", experiment.id, "topology", "nodes", name),
                )


def _check_flows(quantity: Quantity, runs: list[Scenario]) -> None:
    flows = quantity.flows
    kinds = [[flow.kind for flow in run.flows] for run in runs]
    if isinstance(flows, list):
        known: set[str] = set()
        for run in runs:
            known.update(flow.id for flow in run.flows)
        check_known("flows", flows, known, ("flows",))
    elif isinstance(flows, StartOrder):
        fewest = min((kinds_of_run.count("tcp") for kinds_of_run in kinds), default=0)
        if flows.start_order > fewest:
            text = f"flows: start_order is {flows.start_order} of {fewest} tcp flows"
            raise InputError(text, ("flows",))
    elif flows != "all" and not any(flows in kinds_of_run for kinds_of_run in kinds):
        raise InputError(f"flows: there is no {flows} flow", ("flows",))


def _check_metric(quantity: Quantity, runs: list[Scenario]) -> None:
    windowed = quantity.window_s is not None
    metric = check_metric(quantity.metric, quantity.aggregate, windowed)
    needed = "stop_after_bytes" if quantity.metric == COMPLETION else ""
    if not is_total(quantity) and metric.column in SOCKET_NUMBERS:
        needed = "socket_samples"
    if needed and not all(any(getattr(f, needed, None) for f in run.flows) for run in runs):
        text = f"metric: {quantity.metric} needs a flow with {needed} at every point"
        raise InputError(text, ("metric",))
    if metric.source == "queue" and not all(run.monitors for run in runs):
        text = f"metric: {quantity.metric} needs a queue in topology.monitors"
        raise InputError(text, ("metric",))
    shortest_s = min((run.duration_s for run in runs), default=0.0)
    if quantity.window_s is not None and quantity.window_s[1] > shortest_s + _SLACK_S:
        raise InputError(
            f"window_s: ends at {quantity.window_s[1]:g} s, but the run lasts {shortest_s:g} s",
            ("window_s",),
        )
