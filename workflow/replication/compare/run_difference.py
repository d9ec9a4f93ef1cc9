"""Two results set side by side: which numbers and verdicts moved, and whether beyond noise.

A value moved if it is another number at all. It moved beyond noise if the change is larger than
the two 95 % intervals together leave to chance, taken as independent: their half-widths are added
in squares. Without intervals on both sides noise is not known. A verdict that moved is named
whatever its value did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.study.storage.table import CELL_COLUMNS, CLAIM_COLUMNS, Row, read_rows

#: Words on whether a change is more than noise.
BEYOND, WITHIN, UNKNOWN = "yes", "no", "not known"
COLUMNS = (
    *("study", "kind", "item", "engine", "unit", "before", "after", "change", "relative_change"),
    *("beyond_noise", "verdict_before", "verdict_after"),
)
_KINDS = {
    "number": ("cells.csv", CELL_COLUMNS, ("table", "row", "column"), "reproduced_"),
    "claim": ("claims.csv", CLAIM_COLUMNS, ("claim",), ""),
}


@dataclass(frozen=True)
class Side:
    """An item in one of the results; the ends are NaN where there is no interval."""

    value: float
    low: float
    high: float
    verdict: str

    @property
    def half_width(self) -> float:
        """Return half of the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Difference:
    """A number or a claim in both results, or in one (the other is None)."""

    study: str
    kind: str
    item: str
    engine: str
    unit: str
    before: Side | None
    after: Side | None

    @property
    def change(self) -> float:
        """Return after minus before; NaN where either is not there."""
        if self.before is None or self.after is None:
            return math.nan
        return self.after.value - self.before.value

    @property
    def relative_change(self) -> float:
        """Return the change over the value before; NaN where that is zero or not there."""
        return (
            self.change / abs(self.before.value) if self.before and self.before.value else math.nan
        )

    @property
    def beyond(self) -> str:
        """Return whether the change is more than noise; empty where nothing changed."""
        if not self.change or math.isnan(self.change):
            return ""
        assert self.before is not None and self.after is not None
        noise = math.hypot(self.before.half_width, self.after.half_width)
        if math.isnan(noise):
            return UNKNOWN
        return BEYOND if abs(self.change) > noise else WITHIN

    @property
    def verdict_moved(self) -> bool:
        """Whether the item is judged otherwise, or was judged in one of the results only."""
        words = [side.verdict if side else "" for side in (self.before, self.after)]
        return words[0] != words[1]

    @property
    def has_moved(self) -> bool:
        """Whether anything of the item is another."""
        values = [side.value if side else math.nan for side in (self.before, self.after)]
        gone = math.isnan(values[0]) != math.isnan(values[1])
        return self.verdict_moved or gone or bool(self.beyond)

    def row(self) -> dict[str, object]:
        """Return the row of the table of differences."""
        return {
            "study": self.study,
            "kind": self.kind,
            "item": self.item,
            "engine": self.engine,
            "unit": self.unit,
            "before": self.before.value if self.before else math.nan,
            "after": self.after.value if self.after else math.nan,
            "change": self.change,
            "relative_change": self.relative_change,
            "beyond_noise": self.beyond,
            "verdict_before": self.before.verdict if self.before else "",
            "verdict_after": self.after.verdict if self.after else "",
        }


def differences(before: Path, after: Path) -> list[Difference]:
    """Return every number and claim of two folders of results, in the order of the second.

    Raises
    ------
    InputError
        A folder lacks cells.csv or claims.csv, or they are damaged; the message names the file.
    """
    return [item for kind in _KINDS for item in _of_kind(kind, before, after)]


def _of_kind(kind: str, before: Path, after: Path) -> Iterator[Difference]:
    name, columns, key, prefix = _KINDS[kind]
    old, new = (
        {(row["study"], row["engine"], *(row[part] for part in key)): row for row in rows}
        for rows in (read_rows(folder / name, columns) for folder in (before, after))
    )
    for place in dict.fromkeys([*new, *old]):
        rows = old.get(place), new.get(place)
        known: Row = rows[1] or rows[0] or {}
        yield Difference(
            study=place[0],
            kind=kind,
            item=", ".join(place[2:]),
            engine=place[1],
            unit=known.get("unit", ""),
            before=_side(rows[0], prefix),
            after=_side(rows[1], prefix),
        )


def _side(row: Mapping[str, str] | None, prefix: str) -> Side | None:
    if row is None:
        return None
    value = "reproduced_mean" if prefix else "observed"
    low, high = (_number(row[f"{prefix}{end}"]) for end in ("low", "high"))
    return Side(_number(row[value]), low, high, row["verdict"])


def _number(text: str) -> float:
    return float(text) if text else math.nan


@dataclass(frozen=True)
class Counts:
    """How many items of a kind moved: verdicts, and values by whether beyond noise."""

    kind: str
    items: int
    verdicts: int
    beyond: int
    within: int
    unknown: int
    #: Items that only one of the results has.
    alone: int

    @classmethod
    def of(cls, kind: str, found: Iterable[Difference]) -> Counts:
        """Count the differences of one kind."""
        own = [item for item in found if item.kind == kind]
        words = [item.beyond for item in own]
        return cls(
            kind=kind,
            items=len(own),
            verdicts=sum(item.verdict_moved for item in own),
            beyond=words.count(BEYOND),
            within=words.count(WITHIN),
            unknown=words.count(UNKNOWN),
            alone=sum(item.before is None or item.after is None for item in own),
        )

    def sentence(self) -> str:
        """Return the counts in words."""
        changed = self.beyond + self.within + self.unknown
        said = (
            f"Of {self.items} {self.kind}s, {changed} changed in value ({self.beyond} beyond "
            f"noise, {self.within} within it, {self.unknown} without intervals to tell) and "
            f"{self.verdicts} in verdict"
        )
        return f"{said}; {self.alone} are in one of the two only." if self.alone else f"{said}."


def counts(found: Sequence[Difference]) -> list[Counts]:
    """Return the counts of each kind."""
    return [Counts.of(kind, found) for kind in _KINDS]
