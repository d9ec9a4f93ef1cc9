"""Forensics: experiments on why published tables and ours differ.

Two kinds of evidence, both by table:

- *hypotheses*: each is tested by itself; its outcome is how many cells lie inside tolerance with
  and without it, the same cells in the same runs (a reading) or at the same scale (a set-up);
- *fits*: the setting, of all that were run and all that a search added (`sensitivity.search`), that
  brings most cells inside. It is chosen on one half of the cells and judged on the other; a fit
  that many settings equal, or that fails on the cells it has not seen, explains nothing. A fit is
  never used anywhere else.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from replication.judge.cell import IMPOSSIBLE
from replication.judge.claim import NOT_TESTABLE
from replication.judge.hypothesis import Hypothesis
from replication.sensitivity.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    REFERENCE,
    SEARCH,
    SPACE_FILLING,
)
from replication.sensitivity.robustness import Verdicts
from replication.sensitivity.verdict_point import STATED
from replication.study.sensitivity_settings import Sensitivity

EXPLAINS = "explains"
HELPS = "helps"
REJECTED = "rejected"
UNTESTABLE = "not testable"

HYPOTHESIS_COLUMNS = (
    "study",
    "table",
    "hypothesis",
    "kind",
    "title",
    "reason",
    "source",
    "cells",
    "inside_before",
    "inside_after",
    "brought_inside",
    "outcome",
)
CELL_COLUMNS = (
    "study",
    "table",
    "row",
    "column",
    "unit",
    "published",
    "reference",
    "inside_before",
    "impossible",
    "explained_by",
    "rejected",
)
FIT_COLUMNS = (
    "study",
    "table",
    "label",
    "tried",
    "searched",
    "readings",
    "point",
    "reading",
    "values",
    "cells_fitted",
    "inside_fitted",
    "default_inside_fitted",
    "cells_judged",
    "inside_judged",
    "default_inside_judged",
    "equally_good",
)
#: What every fit is called wherever it is shown.
FIT_LABEL = "fit"
#: Largest relative miss that a fit tells from a larger one.
FAR_OFF = 10.0
_KEYS = ["table", "row", "column"]
#: Table, row and column.
CellKey = tuple[str, str, str]


def in_fitted_half(study: str, table: str, row: str, column: str) -> bool:
    """Return whether a cell is of the half that fits may see; a hash of its id decides."""
    digest = hashlib.sha256(f"{study}/{table}/{row}/{column}".encode()).digest()
    return digest[0] % 2 == 0


@dataclass(frozen=True)
class HypothesisResult:
    """What a hypothesis does to the cells of one table.

    Attributes
    ----------
    cells
        How many it decides.
    before, after
        How many lie inside without and with it.
    brought, left
        Those that it brings inside, and those that lie outside with it as without.
    """

    cells: int
    before: int
    after: int
    brought: list[CellKey]
    left: list[CellKey] = field(default_factory=list)

    def word(self, settings: Sensitivity) -> str:
        """Return explains, helps, rejected or not testable."""
        if not self.cells:
            return UNTESTABLE
        if self.after <= self.before:
            return REJECTED
        enough = self.after >= settings.explained_at_least * self.cells
        return EXPLAINS if enough else HELPS


def _decided(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that a run decides; impossible ones count, for a reading may mend them."""
    known = cells[cells["value"].notna() & (cells["verdict"] != NOT_TESTABLE)]
    return known.set_index(_KEYS)


def outcome(verdicts: Verdicts, hypothesis: Hypothesis, table: str) -> HypothesisResult:
    """Return what a hypothesis does to the cells of a table that it concerns."""
    cells = verdicts.cells[verdicts.cells["table"] == table]
    if hypothesis.columns is not None:
        cells = cells[cells["column"].isin(hypothesis.columns)]
    reference = cells[cells["kind"] == REFERENCE]
    before = _decided(reference[reference["reading"] == STATED])
    if hypothesis.is_simulated:
        own = cells[cells["point"] == f"h-{hypothesis.id}"]
        after = _decided(own[own["reading"] == STATED])
    else:
        after = _decided(reference[reference["reading"] == hypothesis.id])
    common = before.index.intersection(after.index)
    was = before.loc[common, "inside"].astype(bool)
    now = after.loc[common, "inside"].astype(bool)
    brought, left = (common[chosen.to_numpy()].tolist() for chosen in (now & ~was, ~now & ~was))
    return HypothesisResult(len(common), int(was.sum()), int(now.sum()), brought, left)


def hypothesis_rows(
    verdicts: Verdicts, hypotheses: Sequence[Hypothesis], settings: Sensitivity
) -> Iterator[dict[str, object]]:
    """Yield a row for each hypothesis and table."""
    for hypothesis in hypotheses:
        for table in hypothesis.tables:
            if hypothesis.untestable is not None:
                found = HypothesisResult(0, 0, 0, [])
            else:
                found = outcome(verdicts, hypothesis, table)
            yield {
                "study": verdicts.design.study,
                "table": table,
                "hypothesis": hypothesis.id,
                "kind": hypothesis.kind,
                "title": hypothesis.title,
                "reason": hypothesis.untestable or hypothesis.reason,
                "source": hypothesis.source,
                "cells": found.cells,
                "inside_before": found.before,
                "inside_after": found.after,
                "brought_inside": len(found.brought),
                "outcome": found.word(settings),
            }


def explained_rows(
    verdicts: Verdicts, hypotheses: Sequence[Hypothesis]
) -> Iterator[dict[str, object]]:
    """Yield a row for each cell: which hypotheses bring it inside, and which were rejected."""
    brought: dict[CellKey, list[str]] = {}
    rejected: dict[CellKey, list[str]] = {}
    for hypothesis in hypotheses:
        for table in hypothesis.tables if hypothesis.untestable is None else ():
            found = outcome(verdicts, hypothesis, table)
            for keys, into in ((found.brought, brought), (found.left, rejected)):
                for key in keys:
                    into.setdefault(key, []).append(hypothesis.id)
    cells = verdicts.cells
    reference = cells[(cells["kind"] == REFERENCE) & (cells["reading"] == STATED)]
    decided = set(_decided(reference).index)
    for row in reference.to_dict("records"):
        key = (row["table"], row["row"], row["column"])
        yield {
            "study": verdicts.design.study,
            **{name: row[name] for name in (*_KEYS, "unit", "published")},
            "reference": row["value"],
            "inside_before": bool(row["inside"]) if key in decided else None,
            "impossible": row["verdict"] == IMPOSSIBLE,
            "explained_by": "; ".join(brought.get(key, [])),
            "rejected": "; ".join(rejected.get(key, [])),
        }


@dataclass(frozen=True)
class Candidate:
    """A setting under a reading, and how its cells come out."""

    point: str
    reading: str
    inside: dict[CellKey, bool]
    misses: dict[CellKey, float]

    def count(self, keys: Sequence[CellKey]) -> int:
        """Return how many of some cells lie inside."""
        return sum(self.inside.get(key, False) for key in keys)

    def score(self, fitted: Sequence[CellKey]) -> float:
        """Return what a search makes small: a cell more inside outweighs any miss."""
        return -self.count(fitted) + self._miss(fitted) / (1 + FAR_OFF)

    def rank(self, fitted: Sequence[CellKey]) -> tuple[float, bool, str, str]:
        """Best score first, then the stated reading."""
        return self.score(fitted), self.reading != STATED, self.point, self.reading

    def _miss(self, fitted: Sequence[CellKey]) -> float:
        misses = [self.misses.get(key, math.inf) for key in fitted]
        # A published zero has no relative miss, and a lost cell an infinite one: both are far off.
        return float(np.mean([m if m < FAR_OFF else FAR_OFF for m in misses]))


@dataclass(frozen=True)
class SplitCells:
    """The cells of a table that a fit may see, and those that it is judged on."""

    fitted: list[CellKey]
    judged: list[CellKey]


def fit_rows(verdicts: Verdicts) -> Iterator[dict[str, object]]:
    """Yield the fit of each table over all settings that were explored and all readings."""
    values = {point.id: point.values for point in verdicts.design.points}
    for table, cells in explored_cells(verdicts):
        found = fit(verdicts.design.study, table, cells)
        if found is not None:
            point = str(found["point"])
            yield found | {"values": json.dumps(values[point], sort_keys=True)}


def explored_cells(verdicts: Verdicts) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each table and its judged cells at the points that a fit may choose."""
    kinds = (DEFAULT, ONE_AT_A_TIME, SPACE_FILLING, SEARCH)
    explored = verdicts.cells[
        verdicts.cells["kind"].isin(kinds) & (verdicts.cells["verdict"] != IMPOSSIBLE)
    ]
    for table, cells in explored.groupby("table", sort=False):
        yield str(table), cells


def split_cells(study: str, tried: Sequence[Candidate]) -> SplitCells | None:
    """Return the halves of the cells that the defaults decide; None where one has no cell."""
    default = _default(tried)
    keys = list(default.inside) if default else []
    fitted = [key for key in keys if in_fitted_half(study, *key)]
    judged = [key for key in keys if not in_fitted_half(study, *key)]
    return SplitCells(fitted, judged) if fitted and judged else None


def _default(tried: Sequence[Candidate]) -> Candidate | None:
    return next((c for c in tried if (c.point, c.reading) == (DEFAULT, STATED)), None)


def fit(study: str, table: str, cells: pd.DataFrame) -> dict[str, object] | None:
    """Return the fit of one table, or None where one of the halves has no cell.

    Parameters
    ----------
    study, table
        They decide, with row and column, which half a cell is of.
    cells
        Judged cells of the table at the points that may be chosen: point, reading, table, row,
        column, published, value, inside, verdict, kind.
    """
    tried = candidates(cells)
    halves, default = split_cells(study, tried), _default(tried)
    if halves is None or default is None:
        return None
    best = min(tried, key=lambda c: c.rank(halves.fitted))
    most = best.count(halves.fitted)
    as_good = {c.point for c in tried if c.count(halves.fitted) == most} - {best.point}
    searched = (
        cells.loc[cells["kind"] == SEARCH, "point"] if "kind" in cells else cells["point"][:0]
    )
    return {
        "study": study,
        "table": table,
        "label": FIT_LABEL,
        "tried": len({c.point for c in tried}),
        "searched": searched.nunique(),
        "readings": len({c.reading for c in tried}),
        "point": best.point,
        "reading": best.reading,
        "values": "",
        "cells_fitted": len(halves.fitted),
        "inside_fitted": most,
        "default_inside_fitted": default.count(halves.fitted),
        "cells_judged": len(halves.judged),
        "inside_judged": best.count(halves.judged),
        "default_inside_judged": default.count(halves.judged),
        "equally_good": len(as_good),
    }


def candidates(cells: pd.DataFrame) -> list[Candidate]:
    """Return the settings; a reading of some columns leaves the others as the study has them."""
    found = []
    for point, own in _decided(cells).groupby("point", sort=False):
        stated = own[own["reading"] == STATED]
        for reading in dict.fromkeys(own["reading"]):
            other = own[own["reading"] == reading]
            merged = pd.concat([other, stated[~stated.index.isin(other.index)]])
            keys = [(str(t), str(r), str(c)) for t, r, c in merged.index]
            inside = dict(zip(keys, merged["inside"].astype(bool).tolist(), strict=True))
            misses = (merged["value"] - merged["published"]).abs() / merged["published"].abs()
            found.append(
                Candidate(
                    str(point), str(reading), inside, dict(zip(keys, misses.tolist(), strict=True))
                )
            )
    return found
