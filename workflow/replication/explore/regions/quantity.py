"""The quantity of a region: what its claim compares, as one logarithm a run, and its bounds.

A share of alternatives that must all be above another is the ratio to the best of them; two that
must be alike are their ratio between two bounds. Of several clauses the one that is closest to
failing decides: the quantity is then how far inside its bounds that one is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replication.explore.regions.surface import Bounds, Numbers
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
)
from replication.study.errors import InputError
from replication.study.study import Study
from replication.verdicts.comparison import UntestableError, compare

#: Largest factor by which a quantity is above or below another, such as one of nothing.
LARGEST = 1000.0


@dataclass(frozen=True)
class Clause:
    """A clause of a claim: a ratio or a value, and between which logarithms of it it holds."""

    test: RatioTest | ValueTest
    bounds: Bounds

    @classmethod
    def of(cls, test: SimpleTest) -> Clause:
        """Return a test as a clause.

        Raises
        ------
        InputError
            No single quantity decides it at a point.
        """
        if isinstance(test, RatioTest | ValueTest) and isinstance(test.expect, Condition):
            low, high = test.expect.at_least, test.expect.at_most
            return cls(test, Bounds(_log(low, -math.inf), _log(high, math.inf)))
        if isinstance(test, EquivalenceTest):
            ratio = RatioTest.model_construct(
                kind="ratio", left=test.left, right=test.right, reduce="mean"
            )
            return cls(ratio, Bounds(math.log(1 - test.margin), math.log(1 + test.margin)))
        if isinstance(test, ShareTest) and test.expect.at_least == 1:
            is_above = test.relation == "above"
            bound = math.log(test.factor * (1 + test.tie if is_above else 1 - test.tie))
            ratio = RatioTest.model_construct(
                kind="ratio",
                left=test.left,
                right=test.right,
                reduce="minimum" if is_above else "maximum",
            )
            return cls(ratio, Bounds(low=bound) if is_above else Bounds(high=bound))
        raise InputError(f"claim: a test of kind {test.kind!r} has no quantity with a threshold")

    def values(self, study: Study, results: Results) -> dict[int, float]:
        """Return the logarithm of the quantity in each replicate; one without any is left out."""

        def look_up(side: str, wanted: Quantity):  # type: ignore[no-untyped-def]
            frame = quantity(results, wanted).drop(columns="engine")
            return frame[frame["value"].notna()]

        try:
            found = compare(study, self.test, look_up).values.dropna()
        except UntestableError:
            return {}
        furthest = np.clip(found.to_numpy(dtype=float), 1e-300, 1e300)
        logs = np.log(furthest)
        middle = self.bounds.centre
        logs = np.clip(logs, middle - math.log(LARGEST), middle + math.log(LARGEST))
        return dict(zip(map(int, found.index), map(float, logs), strict=True))

    def margins(self, values: Numbers) -> Numbers:
        """Return how far inside the bounds logarithms are."""
        return np.minimum(values - self.bounds.low, self.bounds.high - values)


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
        if len(found) == 1:
            return found[0]
        shared = sorted(set.intersection(*(set(own) for own in found)))
        margins = [
            clause.margins(np.array([own[key] for key in shared]))
            for clause, own in zip(self.clauses, found, strict=True)
        ]
        return dict(zip(shared, map(float, np.min(margins, axis=0)), strict=True))


def _log(bound: float | None, none: float) -> float:
    return none if bound is None else math.log(bound)
