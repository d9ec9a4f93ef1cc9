"""Compare two tables of verdicts: which values and verdicts differ, and whether beyond noise.

A change is beyond noise if it exceeds the half-widths of both 95 % intervals added in quadrature.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.study.table import read_rows, write_table
from replication.study.verdict import DECIDED

#: Whether a change exceeds noise.
BEYOND, WITHIN, UNKNOWN = "yes", "no", "not known"
CLAIM, CELL = "claim", "cell"
#: Columns of what `replicate compare` writes.
COLUMNS = (
    *("study", "kind", "item", "engine", "unit", "before", "after", "change", "relative_change"),
    *("beyond_noise", "verdict_before", "verdict_after"),
)
_CELL_KEY, _CLAIM_KEY = ("table", "row", "column"), ("claim",)
#: Columns that are read, so that results of older versions can be compared.
_MEAN = ("reproduced_mean", "reproduced_low", "reproduced_high")
_CELL_COLUMNS = ("study", *_CELL_KEY, "engine", "unit", *_MEAN, "verdict")
_CLAIM_COLUMNS = ("study", *_CLAIM_KEY, "engine", "observed", "low", "high", "verdict")
#: A row of a verdict table, typed or as text.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """A claim or a cell in two tables of verdicts; a table that lacks it has an empty row."""

    item: tuple[str, ...]
    before: Row
    after: Row

    @property
    def known(self) -> Row:
        """The row of the second table, or of the first where the second has none."""
        return self.after or self.before

    @property
    def kind(self) -> str:
        """Either `CLAIM` or `CELL`."""
        return CLAIM if len(self.item) == 1 else CELL

    @property
    def engines(self) -> tuple[str, str]:
        """Both engines; empty where there is none."""
        return self.before.get("engine", ""), self.after.get("engine", "")

    @property
    def verdicts(self) -> tuple[str, str]:
        """Both verdicts; empty where there is none."""
        return self.before.get("verdict", ""), self.after.get("verdict", "")

    @property
    def values(self) -> tuple[float, float]:
        """Both values: a claim's statistic or a cell's mean; NaN where there is none."""
        name = "observed" if self.kind == CLAIM else "reproduced_mean"
        return _number(self.before, name), _number(self.after, name)

    @property
    def beyond_noise(self) -> str:
        """Whether the change exceeds noise; empty where nothing changed."""
        change = self.values[1] - self.values[0]
        if not change or math.isnan(change):
            return ""
        ends = [f"{'' if self.kind == CLAIM else 'reproduced_'}{end}" for end in ("low", "high")]
        low, high = ([_number(row, end) for row in (self.before, self.after)] for end in ends)
        noise = math.hypot(*((top - bottom) / 2 for top, bottom in zip(high, low, strict=True)))
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
        known, (before, after), verdicts = self.known, self.values, self.verdicts
        relative = (after - before) / abs(before) if before else math.nan
        return {
            **{"study": known["study"], "kind": self.kind, "item": ", ".join(self.item)},
            **{"engine": known["engine"], "unit": known.get("unit", "")},
            **{"before": before, "after": after, "change": after - before},
            **{"relative_change": relative, "beyond_noise": self.beyond_noise},
            **{"verdict_before": verdicts[0], "verdict_after": verdicts[1]},
        }


def compare_verdicts(
    before: Iterable[Row], after: Iterable[Row], same: Sequence[str] = ("study",)
) -> list[Compared]:
    """Match the claims and cells of two tables by the columns `same`, in the second's order."""
    old, new = ({_key(row, same): row for row in rows} for rows in (before, after))
    keys = dict.fromkeys([*new, *old])
    return [Compared(key[len(same) :], old.get(key, {}), new.get(key, {})) for key in keys]


def _key(row: Row, same: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in (*same, *(_CLAIM_KEY if "claim" in row else _CELL_KEY)))


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    return math.nan if value is None or value == "" else float(value)


def compare_results(before: Path, after: Path) -> list[Compared]:
    """Match the numbers and claims of two folders of results."""
    tables = (("cells.csv", _CELL_COLUMNS), ("claims.csv", _CLAIM_COLUMNS))
    old, new = (
        [row for name, columns in tables for row in read_rows(folder / name, columns)]
        for folder in (before, after)
    )
    return compare_verdicts(old, new, ("study", "engine"))


def _counts(kind: str, found: Iterable[Compared]) -> str:
    own = [item for item in found if item.kind == kind]
    both = [item for item in own if item.before and item.after]
    noise, alone = Counter(item.beyond_noise for item in both), len(own) - len(both)
    said = (
        f"Of {len(both)} {'claims' if kind == CLAIM else 'numbers'}, "
        f"{len(both) - noise['']} changed in value ({noise[BEYOND]} beyond noise, "
        f"{noise[WITHIN]} within it, {noise[UNKNOWN]} without intervals) and "
        f"{sum(item.verdict_moved for item in both)} in verdict"
    )
    return f"{said}; {alone} more are in one of the two only." if alone else f"{said}."


def write_differences(
    found: Sequence[Compared], path: Path, tiers: Sequence[str] = ()
) -> list[str]:
    """Write the items that moved, verdicts first; return the counts and a warning on `tiers`."""
    moved = [item for item in found if item.has_moved]
    moved.sort(key=lambda item: (not item.verdict_moved, item.beyond_noise != BEYOND))
    counts = [_counts(kind, found) for kind in (CELL, CLAIM)]
    if all(tiers) and len(set(tiers)) > 1:
        what = "their runs differ in points, replicates and length"
        counts.insert(0, f"The tiers differ, {' and '.join(tiers)}: {what}.")
    write_table(path, (item.row() for item in moved), COLUMNS)
    return counts
