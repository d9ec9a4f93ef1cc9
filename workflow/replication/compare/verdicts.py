"""Compare two tables of verdicts: which values and verdicts differ, and whether beyond noise.

A change is beyond noise if it exceeds the half-widths of both 95 % intervals added in quadrature.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.base.table import read_rows, write_table
from replication.study.setup import Setup
from replication.study.verdict import DECIDED

#: Whether a change exceeds noise.
BEYOND, WITHIN, UNKNOWN = "yes", "no", "not known"
CLAIM, CELL = "claim", "cell"
#: Columns of what `replicate compare` writes.
COLUMNS = (
    *("study", "kind", "item", "engine", "setup", "unit", "before", "after", "change"),
    *("relative_change", "beyond_noise", "verdict_before", "verdict_after"),
)
_CELL_KEY, _CLAIM_KEY = ("table", "row", "column"), ("claim",)
#: Columns that are read, so that results of older versions can be compared.
_CELL_VALUES = ("reproduced_mean", "reproduced_low", "reproduced_high")
_CELL_COLUMNS = ("study", *_CELL_KEY, "engine", "unit", *_CELL_VALUES, "verdict")
_CLAIM_VALUES = ("observed", "low", "high")
_CLAIM_COLUMNS = ("study", *_CLAIM_KEY, "engine", *_CLAIM_VALUES, "verdict")


@dataclass(frozen=True)
class Judged:
    """What is compared of a claim or a cell; an undefined number is NaN.

    `item` is a claim's id, or a cell's table, row and column. `value` is a claim's statistic or a
    cell's mean.
    """

    item: tuple[str, ...]
    verdict: str
    study: str = ""
    engine: str = ""
    setup: str = Setup.DEFAULTS
    unit: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""
    quantities: Sequence[str] = ()


def judged_of(row: Mapping[str, Any]) -> Judged:
    """Return what is compared of a claim or a number: a typed row's fields, or a row of a CSV."""
    is_claim = "claim" in row
    key, values = (_CLAIM_KEY, _CLAIM_VALUES) if is_claim else (_CELL_KEY, _CELL_VALUES)
    value, low, high = (math.nan if row[name] == "" else float(row[name]) for name in values)
    return Judged(
        item=tuple(row[name] for name in key),
        verdict=row["verdict"],
        study=row["study"],
        engine=row["engine"],
        # Older versions have one set-up.
        setup=row.get("setup", Setup.DEFAULTS),
        unit=row.get("unit", ""),
        value=value,
        low=low,
        high=high,
        reason=row.get("reason", ""),
        quantities=row.get("quantities", ()),
    )


@dataclass(frozen=True)
class Compared:
    """A claim or a cell in two tables of verdicts, of which one may lack it."""

    before: Judged | None
    after: Judged | None

    @property
    def known(self) -> Judged:
        """What the second table has, or the first where the second has nothing."""
        known = self.after or self.before
        assert known is not None
        return known

    @property
    def item(self) -> tuple[str, ...]:
        """A claim's id, or a cell's table, row and column."""
        return self.known.item

    @property
    def kind(self) -> str:
        """Either `CLAIM` or `CELL`."""
        return CLAIM if len(self.item) == 1 else CELL

    @property
    def engines(self) -> tuple[str, str]:
        """Both engines; empty where there is none."""
        before, after = self._sides
        return before.engine, after.engine

    @property
    def verdicts(self) -> tuple[str, str]:
        """Both verdicts; empty where there is none."""
        before, after = self._sides
        return before.verdict, after.verdict

    @property
    def values(self) -> tuple[float, float]:
        """Both values; NaN where there is none."""
        before, after = self._sides
        return before.value, after.value

    @property
    def _sides(self) -> tuple[Judged, Judged]:
        nothing = Judged(self.item, "")
        return self.before or nothing, self.after or nothing

    @property
    def beyond_noise(self) -> str:
        """Whether the change exceeds noise; empty where nothing changed."""
        change = self.values[1] - self.values[0]
        if not change or math.isnan(change):
            return ""
        noise = math.hypot(*((side.high - side.low) / 2 for side in self._sides))
        if math.isnan(noise):
            return UNKNOWN
        return BEYOND if abs(change) > noise else WITHIN

    @property
    def verdict_moved(self) -> bool:
        """Whether the verdicts differ or only one table has the item."""
        return self.verdicts[0] != self.verdicts[1]

    @property
    def has_moved(self) -> bool:
        """Whether its verdict or value differs."""
        gone = math.isnan(self.values[0]) != math.isnan(self.values[1])
        return self.verdict_moved or gone or bool(self.beyond_noise)

    @property
    def agrees(self) -> bool | None:
        """Whether both verdicts are the same; None where one side is undecided."""
        is_decided = all(verdict in DECIDED for verdict in self.verdicts)
        return not self.verdict_moved if is_decided else None

    def row(self) -> dict[str, object]:
        """Return the row of the table of differences."""
        known, (before, after) = self.known, self.values
        verdict_before, verdict_after = self.verdicts
        return {
            "study": known.study,
            "kind": self.kind,
            "item": ", ".join(self.item),
            "engine": known.engine,
            "setup": known.setup,
            "unit": known.unit,
            "before": before,
            "after": after,
            "change": after - before,
            "relative_change": (after - before) / abs(before) if before else math.nan,
            "beyond_noise": self.beyond_noise,
            "verdict_before": verdict_before,
            "verdict_after": verdict_after,
        }


def compare_verdicts(
    before: Iterable[Judged], after: Iterable[Judged], same: Sequence[str] = ("study",)
) -> list[Compared]:
    """Match the claims and cells of two tables by the fields `same`, in the second's order."""
    old, new = ({_key(row, same): row for row in rows} for rows in (before, after))
    return [Compared(old.get(key), new.get(key)) for key in dict.fromkeys([*new, *old])]


def _key(row: Judged, same: Sequence[str]) -> tuple[str, ...]:
    return (*(str(getattr(row, name)) for name in same), *row.item)


def _read_results(folder: Path) -> list[Judged]:
    cells = read_rows(folder / "cells.csv", _CELL_COLUMNS)
    claims = read_rows(folder / "claims.csv", _CLAIM_COLUMNS)
    return [judged_of(row) for row in (*cells, *claims)]


def compare_results(before: Path, after: Path) -> list[Compared]:
    """Match the numbers and claims of two folders of results."""
    return compare_verdicts(
        _read_results(before), _read_results(after), ("study", "engine", "setup")
    )


def _counts(kind: str, compared: Iterable[Compared]) -> str:
    items = [item for item in compared if item.kind == kind]
    both = [item for item in items if item.before and item.after]
    noise = Counter(item.beyond_noise for item in both)
    alone = len(items) - len(both)
    said = (
        f"Of {len(both)} {'claims' if kind == CLAIM else 'numbers'}, "
        f"{len(both) - noise['']} changed in value ({noise[BEYOND]} beyond noise, "
        f"{noise[WITHIN]} within it, {noise[UNKNOWN]} without intervals) and "
        f"{sum(item.verdict_moved for item in both)} in verdict"
    )
    if not alone:
        return f"{said}."
    return f"{said}; {alone} more {'is' if alone == 1 else 'are'} in only one of the two."


def write_differences(
    compared: Sequence[Compared], path: Path, tiers: Sequence[str] = ()
) -> list[str]:
    """Write the items that moved, verdicts first; return the counts and a warning on `tiers`."""
    moved = [item for item in compared if item.has_moved]
    moved.sort(key=lambda item: (not item.verdict_moved, item.beyond_noise != BEYOND))
    counts = [_counts(kind, compared) for kind in (CELL, CLAIM)]
    if all(tiers) and len(set(tiers)) > 1:
        what = "their runs differ in points, replicates and length"
        counts.insert(0, f"The tiers differ, {' and '.join(tiers)}: {what}.")
    write_table(path, (item.row() for item in moved), COLUMNS)
    return counts
