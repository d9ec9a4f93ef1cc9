"""The sampler: runs points of a region, reads the compared quantity, and counts what runs cost.

Costs are the engine's cost model's, and every scenario counts once whether the store had it or
not: where a region is sampled next must not hang on a clock or on what was run before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from replication.design.design import Run
from replication.explore.machine import Machine
from replication.explore.regions.quantity import Compared
from replication.explore.regions.space import Point, Space
from replication.study.claim_model import sides
from replication.study.errors import InputError
from replication.verdicts.sample import starved, starved_note

#: A replicate of a point.
Trial = tuple[Point, int]


@dataclass(frozen=True)
class PointResult:
    """One replicate of a point: where it was run, and the logarithm of the compared quantity.

    `value` is NaN where the quantity is undefined or nothing was run, for a `reason`; `note` says
    which flow is starved.
    """

    at: Point
    value: float = math.nan
    runs: tuple[Run, ...] = ()
    reason: str = ""
    note: str = ""


@dataclass
class Sampler:
    """Runs replicates of points on an engine; all but the first lie `offset` off their point."""

    space: Space
    machine: Machine
    offset: float = 0.0
    spent_s: float = 0.0
    _charged: set[str] = field(default_factory=set)
    _designed: dict[Trial, list[Run] | str] = field(default_factory=dict)

    @cached_property
    def compared(self) -> Compared:
        """What the claim compares."""
        return Compared.of(self.space.claim)

    def cost_s(self, trials: Iterable[Trial]) -> float:
        """Return what trials cost beyond what was run already."""
        runs = [run for trial in trials for run in self._ran(trial)]
        costs = {run.scenario_id: run.cost_s for run in runs}
        return math.fsum(cost for key, cost in costs.items() if key not in self._charged)

    def sample(self, trials: Sequence[Trial]) -> dict[Trial, PointResult]:
        """Return what is found in trials; run what lacks."""
        self.spent_s += self.cost_s(trials)
        self._charged |= {run.scenario_id for trial in trials for run in self._ran(trial)}
        return self._read([(trial, self._ran(trial)) for trial in trials])

    def _ran(self, trial: Trial) -> list[Run]:
        if trial not in self._designed:
            self._designed[trial] = self._design(trial)
        found = self._designed[trial]
        return [] if isinstance(found, str) else found

    def _design(self, trial: Trial) -> list[Run] | str:
        point, number = trial
        try:
            runs = self.space.runs(replicate_point(point, number, self.offset), number)
        except InputError as error:
            return str(error)
        refused = [run.refusal for run in runs if run.refusal]
        if refused:
            return refused[0]
        return "its kernel is not there" if any(map(self.machine.missing_kernel, runs)) else runs

    def _read(self, trials: Sequence[tuple[Trial, Sequence[Run]]]) -> dict[Trial, PointResult]:
        ran = [(trial, runs) for trial, runs in trials if runs]
        values: Mapping[int, float] = {}
        notes: dict[int, str] = {}
        if ran:
            results = self.machine.results(self.space.base.id, [runs for _, runs in ran])
            values = self.compared.values(self.space.study, results)
            wanted = [one for test in self.space.claim.tests() for one in sides(test)]
            hungry = starved(results, self.machine.engine, wanted)
            for place, own in hungry.groupby(hungry["replicate"].astype(int)):
                notes[int(str(place))] = starved_note(own)
        number = {trial: place for place, (trial, _) in enumerate(ran)}
        found = {}
        for trial, runs in trials:
            place = number.get(trial, -1)
            value = values.get(place, math.nan)
            undefined = "the quantity is undefined" if math.isnan(value) else ""
            refusal = self._designed[trial]
            found[trial] = PointResult(
                at=replicate_point(*trial, self.offset),
                value=value,
                runs=tuple(runs),
                reason=refusal if isinstance(refusal, str) else undefined,
                note=notes.get(place, ""),
            )
        return found


def replicate_point(point: Point, replicate: int, offset: float) -> Point:
    """Return where a replicate of a point is run: the first at it, the others on both its sides.

    Many configurations leave nothing to chance: with other seeds alone, their replicates would be
    one run and their noise nought, where a hundredth more of a delay gives another result.
    """
    off = offset * ((replicate + 1) // 2) * (1 if replicate % 2 else -1)
    x, y = (min(1.0, max(0.0, share + off)) for share in (point.x, point.y))
    return Point(point.panel, x, y)
