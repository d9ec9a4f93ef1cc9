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
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from replication.judge.participation import Participation, participations
from replication.judge.verdict_table import Judged
from replication.measure.statistic import Estimate, relative_difference, wilson_interval
from replication.study.claim_model import Quantity
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import DECIDED

CLAIM, CELL = "claim", "cell"


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
        design: Sequence[Row],
        claims: Iterable[Judged],
        cells: Iterable[Judged],
    ) -> None:
        self.study = study
        self.parts: dict[str, Participation] = participations(design)
        self._items: dict[tuple[str, tuple[str, ...]], dict[str, Judged]] = {}
        for row in claims:
            self._items.setdefault((CLAIM, (row["claim"],)), {})[row["engine"]] = row
        for row in cells:
            key = row["table"], row["row"], row["column"]
            self._items.setdefault((CELL, key), {})[row["engine"]] = row

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
            for (kind, key), rows in self._items.items():
                if left in rows and right in rows:
                    yield self._pair(kind, key, rows[left], rows[right])

    def _pair(self, kind: str, key: tuple[str, ...], left: Judged, right: Judged) -> Pair:
        points = [
            {(point["experiment"], point["point"]) for point in row["points"]}
            for row in (left, right)
        ]
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
            quantities=tuple(map(Quantity.model_validate_json, left["quantities"])),
        )


def _estimate(row: Judged) -> Estimate:
    ends = (row[f"reproduced_{name}"] for name in ("mean", "low", "high"))
    mean, low, high = (math.nan if end is None else end for end in ends)
    return Estimate(mean, low, high, row["n"])


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
