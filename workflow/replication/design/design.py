"""The design: the points, replicates and scenarios of a study, and its batches."""

import functools
import heapq
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from replication.base.errors import InputError, Place
from replication.base.files import digest_of, write_text
from replication.base.position import within
from replication.base.table import DESIGN_COLUMNS, flat
from replication.design.config import Extent
from replication.design.textbook import Bottleneck, apply_rule, bottlenecks, window_bytes
from replication.engines.catalogue import ENGINES, chosen_engine
from replication.engines.model import Engine, crossings_by_link
from replication.engines.ns3 import NS3_VERSION
from replication.metrics.metric_model import COUNTS
from replication.study.parameter import Factor, Level
from replication.study.printed import printed_settings
from replication.study.scenario import Scenario
from replication.study.setup import Setup
from replication.study.study import Experiment, Study
from replication.study.template import TemplateError, instantiate, replicate_seed
from replication.study.variation import values_of

#: Snakemake's time grows faster than the number of jobs if there are more than about 500.
_MAXIMUM_BATCHES = 400


@dataclass(frozen=True)
class Run:
    """One row of the design: the scenario of a point and replicate on an engine.

    `replicates` is the point's number of replicates on the engine, `whole_s` the length of a run
    that the tier does not shorten.
    """

    study: str
    experiment: str
    levels: dict[str, str]
    replicate: int
    engine: str
    scenario: Scenario
    scenario_id: str
    refusal: str
    cost_s: float
    replicates: int = 1
    whole_s: float = 0.0
    setup: Setup = Setup.DEFAULTS

    @property
    def point(self) -> str:
        """The point as text, for readers and for file names."""
        return point_text(self.levels)

    def row(self, batch: str) -> dict[str, object]:
        """Return the row of the design's table; `batch` is empty for a refused run."""
        return {
            "study": self.study,
            "experiment": self.experiment,
            "point": self.point,
            "levels": json.dumps(self.levels),
            "replicate": self.replicate,
            "engine": self.engine,
            "setup": self.setup,
            "scenario": self.scenario_id,
            "supported": not self.refusal,
            "reason": self.refusal,
            "batch": batch,
            "cost_s": round(self.cost_s, 3),
        }


@dataclass(frozen=True)
class Batch:
    """The scenarios of one job, with the cost of each, and of all."""

    id: str
    study: str
    engine: str
    scenarios: dict[str, float]
    cost_s: float


def chosen_levels(factor: Factor, tier: Extent) -> list[Level]:
    """Return the levels that `tier` runs (see `Extent.levels`)."""
    levels = factor.levels
    flagged = [level for level in levels if level.quick]
    if tier.levels == "all" or (len(levels) <= 3 and not flagged):
        return list(levels)
    return flagged or [levels[0], levels[len(levels) // 2], levels[-1]]


def combinations(
    factors: Iterable[Factor], tier: Extent | None = None
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield each combination of levels in `tier`: level keys by factor, and the values they set."""
    axes = []
    for factor in factors:
        levels = chosen_levels(factor, tier) if tier else factor.levels
        axes.append([(factor.id, level) for level in levels])
    for combination in itertools.product(*axes):
        values: dict[str, Any] = {}
        for _, level in combination:
            values |= level.set
        yield {factor: level.key for factor, level in combination}, values


def scenario_at(
    study: Study,
    experiment: Experiment,
    levels: Mapping[str, str],
    values: Mapping[str, Any],
    replicate: int = 0,
    limit_s: float | None = None,
    engine: str = "",
    setup: Setup = Setup.DEFAULTS,
) -> Scenario:
    """Return the scenario of a point on an engine, if given; InputError names the point.

    Under the textbook set-up it has the study's decisions, but not yet the rule (`TextbookRule`).
    """
    parameters = values_of(study, experiment, replicate, engine, setup) | dict(values)
    try:
        seed = replicate_seed(study.id, experiment.id, replicate)
        return instantiate(experiment, parameters, seed, limit_s)
    except TemplateError as error:
        place = _written_at(study, experiment, levels, engine, error.place or (), setup)
        raise InputError(f"{point_text(levels)}, {error}", place) from None


def point_text(levels: Mapping[str, str]) -> str:
    """Return a point as text, for readers and for file names."""
    return ",".join(f"{factor}={key}" for factor, key in levels.items())


def _written_at(
    study: Study,
    experiment: Experiment,
    levels: Mapping[str, str],
    engine: str,
    place: Place,
    setup: Setup,
) -> Place:
    """Return the place of a template's value in a study: at a point it may be a parameter's."""
    if not place or not str(place[0]).startswith("$"):
        return place
    name, rest = str(place[0])[1:], place[1:]
    experiments = "experiments", experiment.id
    for factor in reversed(experiment.factors):
        key = levels[factor.id]
        if any(level.key == key and name in level.set for level in factor.levels):
            return (*experiments, "factors", factor.id, "levels", key, "set", name, *rest)
    if name in study.substituted(engine):
        return ("substitutions", engine, "set", name, *rest)
    if setup is Setup.TEXTBOOK:
        for number, decision in enumerate(study.textbook):
            if name in decision.value_for(experiment.id):
                return ("textbook", number, "value", *rest)
    where = (*experiments, "parameters") if name in experiment.parameters else ("parameters",)
    return (*where, name, "value", *rest)


class TextbookRule:
    """The textbook set-up of an experiment: its scenarios, with one window at all points."""

    def __init__(self, study: Study, experiment: Experiment) -> None:
        self._study, self._experiment = study, experiment
        monitored: list[Bottleneck] = []
        for levels, values in combinations(experiment.factors):
            first = scenario_at(study, experiment, levels, values, setup=Setup.TEXTBOOK)
            with within("experiments", experiment.id, words=f"experiment {experiment.id}"):
                printed = printed_settings(study, experiment, levels, values)
                monitored += bottlenecks(first, printed)
        self.window_bytes = window_bytes(monitored)

    def scenario(
        self,
        levels: Mapping[str, str],
        values: Mapping[str, Any],
        replicate: int = 0,
        limit_s: float | None = None,
        engine: str = "",
    ) -> Scenario:
        """Return the scenario of a point by the rule; arguments as for `scenario_at`."""
        at = self._study, self._experiment, levels, values
        scenario = scenario_at(*at, replicate, limit_s, engine, Setup.TEXTBOOK)
        return apply_rule(scenario, self.window_bytes, printed_settings(*at))


def design_study(
    study: Study,
    tier: Extent,
    engines: list[str],
    ns3_version: str = NS3_VERSION,
    *,
    first_alone: bool = False,
) -> list[Run]:
    """Return every run of `study`, or first replicates alone; InputError names an invalid point."""
    on = engines_by_setup(study, tier, engines)
    chosen = {
        setup: [chosen_engine(name, ns3_version) for name in names] for setup, names in on.items()
    }
    runs: list[Run] = []
    for experiment in study.experiments:
        points = list(_points(study, experiment, tier))
        for setup, its_engines in chosen.items():
            runs += _runs(study, experiment, tier, points, setup, its_engines, first_alone)
    return runs


def engines_by_setup(study: Study, tier: Extent, engines: list[str]) -> dict[Setup, list[str]]:
    """Return the engines that run each set-up of a study, of those that the configuration has."""
    original: str = study.original_system.engine
    primary = [original] if original in engines else engines[:1]
    if study.primary_only and not tier.every_engine:
        engines = primary
    by_setup = {Setup.DEFAULTS: engines}
    if Setup.TEXTBOOK not in study.setups or tier.textbook == "none" or not engines:
        return by_setup
    if tier.textbook == "all":
        by_setup[Setup.TEXTBOOK] = engines
    elif tier.textbook == "primary" or study.id in tier.textbook:
        by_setup[Setup.TEXTBOOK] = primary
    return by_setup


class _Point(NamedTuple):
    levels: dict[str, str]
    values: dict[str, Any]
    limit_s: float | None
    whole_s: float
    first: Scenario


def _points(study: Study, experiment: Experiment, tier: Extent) -> Iterator[_Point]:
    needed_s = _needed_s(study, experiment)
    for levels, values in combinations(experiment.factors, tier):
        first = whole = scenario_at(study, experiment, levels, values)
        limit_s = _duration_limit(whole, tier, needed_s)
        if limit_s is not None:
            first = scenario_at(study, experiment, levels, values, 0, limit_s)
        yield _Point(levels, values, limit_s, whole.duration_s, first)


def _runs(
    study: Study,
    experiment: Experiment,
    tier: Extent,
    points: list[_Point],
    setup: Setup,
    engines: list[Engine],
    first_alone: bool,
) -> Iterator[Run]:
    """Yield the runs of a set-up; they are as long as those of the defaults."""
    least = {
        engine.name: _least_count(setup, engine, experiment, tier, points) for engine in engines
    }
    make: Callable[..., Scenario] = functools.partial(scenario_at, study, experiment)
    if setup is Setup.TEXTBOOK:
        make = TextbookRule(study, experiment).scenario
    for point in points:
        first = point.first
        if setup is not Setup.DEFAULTS:
            first = make(point.levels, point.values, 0, point.limit_s)
        whole_s = first.duration_s if point.limit_s is None else point.whole_s
        crossings, made = crossings_by_link(first), {(0, ""): first}
        for engine in engines:
            cost_s = engine.nominal_cost_s(point.first)
            single_s = experiment.single_run_above_s
            count = max(least[engine.name], tier.replicates_for(cost_s))
            if single_s is not None and cost_s >= single_s:
                count = 1
            # Engines without a substitution share scenarios.
            substituted = engine.name if study.substituted(engine.name) else ""
            numbers = range(1 if first_alone else count)
            for replicate in numbers:
                if (replicate, substituted) not in made:
                    at = point.levels, point.values, replicate, point.limit_s
                    made[replicate, substituted] = make(*at, substituted)
            scenarios = [made[replicate, substituted] for replicate in numbers]
            if experiment.identical_runs_once and _are_identical(engine.name, scenarios):
                scenarios, count = scenarios[:1], 1
            for replicate, scenario in enumerate(scenarios):
                yield Run(
                    study=study.id,
                    experiment=experiment.id,
                    levels=point.levels,
                    replicate=replicate,
                    engine=engine.name,
                    scenario=scenario,
                    scenario_id=scenario.id,
                    refusal=engine.refusal(scenario),
                    cost_s=engine.cost_s(scenario, crossings),
                    replicates=count,
                    whole_s=whole_s,
                    setup=setup,
                )


def _least_count(
    setup: Setup, engine: Engine, experiment: Experiment, tier: Extent, points: list[_Point]
) -> int:
    least = experiment.replicates_at_least
    if setup is not Setup.DEFAULTS or least is None or not tier.heeds_replicates_at_least:
        return 0
    dearest_s = max(engine.nominal_cost_s(point.first) for point in points)
    is_cheap = least.where_cost_below_s is None or dearest_s < least.where_cost_below_s
    return least.count if is_cheap else 0


def _needed_s(study: Study, experiment: Experiment) -> float:
    """Return the least length of runs for the windows and counts of published numbers."""
    needed_s = [0.0]
    for table in study.tables:
        others = [row.experiment for row in (table.rows or {}).values()]
        if experiment.id in (table.experiment, *others):
            for cell in table.cells:
                if cell.window_s:
                    needed_s.append(cell.window_s[1])
                elif cell.metric in COUNTS:
                    needed_s.append(math.inf)
    return max(needed_s)


def _duration_limit(scenario: Scenario, tier: Extent, needed_s: float) -> float | None:
    """Return the longest run in `tier`, in whole sampling intervals; None without a limit."""
    cost_s = ENGINES["ns3"].nominal_cost_s(scenario)
    if tier.cost_limit_s is None or cost_s <= tier.cost_limit_s:
        return None
    last_start_s = max(flow.start_s for flow in scenario.flows)
    wanted_s = max(scenario.duration_s * tier.cost_limit_s / cost_s, 2 * last_start_s, needed_s)
    if wanted_s >= scenario.duration_s:
        return None
    intervals = math.ceil(wanted_s / scenario.sampling_interval_s)
    return min(intervals * scenario.sampling_interval_s, scenario.duration_s)


def batch_runs(runs: list[Run], fingerprints: dict[str, str], target_s: float) -> list[Batch]:
    """Pack the distinct scenarios of one study's runs into batches of about `target_s` each."""
    batches: list[Batch] = []
    for engine, distinct in distinct_runs(runs).items():
        # A heap of bins: cost, number, scenarios with their costs.
        bins: list[tuple[float, int, dict[str, float]]]
        bins = [(0.0, number, {}) for number in range(_batch_count(distinct, target_s))]
        # The longest runs come first, each into the emptiest batch.
        for run in sorted(distinct, key=lambda r: (-r.cost_s, r.scenario_id)):
            load_s, number, members = bins[0]
            members[run.scenario_id] = run.cost_s
            heapq.heapreplace(bins, (load_s + run.cost_s, number, members))
        for cost_s, _, members in sorted(bins, key=lambda packed: packed[1]):
            named = "\n".join([engine, fingerprints[engine], *sorted(members)])
            weight = "heavy" if cost_s > 1.5 * target_s else "light"
            name = f"{engine}-{weight}-{digest_of(named.encode())[:12]}"
            batches.append(Batch(name, runs[0].study, engine, members, cost_s))
    return batches


def batch_cost(studies: Iterable[list[Run]], target_s: float) -> float:
    """Return `target_s`, doubled until there are at most 400 batches."""
    # Doubling keeps the batches of a plan that grows a little.
    engines = flat(distinct_runs(study).values() for study in studies)
    while len(engines) < sum(_batch_count(runs, target_s) for runs in engines) > _MAXIMUM_BATCHES:
        target_s *= 2
    return target_s


def distinct_runs(runs: list[Run]) -> dict[str, list[Run]]:
    """Return one run for each scenario that is not refused, by engine."""
    distinct: dict[str, dict[str, Run]] = {}
    for run in runs:
        if not run.refusal:
            distinct.setdefault(run.engine, {})[run.scenario_id] = run
    return {engine: list(distinct[engine].values()) for engine in sorted(distinct)}


def _batch_count(runs: list[Run], target_s: float) -> int:
    # An exact sum does not depend on the order of runs.
    count = round(math.fsum(run.cost_s for run in runs) / target_s)
    return min(len(runs), max(1, count))


def write_design(runs: list[Run], batches: list[Batch], study: str, folder: Path) -> None:
    """Write runs and their batches to <study>.csv, and scenarios/<study>.json, in `folder`."""
    import pandas as pd

    batch_of: dict[tuple[str, str], str] = {}
    for batch in batches:
        batch_of |= {(batch.engine, name): batch.id for name in batch.scenarios}
    rows = [run.row(batch_of.get((run.engine, run.scenario_id), "")) for run in runs]
    table = pd.DataFrame(rows, columns=list(DESIGN_COLUMNS))
    write_text(folder / f"{study}.csv", table.to_csv(index=False))
    write_scenarios({run.scenario_id: run.scenario for run in runs}, study, folder)


def write_scenarios(scenarios: Mapping[str, Scenario], study: str, folder: Path) -> None:
    """Write scenarios by their ids to scenarios/<study>.json in `folder`."""
    # One line per scenario, so that a batch parses only its own.
    lines = [f'"{name}":{scenarios[name].to_json()}' for name in sorted(scenarios)]
    write_text(folder / "scenarios" / f"{study}.json", "{\n" + ",\n".join(lines) + "\n}\n")


#: Disciplines that drop packets, or choose their queue, at random.
_RANDOM_QUEUES = {"red", "pie", "fq_codel", "fq_pie", "cake"}
#: BBR draws the phase of its gain cycle, and ns-2 the phase of every sender's clock.
_RANDOM_CONTROL, _RANDOM_ENGINE = "bbr", "ns2"


def repeat_warnings(runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for each experiment with points whose replicates are identical."""
    replicates: dict[tuple[str, ...], list[Scenario]] = defaultdict(list)
    for run in runs:
        if not run.refusal:
            at = run.experiment, run.point, run.engine, run.setup
            replicates[at].append(run.scenario)
    points: dict[str, set[str]] = defaultdict(set)
    for (experiment, point, engine, _), scenarios in replicates.items():
        if _are_identical(engine, scenarios):
            points[experiment].add(point)
    for experiment, identical in points.items():
        yield (
            f"experiment {experiment}: all replicates are identical at {len(identical)} points, so "
            "intervals have no width; give flows a start_jitter_s, or an assumed parameter `varies`"
        )


def _are_identical(engine: str, scenarios: list[Scenario]) -> bool:
    """Return whether several replicates draw nothing, so that an engine runs the same each time."""
    first = scenarios[0]
    if engine == _RANDOM_ENGINE or len(scenarios) < 2:
        return False
    if any(getattr(flow, "congestion_control", "") == _RANDOM_CONTROL for flow in first.flows):
        return False
    for link in first.links:
        drawn_from = [link.jitter_s, link.random_loss("ab"), link.random_loss("ba")]
        drawn_from += [change.loss_ab or change.loss_ba or 0.0 for change in link.changes]
        if any(drawn_from) or {link.queue_ab.kind, link.queue_ba.kind} & _RANDOM_QUEUES:
            return False
    same = first.model_copy(update={"seed": 1})
    return all(other.model_copy(update={"seed": 1}) == same for other in scenarios[1:])
