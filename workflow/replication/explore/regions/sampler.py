"""The sampler: runs points of a region, reads what its claim compares, and counts what runs cost.

The compared quantity is one logarithm a run. A share of alternatives that must all be above another
is the ratio to the best of them; two that must be alike are their ratio between two bounds. Of
several clauses the one that is closest to failing decides: the quantity is then how far inside its
bounds that one is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from replication.design.design import Run
from replication.explore.machine import Costs, Machine
from replication.explore.regions.space import Point, Space
from replication.explore.regions.surface import Bounds
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import (
    Claim,
    Condition,
    EquivalenceTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    ValueTest,
    sides,
)
from replication.study.errors import InputError
from replication.study.study import Study
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.sample import starved, starved_note

#: A replicate of a point.
Trial = tuple[Point, int]
#: Largest factor by which a quantity is above or below another, such as one of nothing.
LARGEST = 1000.0


@dataclass(frozen=True)
class Clause:
    """A clause of a claim: a ratio or a value, and between which logarithms of it it holds."""

    test: RatioTest | ValueTest
    bounds: Bounds

    @classmethod
    def of(cls, test: SimpleTest) -> Clause:
        """Return a test as a clause; InputError where no single quantity decides it at a point."""
        if isinstance(test, RatioTest | ValueTest) and isinstance(test.expect, Condition):
            least, most = test.expect.at_least, test.expect.at_most
            low = -math.inf if least is None else math.log(least)
            return cls(test, Bounds(low, math.inf if most is None else math.log(most)))
        reduce = "mean"
        if isinstance(test, EquivalenceTest):
            bounds = Bounds(math.log(1 - test.margin), math.log(1 + test.margin))
        elif not isinstance(test, ShareTest) or test.expect.at_least != 1:
            raise InputError(
                f"claim: a test of kind {test.kind!r} has no quantity with a threshold"
            )
        elif test.relation == "above":
            bounds, reduce = Bounds(low=math.log(test.factor * (1 + test.tie))), "minimum"
        else:
            bounds, reduce = Bounds(high=math.log(test.factor * (1 - test.tie))), "maximum"
        ratio = RatioTest.model_construct(
            kind="ratio", left=test.left, right=test.right, reduce=reduce
        )
        return cls(ratio, bounds)

    def values(self, study: Study, results: Results) -> pd.Series[float]:
        """Return the logarithm of the quantity in each replicate; one without any is left out."""

        def look_up(side: str, wanted: Quantity):  # type: ignore[no-untyped-def]
            return quantity(results, wanted).drop(columns="engine").dropna(subset="value")

        try:
            found = compare(study, self.test, look_up).values.dropna()
        except UntestableError:
            return pd.Series(dtype=float)
        logs = pd.Series(np.log(found.astype(float).clip(1e-300, 1e300)))
        reach = math.log(LARGEST)
        return logs.clip(self.bounds.centre - reach, self.bounds.centre + reach)


@dataclass(frozen=True)
class Compared:
    """What a claim compares: its clauses, and the bounds of the quantity that they make."""

    clauses: Sequence[Clause]
    bounds: Bounds

    @classmethod
    def of(cls, claim: Claim) -> Compared:
        """Return what a claim compares; InputError where that is no quantity with a threshold."""
        clauses = [Clause.of(test) for test in claim.tests()]
        if not clauses:
            raise InputError(f"claim: {claim.id} cannot be tested")
        return cls(clauses, clauses[0].bounds if len(clauses) == 1 else Bounds(low=0.0))

    def values(self, study: Study, results: Results) -> dict[int, float]:
        """Return the logarithm of the quantity in each replicate that has one."""
        found = [clause.values(study, results) for clause in self.clauses]
        if len(found) > 1:
            margins = [
                np.minimum(own - clause.bounds.low, clause.bounds.high - own)
                for clause, own in zip(self.clauses, found, strict=True)
            ]
            found = [pd.concat(margins, axis=1, join="inner").min(axis=1)]
        return {int(str(replicate)): float(value) for replicate, value in found[0].items()}


@dataclass(frozen=True)
class PointResult:
    """One replicate of a point: where it was run, and the logarithm of the compared quantity.

    `value` is NaN where the quantity is undefined or nothing was run; `note` says why, or which
    flow is starved.
    """

    at: Point
    value: float = math.nan
    runs: Sequence[Run] = ()
    note: str = ""


@dataclass
class Sampler:
    """Runs replicates of points on an engine; all but the first lie `offset` off their point."""

    space: Space
    machine: Machine
    offset: float = 0.0
    costs: Costs = field(default_factory=Costs)
    _designed: dict[Trial, tuple[list[Run], str]] = field(default_factory=dict)

    @cached_property
    def compared(self) -> Compared:
        """What the claim compares."""
        return Compared.of(self.space.claim)

    @property
    def spent_s(self) -> float:
        """Expected CPU time of all that was run."""
        return self.costs.spent_s

    def cost_s(self, trials: Iterable[Trial]) -> float:
        """Return what trials cost beyond what was run already."""
        return self.costs.further_s(run for trial in trials for run in self._runs(trial)[0])

    def sample(self, trials: Sequence[Trial]) -> dict[Trial, PointResult]:
        """Return what is found in trials; run what lacks."""
        designed = {trial: self._runs(trial) for trial in trials}
        ran = [trial for trial, (runs, _) in designed.items() if runs]
        self.costs.count(run for trial in ran for run in designed[trial][0])
        values: dict[int, float] = {}
        notes: dict[int, str] = {}
        if ran:
            results = self.machine.results(
                self.space.base.id, [designed[trial][0] for trial in ran]
            )
            values = self.compared.values(self.space.study, results)
            wanted = [one for test in self.space.claim.tests() for one in sides(test)]
            hungry = starved(results, self.machine.engine, wanted)
            notes = {int(str(n)): starved_note(own) for n, own in hungry.groupby("replicate")}
        number = {trial: place for place, trial in enumerate(ran)}
        found = {}
        for trial, (runs, refusal) in designed.items():
            place = number.get(trial, -1)
            value = values.get(place, math.nan)
            undefined = "the quantity is undefined" if math.isnan(value) else ""
            note = notes.get(place) or refusal or undefined
            found[trial] = PointResult(replicate_point(*trial, self.offset), value, runs, note)
        return found

    def _runs(self, trial: Trial) -> tuple[list[Run], str]:
        if trial not in self._designed:
            point, replicate = trial
            try:
                runs = self.space.runs(replicate_point(point, replicate, self.offset), replicate)
                refusal = next(filter(None, map(self.machine.refusal, runs)), "")
            except InputError as error:
                runs, refusal = [], str(error)
            self._designed[trial] = ([] if refusal else runs, refusal)
        return self._designed[trial]


def replicate_point(point: Point, replicate: int, offset: float) -> Point:
    """Return where a replicate of a point is run: the first at it, the others on both its sides.

    Many configurations leave nothing to chance: with other seeds alone, their replicates would be
    one run and their noise nought, where a hundredth more of a delay gives another result.
    """
    off = offset * ((replicate + 1) // 2) * (1 if replicate % 2 else -1)
    x, y = (min(1.0, max(0.0, share + off)) for share in (point.x, point.y))
    return Point(point.panel, x, y)
