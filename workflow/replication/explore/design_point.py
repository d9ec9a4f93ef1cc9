"""Design points: the settings of a study's assumptions at which its claims and cells are judged.

Kinds of points, all on one engine and with one replicate:

- `default`: the ledger's defaults, and `seed`: the same with other seeds, to know what chance does;
- `one at a time`: one assumption at an end of its range, or at another of its choices;
- `space filling`: all assumptions at once, by a Sobol' design.

Runs are whole: where the budget does not allow all points, the last of the design are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue
from scipy.stats import qmc

from replication.design.config import Replicates, Tier
from replication.design.design import Run, design_study
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.study.errors import InputError
from replication.study.sensitivity_settings import Scale, Sensitivity
from replication.study.study import Study
from replication.study.variation import Assumption, Variation, apply, assumptions

Numbers = npt.NDArray[np.float64]

DEFAULT = "default"
SEED = "seed"
ONE_AT_A_TIME = "one at a time"
SPACE_FILLING = "space filling"


@dataclass(frozen=True)
class DesignPoint:
    """One setting of a study's assumptions, and a run for each point of its experiments.

    `values` are those that differ from their defaults, `changed` the one that is changed alone;
    `refusal` says why the values make no scenario together.
    """

    id: str
    kind: str
    changed: str = ""
    values: dict[str, JsonValue] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    refusal: str = ""

    @property
    def ran(self) -> int:
        """How many of its runs the engine does not refuse."""
        return sum(not run.refusal for run in self.runs)


@dataclass(frozen=True)
class Design:
    """All design points of a study on one engine, in the order of the module's docstring.

    `left_out` counts the points of the space-filling design that are beyond the budget.
    """

    study: str
    engine: str
    points: list[DesignPoint]
    left_out: int = 0

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each point, by its id."""
        return {point.id: point.kind for point in self.points}

    def __str__(self) -> str:
        costs = _costs(self.points)
        refused = sum(bool(point.refusal) for point in self.points)
        return (
            f"{self.study}: {len(self.points)} design points, {len(costs)} scenarios on "
            f"{self.engine}, about {sum(costs.values()):.0f} s of CPU; {self.left_out} further "
            f"points are beyond the budget; {refused} points make no scenario"
        )


def _costs(points: Iterable[DesignPoint]) -> dict[str, float]:
    return {r.scenario_id: r.cost_s for p in points for r in p.runs if not r.refusal}


def varied(study: Study, settings: Sensitivity) -> list[Assumption]:
    """Return the assumptions with an alternative that the settings let vary.

    Raises
    ------
    InputError
        The settings hold what is not an assumption of the study.
    """
    found, held = assumptions(study), settings.of(study.id).held
    unknown = sorted(held.keys() - {assumption.key for assumption in found})
    if unknown:
        raise InputError(
            f"configs/sensitivity.yaml: studies.{study.id}.held: {unknown[0]!r} is not an assumed "
            "parameter of the study's explored experiments"
        )
    return [a for a in found if a.alternatives and a.key not in held]


def design_points(
    study: Study, settings: Sensitivity, engine: str, ns3_version: str = NS3_VERSION
) -> Design:
    """Return every design point of a study with its runs on an engine."""
    chosen = chosen_engine(engine, ns3_version)
    scale = settings.of(study.id).exploration
    study = only(study, scale)
    axes = varied(study, settings)
    alone = [(axis.key, value) for axis in axes for value in axis.alternatives]
    points = _seeds(study, scale, settings.replicates_at_default, chosen)
    tier = explored_tier(scale.levels)
    usual = {run.refusal for run in points[0].runs}
    # Choices that the engine refuses where it runs the default.
    refused: dict[str, list[JsonValue]] = {}
    for n, (key, value) in enumerate(alone):
        point = _point(study, f"o-{n:03d}", ONE_AT_A_TIME, {key: value}, tier, chosen)
        if point.refusal or {run.refusal for run in point.runs} - usual:
            refused.setdefault(key, []).append(value)
        points.append(point)
    costs, filling = _costs(points), []
    rows = positions(len(axes), settings) if axes else np.empty((0, 0))
    for number, row in enumerate(rows):
        values = {a.key: a.at(float(u), refused.get(a.key)) for a, u in zip(axes, row, strict=True)}
        point = _point(study, f"s-{number:03d}", SPACE_FILLING, values, tier, chosen)
        costs |= _costs([point])
        if sum(costs.values()) > scale.cpu_budget_s:
            break
        filling.append(point)
    left_out = len(rows) - len(filling)
    return Design(study.id, engine, [*points, *filling], left_out)


def only(study: Study, scale: Scale) -> Study:
    """Return the study without the experiments that the scale leaves out.

    Raises
    ------
    InputError
        The scale names an experiment that the study does not have.
    """
    kept = [e for e in study.experiments if e.id in (scale.experiments or [e.id])]
    unknown = set(scale.experiments or ()) - {experiment.id for experiment in kept}
    if unknown:
        raise InputError(
            f"configs/sensitivity.yaml: study {study.id} has no experiment {min(unknown)!r}; it "
            f"has {', '.join(experiment.id for experiment in study.experiments)}"
        )
    return study.model_copy(update={"experiments": kept})


def _seeds(study: Study, scale: Scale, count: int, engine: Engine) -> list[DesignPoint]:
    """Return the defaults with several seeds; the first of them is the default point."""
    runs = _designed(study, explored_tier(scale.levels, count), engine)
    points = []
    for number in range(count):
        own = tuple(replace(run, replicate=0) for run in runs if run.replicate == number)
        name, kind = (f"seed-{number}", SEED) if number else (DEFAULT, DEFAULT)
        points.append(DesignPoint(name, kind, runs=own))
    return points


def positions(count: int, settings: Sensitivity) -> Numbers:
    """Return the space-filling design in the unit cube: a row a point, a column an assumption."""
    exponent = settings.points.bit_length() - 1
    drawn = qmc.Sobol(count, rng=settings.seed).random_base2(exponent)
    return np.asarray(drawn, dtype=float)


def explored_tier(levels: Literal["all", "quick"], replicates: int = 1) -> Tier:
    """Return the tier by which runs are designed: whole ones, at all of a study's levels or few."""
    return Tier(
        id="sensitivity",
        title="sensitivity",
        replicates=[Replicates(count=replicates)],
        levels=levels,
        batch_cost_s=60.0,
    )


def _designed(study: Study, tier: Tier, engine: Engine) -> tuple[Run, ...]:
    # A design point is one replicate, and has one of the levels that are averaged over.
    runs = design_study(study, tier, [engine.name], engine.version, whole_averages=False)
    return tuple(runs)


def _point(
    study: Study, name: str, kind: str, values: dict[str, JsonValue], tier: Tier, engine: Engine
) -> DesignPoint:
    changed = next(iter(values)) if kind == ONE_AT_A_TIME else ""
    try:
        runs = _designed(apply(study, Variation(defaults=values)), tier, engine)
    except InputError as error:
        return DesignPoint(name, kind, changed, values, refusal=str(error))
    return DesignPoint(name, kind, changed, values, runs)
