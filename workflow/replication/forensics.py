"""Forensics: experiments on why published tables and ours differ.

Two kinds of evidence, both by table:

- *hypotheses*: each is tested by itself; its outcome is how many cells lie inside tolerance with
  and without it, the same cells in the same runs (a reading) or at the same scale (a set-up);
- *fits*: the setting, of all that were run, that brings most cells inside. It is chosen on one half
  of the cells and judged on the other; a fit that many settings equal, or that fails on the cells
  it has not seen, explains nothing. A fit is never used anywhere else.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from replication.cell import IMPOSSIBLE
from replication.claim import NOT_TESTABLE
from replication.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    REFERENCE,
    SPACE_FILLING,
)
from replication.hypothesis import Hypothesis
from replication.robustness import Verdicts
from replication.sensitivity_settings import Sensitivity
from replication.verdict_point import STATED

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
CELL_COLUMNS = ("study", "table", "row", "column", "inside_before", "explained_by", "tested")
FIT_COLUMNS = (
    "study",
    "table",
    "label",
    "tried",
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


def in_fitted_half(study: str, table: str, row: str, column: str) -> bool:
    """Return whether a cell is of the half that fits may see; a hash of its id decides."""
    digest = hashlib.sha256(f"{study}/{table}/{row}/{column}".encode()).digest()
    return digest[0] % 2 == 0


@dataclass(frozen=True)
class Outcome:
    """What a hypothesis does to the cells of one table."""

    cells: int
    before: int
    after: int
    brought: list[tuple[str, str]]

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


def outcome(verdicts: Verdicts, hypothesis: Hypothesis, table: str) -> Outcome:
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
    brought = [(str(row), str(column)) for _, row, column in common[(now & ~was).to_numpy()]]
    return Outcome(len(common), int(was.sum()), int(now.sum()), brought)


def hypothesis_rows(
    verdicts: Verdicts, hypotheses: Sequence[Hypothesis], settings: Sensitivity
) -> Iterator[dict[str, object]]:
    """Yield a row for each hypothesis and table."""
    for hypothesis in hypotheses:
        for table in hypothesis.tables:
            if hypothesis.untestable is not None:
                found = Outcome(0, 0, 0, [])
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
    """Yield a row for each cell: the hypotheses that bring it inside, and how many were tested."""
    explained: dict[tuple[str, str, str], list[str]] = {}
    tested: dict[str, list[Hypothesis]] = {}
    for hypothesis in hypotheses:
        if hypothesis.untestable is not None:
            continue
        for table in hypothesis.tables:
            tested.setdefault(table, []).append(hypothesis)
            for row, column in outcome(verdicts, hypothesis, table).brought:
                explained.setdefault((table, row, column), []).append(hypothesis.id)
    cells = verdicts.cells
    before = _decided(cells[(cells["kind"] == REFERENCE) & (cells["reading"] == STATED)])
    for (table, row, column), inside in zip(before.index, before["inside"], strict=True):
        asked = [h for h in tested.get(table, []) if h.columns is None or column in h.columns]
        yield {
            "study": verdicts.design.study,
            "table": table,
            "row": row,
            "column": column,
            "inside_before": bool(inside),
            "explained_by": "; ".join(explained.get((table, row, column), [])),
            "tested": len(asked),
        }


@dataclass(frozen=True)
class _Candidate:
    """A setting under a reading, and how its cells come out."""

    point: str
    reading: str
    inside: dict[tuple[str, str, str], bool]
    misses: dict[tuple[str, str, str], float]


def fit_rows(verdicts: Verdicts) -> Iterator[dict[str, object]]:
    """Yield the fit of each table over all settings that were explored and all readings."""
    values = {point.id: point.values for point in verdicts.design.points}
    explored = verdicts.cells[
        verdicts.cells["kind"].isin((DEFAULT, ONE_AT_A_TIME, SPACE_FILLING))
        & (verdicts.cells["verdict"] != IMPOSSIBLE)
    ]
    for table, cells in explored.groupby("table", sort=False):
        found = fit(verdicts.design.study, str(table), cells)
        if found is not None:
            point = str(found["point"])
            yield found | {"values": json.dumps(values[point], sort_keys=True)}


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
    candidates = _candidates(cells)
    default = next((c for c in candidates if (c.point, c.reading) == (DEFAULT, STATED)), None)
    if default is None:
        return None
    fitted = [key for key in default.inside if in_fitted_half(study, *key)]
    judged = [key for key in default.inside if not in_fitted_half(study, *key)]
    if not fitted or not judged:
        return None
    ranked = sorted(candidates, key=lambda c: _rank(c, fitted))
    best = ranked[0]
    most = _count(best, fitted)
    return {
        "study": study,
        "table": table,
        "label": FIT_LABEL,
        "tried": len(candidates),
        "point": best.point,
        "reading": best.reading,
        "values": "",
        "cells_fitted": len(fitted),
        "inside_fitted": most,
        "default_inside_fitted": _count(default, fitted),
        "cells_judged": len(judged),
        "inside_judged": _count(best, judged),
        "default_inside_judged": _count(default, judged),
        "equally_good": sum(_count(c, fitted) == most for c in candidates) - 1,
    }


def _candidates(cells: pd.DataFrame) -> list[_Candidate]:
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
                _Candidate(
                    str(point), str(reading), inside, dict(zip(keys, misses.tolist(), strict=True))
                )
            )
    return found


def _count(candidate: _Candidate, keys: Sequence[tuple[str, str, str]]) -> int:
    return sum(candidate.inside.get(key, False) for key in keys)


def _rank(
    candidate: _Candidate, fitted: Sequence[tuple[str, str, str]]
) -> tuple[int, float, bool, str, str]:
    """Most cells inside first, then the least mean miss, then the stated reading."""
    misses = [candidate.misses.get(key, math.inf) for key in fitted]
    # A published zero has no relative miss, and a lost cell an infinite one: both count as far off.
    miss = float(np.mean([m if m < FAR_OFF else FAR_OFF for m in misses]))
    return (
        -_count(candidate, fitted),
        miss,
        candidate.reading != STATED,
        candidate.point,
        candidate.reading,
    )
