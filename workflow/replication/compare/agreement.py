"""Agreement of the engines: the same claim and the same cell judged on two of them.

Two engines agree on an item that both can decide if their verdicts are the same word; for a cell
that is inside or outside its tolerance. `not testable` decides nothing, and `impossible` is the
audit's word on the paper, whatever the engine: neither is compared. An engine that ran no point of
a study is left out of it by name, with the reason.

An engine that refuses some of the points that an item rests on judges less than the other does;
such comparisons count, and how many there are is said beside the share (`unequal`).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from replication.judge.claim import DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED
from replication.judge.participation import Participation, is_supported, participations
from replication.measure.cell_map import MappedCell
from replication.measure.statistic import Estimate, relative_difference, wilson_interval
from replication.study.claim_model import Quantity
from replication.study.study import Study
from replication.study.table import Row

#: Verdicts that an engine's runs decide.
DECIDED = (REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED)
CLAIM, CELL = "claim", "cell"
#: An experiment and a point of it.
Point = tuple[str, str]


@dataclass(frozen=True)
class Pair:
    """One claim or one cell on two engines.

    Attributes
    ----------
    study, kind, key
        What is judged: the claim's id, or table, row and column.
    left, right
        The engines.
    left_verdict, right_verdict
        Their verdicts.
    left_points, right_points
        How many of the points that the item rests on each ran.
    equal
        Whether these are the same points.
    difference
        Of a cell, (right - left) / abs(left) of the reproduced means; NaN otherwise.
    quantities
        What the item is made from.
    """

    study: str
    kind: str
    key: tuple[str, ...]
    left: str
    right: str
    left_verdict: str
    right_verdict: str
    left_points: int
    right_points: int
    equal: bool
    difference: Estimate
    quantities: tuple[Quantity, ...]

    @property
    def compared(self) -> bool:
        """Whether both engines decide the item."""
        return self.left_verdict in DECIDED and self.right_verdict in DECIDED

    @property
    def agrees(self) -> bool:
        """Whether both decide it the same way."""
        return self.compared and self.left_verdict == self.right_verdict

    @property
    def group(self) -> str:
        """What is explained together: a claim, or the cells of a table's column."""
        return self.key[0] if self.kind == CLAIM else f"{self.key[0]}: {self.key[2]}"

    def row(self) -> dict[str, object]:
        """Return the row of agreement_pairs.csv."""
        cell = self.kind == CELL
        return {
            "study": self.study,
            "kind": self.kind,
            "claim": "" if cell else self.key[0],
            "table": self.key[0] if cell else "",
            "row": self.key[1] if cell else "",
            "column": self.key[2] if cell else "",
            "left": self.left,
            "right": self.right,
            "left_verdict": self.left_verdict,
            "right_verdict": self.right_verdict,
            "left_points": self.left_points,
            "right_points": self.right_points,
            "agree": self.agrees if self.compared else None,
            "difference": self.difference.mean,
            "difference_low": self.difference.low,
            "difference_high": self.difference.high,
        }


@dataclass(frozen=True)
class Rate:
    """How often two engines agree: `agreed` of the `compared` of `items`, with Wilson's interval.

    `study` is empty for all studies together. `unequal` of the compared rest on different points.
    `reason` says why a pair is left out, and is empty otherwise.
    """

    study: str
    kind: str
    left: str
    right: str
    items: int
    compared: int
    agreed: int
    unequal: int
    reason: str

    def row(self) -> dict[str, object]:
        """Return the row of agreement.csv."""
        share = low = high = math.nan
        if self.compared:
            share = self.agreed / self.compared
            low, high = wilson_interval(self.agreed, self.compared)
        return {**self.__dict__, "share": share, "low": low, "high": high}


class StudyVerdicts:
    """The verdicts of one study on every engine, with the points that each rests on."""

    def __init__(
        self,
        study: Study,
        mapped: Iterable[MappedCell],
        design: Sequence[Row],
        claims: Iterable[Row],
        cells: Iterable[Row],
    ) -> None:
        self.study = study
        self.parts: dict[str, Participation] = participations(design)
        self._claims = {(row["claim"], row["engine"]): row for row in claims}
        self._cells = {
            ((row["table"], row["row"], row["column"]), row["engine"]): row for row in cells
        }
        self._mapped = list(mapped)
        self._points = _Points(design)

    def engine_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every pair of engines of the design, in its order."""
        yield from itertools.combinations(self.parts, 2)

    def left_out(self, left: str, right: str) -> str:
        """Return why a pair has nothing to compare: an engine of it ran no point; else empty."""
        why = [f"{e} {self.parts[e].why_not()}" for e in (left, right) if not self.parts[e].ran]
        return "; ".join(why)

    def pairs(self) -> Iterator[Pair]:
        """Yield every claim and cell on every pair of engines that both ran a point."""
        for left, right in self.engine_pairs():
            if self.left_out(left, right):
                continue
            for claim in self.study.claims:
                quantities = tuple(claim.quantities())
                rows = [self._claims.get((claim.id, engine)) for engine in (left, right)]
                if rows[0] and rows[1]:
                    yield self._pair(CLAIM, (claim.id,), rows[0], rows[1], quantities)
            for cell in self._mapped:
                rows = [self._cells.get((cell.key, engine)) for engine in (left, right)]
                if rows[0] and rows[1]:
                    yield self._pair(CELL, cell.key, rows[0], rows[1], (cell.quantity,))

    def _pair(
        self,
        kind: str,
        key: tuple[str, ...],
        left: Row,
        right: Row,
        quantities: tuple[Quantity, ...],
    ) -> Pair:
        points = [self._points.ran(row["engine"], quantities) for row in (left, right)]
        unknown = Estimate(math.nan, math.nan, math.nan, 0)
        return Pair(
            study=self.study.id,
            kind=kind,
            key=key,
            left=left["engine"],
            right=right["engine"],
            left_verdict=left["verdict"],
            right_verdict=right["verdict"],
            left_points=len(points[0]),
            right_points=len(points[1]),
            equal=points[0] == points[1],
            difference=unknown
            if kind == CLAIM
            else relative_difference(_estimate(left), _estimate(right)),
            quantities=quantities,
        )


class _Points:
    """Finds the points that an engine ran for a quantity."""

    def __init__(self, design: Sequence[Row]) -> None:
        self._levels: dict[Point, dict[str, str]] = {}
        self._ran: dict[str, set[Point]] = {}
        for row in design:
            point = row["experiment"], row["point"]
            self._levels.setdefault(point, json.loads(row["levels"]))
            if is_supported(row):
                self._ran.setdefault(row["engine"], set()).add(point)

    def ran(self, engine: str, quantities: Iterable[Quantity]) -> set[Point]:
        """Return the points that `engine` ran of those that any of the quantities covers."""
        wanted = list(quantities)
        return {
            point
            for point in self._ran.get(engine, ())
            if any(q.experiment == point[0] and _covers(q, self._levels[point]) for q in wanted)
        }


def _covers(wanted: Quantity, levels: Mapping[str, str]) -> bool:
    return all(
        levels.get(factor) in ([keys] if isinstance(keys, str) else keys)
        for factor, keys in wanted.where.items()
    )


def _estimate(row: Row) -> Estimate:
    mean, low, high = (
        float(row[name] or math.nan)
        for name in ("reproduced_mean", "reproduced_low", "reproduced_high")
    )
    return Estimate(mean, low, high, int(row["n"] or 0))


def rates(judged: Sequence[StudyVerdicts], pairs: Sequence[Pair]) -> Iterator[Rate]:
    """Yield how often each pair of engines agrees: a study at a time, then over all studies.

    Parameters
    ----------
    judged, pairs
        The studies, and the pairs of all of them.
    """
    engines: dict[tuple[str, str], None] = {}
    for study in judged:
        for left, right in study.engine_pairs():
            engines[left, right] = None
            reason = study.left_out(left, right)
            for kind in (CLAIM, CELL):
                yield _rate(study.study.id, kind, left, right, pairs, reason)
    for left, right in engines:
        for kind in (CLAIM, CELL):
            yield _rate("", kind, left, right, pairs, "")


def _rate(study: str, kind: str, left: str, right: str, pairs: Iterable[Pair], reason: str) -> Rate:
    ours = [
        pair
        for pair in pairs
        if (pair.left, pair.right, pair.kind) == (left, right, kind) and study in ("", pair.study)
    ]
    compared = [pair for pair in ours if pair.compared]
    return Rate(
        study=study,
        kind=kind,
        left=left,
        right=right,
        items=len(ours),
        compared=len(compared),
        agreed=sum(pair.agrees for pair in compared),
        unequal=sum(not pair.equal for pair in compared),
        reason=reason,
    )
