"""Design points: the settings of a study's assumptions at which its claims and cells are judged.

Kinds of points, all on one engine and with one replicate:

- `default`: the ledger's defaults, and `seed`: the same with other seeds, to know what chance does;
- `one at a time`: one assumption at an end of its range, or at another of its choices;
- `space filling`: all assumptions at once, by a Sobol' or Latin hypercube design;
- `reference`: the defaults, and `hypothesis`: the set-up that a hypothesis supposes, both at the
  scale of the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue
from scipy.stats import qmc

from replication.assumption import Assumption, assumptions, variant
from replication.config import Replicates, Tier
from replication.design import Run, design_study
from replication.errors import InputError
from replication.hypothesis import Hypothesis
from replication.sensitivity_settings import Scale, Sensitivity
from replication.study import Study

Numbers = npt.NDArray[np.float64]

DEFAULT = "default"
SEED = "seed"
ONE_AT_A_TIME = "one at a time"
SPACE_FILLING = "space filling"
REFERENCE = "reference"
HYPOTHESIS = "hypothesis"


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
        Key of the assumption (one at a time) or id of the hypothesis; empty for the others.
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
    """A point before it is known how long its runs may last."""

    point: DesignPoint
    study: Study


def varied(study: Study, settings: Sensitivity) -> list[Assumption]:
    """Return the assumptions with an alternative that the settings let vary.

    Raises
    ------
    InputError
        The settings name a parameter that is not an assumption of the study.
    """
    found = assumptions(study)
    wanted = settings.of(study.id).parameters
    for key in wanted or []:
        if key not in {assumption.key for assumption in found}:
            raise InputError(
                f"configs/sensitivity.yaml: studies.{study.id}.parameters: {key!r} is not an "
                "assumed parameter of the study"
            )
    return [a for a in found if a.alternatives and (wanted is None or a.key in wanted)]


def design_points(
    study: Study, settings: Sensitivity, hypotheses: Sequence[Hypothesis]
) -> list[DesignPoint]:
    """Return every design point of a study with its runs.

    Raises
    ------
    InputError
        A template does not resolve at the defaults, or the settings do not fit the study.
    """
    scale = settings.of(study.id)
    tested = _tested(_only(study, scale.hypotheses), hypotheses)
    study = _only(study, scale.exploration)
    axes = varied(study, settings)
    explored = _one_at_a_time(study, axes)
    refused = _refused_choices(study, explored, settings.engine)
    explored += _space_filling(study, axes, refused, settings)
    engine = settings.engine
    cut = cost_limit_s(_costs(explored, scale.exploration, engine), scale.exploration.cpu_budget_s)
    tier = _tier(scale.exploration, cost_limit=cut)
    points = _seeds(study, settings, cut) + [_with_runs(c, tier, engine) for c in explored]
    cut = cost_limit_s(_costs(tested, scale.hypotheses, engine), scale.hypotheses.cpu_budget_s)
    tier = _tier(scale.hypotheses, cost_limit=cut)
    return points + [_with_runs(candidate, tier, engine) for candidate in tested]


def _only(study: Study, scale: Scale) -> Study:
    """Return the study without the experiments that the scale leaves out."""
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


def _tested(study: Study, hypotheses: Sequence[Hypothesis]) -> list[_Candidate]:
    if not hypotheses:
        return []
    reference = _Candidate(DesignPoint(REFERENCE, REFERENCE), study)
    return [reference] + [
        _Candidate(
            DesignPoint(f"h-{h.id}", HYPOTHESIS, changed=h.id, values=dict(h.parameters or {})),
            h.set_up(study),
        )
        for h in hypotheses
        if h.is_simulated
    ]


def cost_limit_s(costs_s: Iterable[float], budget_s: float) -> float | None:
    """Return the largest cost of a run that keeps the sum within a budget, or None for any.

    The dearest runs are cut to one and the same cost, the others stay whole: that loses the least
    of the runs that are shortest anyhow.
    """
    rest = sorted(costs_s)
    if sum(rest) <= budget_s:
        return None
    left = budget_s
    for number, cost_s in enumerate(rest):
        share = left / (len(rest) - number)
        if cost_s > share:
            return share
        left -= cost_s
    raise AssertionError("the sum was above the budget")


def _costs(candidates: Iterable[_Candidate], scale: Scale, engine: str) -> list[float]:
    costs: dict[str, float] = {}
    for candidate in candidates:
        for run in _with_runs(candidate, _tier(scale), engine).runs:
            if not run.refusal:
                costs[run.scenario_id] = run.cost_s
    return list(costs.values())


def _seeds(study: Study, settings: Sensitivity, cut: float | None) -> list[DesignPoint]:
    """Return the defaults with several seeds; the first of them is the default point."""
    count = settings.replicates_at_default
    tier = _tier(settings.of(study.id).exploration, count, cut)
    runs = design_study(study, tier, [settings.engine])
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
    tier = _tier(Scale(levels="quick", cpu_budget_s=1.0, reason="no run"))
    usual = {run.refusal for run in design_study(study, tier, [engine])}
    refused: dict[str, list[JsonValue]] = {}
    for candidate in candidates:
        point = _with_runs(candidate, tier, engine)
        if point.refusal or {run.refusal for run in point.runs} - usual:
            refused.setdefault(point.changed, []).append(point.values[point.changed])
    return refused


def _space_filling(
    study: Study,
    axes: Sequence[Assumption],
    refused: dict[str, list[JsonValue]],
    settings: Sensitivity,
) -> list[_Candidate]:
    if not axes:
        return []
    found: list[_Candidate] = []
    for number, row in enumerate(positions(len(axes), settings)):
        drawn = {
            axis.key: axis.at(float(u), refused.get(axis.key))
            for axis, u in zip(axes, row, strict=True)
        }
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


def _tier(scale: Scale, replicates: int = 1, cost_limit: float | None = None) -> Tier:
    return Tier(
        id="sensitivity",
        title="sensitivity",
        replicates=[Replicates(count=replicates)],
        levels=scale.levels,
        cost_limit_s=cost_limit,
        batch_cost_s=60.0,
    )


def _with_runs(candidate: _Candidate, tier: Tier, engine: str) -> DesignPoint:
    point = candidate.point
    try:
        runs = tuple(design_study(candidate.study, tier, [engine]))
    except InputError as error:
        return DesignPoint(point.id, point.kind, point.changed, point.values, refusal=str(error))
    return DesignPoint(point.id, point.kind, point.changed, point.values, runs)
