"""Design points: the settings of a study's assumptions at which its claims and cells are judged.

Kinds of points, all on one engine and with one replicate:

- `default`: the ledger's defaults, and `seed`: the same with other seeds, to know what chance does;
- `one at a time`: one assumption at an end of its range, or at another of its choices;
- `space filling`: all assumptions at once, by a Sobol' or Latin hypercube design.

Runs are whole: where the budget does not allow all points, the last of the design are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue
from scipy.stats import qmc

from replication.plan.config import Replicates, Tier
from replication.plan.design import Run, design_study
from replication.study.assumption import Assumption, assumptions, variant
from replication.study.errors import InputError
from replication.study.sensitivity_settings import Scale, Sensitivity
from replication.study.study import Study

Numbers = npt.NDArray[np.float64]

DEFAULT = "default"
SEED = "seed"
ONE_AT_A_TIME = "one at a time"
SPACE_FILLING = "space filling"


@dataclass(frozen=True)
class DesignPoint:
    """One setting of a study's assumptions, and the runs that judge it.

    Attributes
    ----------
    id
        Unique within the study.
    kind
        See the module's docstring.
    changed
        Key of the assumption (one at a time); empty for the others.
    values
        Assumptions that differ from their defaults, by key.
    runs
        One for each point of the study's experiments.
    refusal
        Why the values do not make a scenario together; then there are no runs.
    """

    id: str
    kind: str
    changed: str = ""
    values: dict[str, JsonValue] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class _Candidate:
    """A point before it has runs."""

    point: DesignPoint
    study: Study


@dataclass(frozen=True)
class Space:
    """The plausible settings of a study on an engine.

    Attributes
    ----------
    axes
        Its assumptions.
    refused
        The choices that the engine refuses, by assumption: they are left out.
    """

    axes: Sequence[Assumption]
    refused: dict[str, list[JsonValue]]

    def at(self, row: Iterable[float]) -> dict[str, JsonValue]:
        """Return the setting at a position in the unit cube, a number an assumption."""
        return {
            axis.key: axis.at(float(u), self.refused.get(axis.key))
            for axis, u in zip(self.axes, row, strict=True)
        }


@dataclass(frozen=True)
class StudyDesign:
    """All design points of a study.

    Attributes
    ----------
    points
        In the order of the module's docstring.
    refused
        See `Space`.
    left_out
        Points of the space-filling design that the budget does not allow.
    """

    points: list[DesignPoint]
    refused: dict[str, list[JsonValue]]
    left_out: int


def varied(study: Study, settings: Sensitivity) -> list[Assumption]:
    """Return the assumptions with an alternative that the settings let vary.

    Raises
    ------
    InputError
        The settings hold what is not an assumption of the study.
    """
    found = assumptions(study)
    held = settings.of(study.id).held
    for key in held:
        if key not in {assumption.key for assumption in found}:
            raise InputError(
                f"configs/sensitivity.yaml: studies.{study.id}.held: {key!r} is not an assumed "
                "parameter of the study's explored experiments"
            )
    return [a for a in found if a.alternatives and a.key not in held]


def design_points(study: Study, settings: Sensitivity, engine: str) -> StudyDesign:
    """Return every design point of a study with its runs on an engine.

    Raises
    ------
    InputError
        A template does not resolve at the defaults, or the settings do not fit the study.
    """
    scale = settings.of(study.id).exploration
    study = only(study, scale)
    axes = varied(study, settings)
    alone = _one_at_a_time(study, axes)
    refused = _refused_choices(study, alone, engine)
    tier = explored_tier(scale.levels)
    points = _seeds(study, settings, engine)
    points += [_with_runs(candidate, tier, engine) for candidate in alone]
    spread = _space_filling(study, Space(axes, refused), settings)
    filling = [_with_runs(candidate, tier, engine) for candidate in spread]
    kept = _affordable(points, filling, scale.cpu_budget_s)
    return StudyDesign([*points, *filling[:kept]], refused, len(filling) - kept)


def _affordable(
    points: Sequence[DesignPoint], filling: Sequence[DesignPoint], budget_s: float
) -> int:
    """Return how many points of the space-filling design the budget allows, in their order."""
    costs: dict[str, float] = {}
    for point in points:
        costs |= {run.scenario_id: run.cost_s for run in point.runs if not run.refusal}
    for number, point in enumerate(filling):
        costs |= {run.scenario_id: run.cost_s for run in point.runs if not run.refusal}
        if sum(costs.values()) > budget_s:
            return number
    return len(filling)


def only(study: Study, scale: Scale) -> Study:
    """Return the study without the experiments that the scale leaves out.

    Raises
    ------
    InputError
        The scale names an experiment that the study does not have.
    """
    if scale.experiments is None:
        return study
    known = [experiment.id for experiment in study.experiments]
    for name in scale.experiments:
        if name not in known:
            raise InputError(
                f"configs/sensitivity.yaml: study {study.id} has no experiment {name!r}; it has "
                f"{', '.join(known)}"
            )
    kept = [e for e in study.experiments if e.id in scale.experiments]
    return study.model_copy(update={"experiments": kept})


def _seeds(study: Study, settings: Sensitivity, engine: str) -> list[DesignPoint]:
    """Return the defaults with several seeds; the first of them is the default point."""
    count = settings.replicates_at_default
    tier = explored_tier(settings.of(study.id).exploration.levels, count)
    runs = _designed(study, tier, engine)
    points = []
    for number in range(count):
        own = tuple(replace(run, replicate=0) for run in runs if run.replicate == number)
        name, kind = (f"seed-{number}", SEED) if number else (DEFAULT, DEFAULT)
        points.append(DesignPoint(name, kind, runs=own))
    return points


def _one_at_a_time(study: Study, axes: Iterable[Assumption]) -> list[_Candidate]:
    found: list[_Candidate] = []
    for axis in axes:
        for value in axis.alternatives:
            values = {axis.key: value}
            point = DesignPoint(f"o-{len(found):03d}", ONE_AT_A_TIME, axis.key, values)
            found.append(_Candidate(point, variant(study, values)))
    return found


def _refused_choices(
    study: Study, candidates: Iterable[_Candidate], engine: str
) -> dict[str, list[JsonValue]]:
    """Return the choices that the engine refuses where it runs the default, by assumption."""
    tier = explored_tier("quick")
    usual = {run.refusal for run in _designed(study, tier, engine)}
    refused: dict[str, list[JsonValue]] = {}
    for candidate in candidates:
        point = _with_runs(candidate, tier, engine)
        if point.refusal or {run.refusal for run in point.runs} - usual:
            refused.setdefault(point.changed, []).append(point.values[point.changed])
    return refused


def _space_filling(study: Study, space: Space, settings: Sensitivity) -> list[_Candidate]:
    if not space.axes:
        return []
    found: list[_Candidate] = []
    for number, row in enumerate(positions(len(space.axes), settings)):
        drawn = space.at(row)
        point = DesignPoint(f"s-{number:03d}", SPACE_FILLING, values=drawn)
        found.append(_Candidate(point, variant(study, drawn)))
    return found


def positions(count: int, settings: Sensitivity) -> Numbers:
    """Return the space-filling design in the unit cube: a row a point, a column an assumption."""
    if settings.method == "sobol":
        exponent = settings.points.bit_length() - 1
        drawn = qmc.Sobol(count, rng=settings.seed).random_base2(exponent)
    else:
        drawn = qmc.LatinHypercube(count, rng=settings.seed).random(settings.points)
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


def _designed(study: Study, tier: Tier, engine: str) -> tuple[Run, ...]:
    # A design point is one replicate, and has one of the levels that are averaged over.
    return tuple(design_study(study, tier, [engine], whole_averages=False))


def _with_runs(candidate: _Candidate, tier: Tier, engine: str) -> DesignPoint:
    point = candidate.point
    try:
        runs = _designed(candidate.study, tier, engine)
    except InputError as error:
        return DesignPoint(point.id, point.kind, point.changed, point.values, refusal=str(error))
    return DesignPoint(point.id, point.kind, point.changed, point.values, runs)
