"""Shared decimals: values of different runs that end alike, as if an integer had been changed.

The decimals of independent measurements are spread evenly once the values differ by some units. Of
N different values of one quantity with d decimals, C(N, s) 10^(-d (s - 1)) groups of s that share
theirs are to be expected by chance (the number of groups times the chance of each; an upper bound
of the probability of one, whatever the dependence between groups).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from replication.judge.audits.audit import CHANCE, SUSPICIOUS, Finding
from replication.measure.cell_map import MappedCell
from replication.study.study import Study

CHECK = "shared_decimals"
#: A digit alone is shared too often to tell anything.
LEAST_DECIMALS = 2
#: Spread of the values, in printed units, from which on their decimals are spread evenly.
LEAST_SPREAD = 3.0
_PRINTED = re.compile(r"\d+\.(\d+)")


def check_decimals(study: Study, cells: Sequence[MappedCell]) -> Iterator[Finding]:
    """Yield the values that share their decimals with others more often than chance would have it.

    Values that are equal as a whole count once: they are the business of another check.

    Parameters
    ----------
    study
        The study.
    cells
        Its published numbers, as `measure.cell_map.map_cells` maps them.
    """
    columns: dict[tuple[str, str, int], list[MappedCell]] = {}
    for cell in cells:
        found = _PRINTED.fullmatch(cell.printed)
        if found is not None and len(found[1]) >= LEAST_DECIMALS:
            columns.setdefault((cell.column, cell.cell.metric, len(found[1])), []).append(cell)
    for (_, _, places), members in columns.items():
        values = {cell.printed for cell in members}
        numbers = [float(value) for value in values]
        if max(numbers) - min(numbers) < LEAST_SPREAD:
            continue
        for decimals in dict.fromkeys(cell.printed.split(".")[1] for cell in members):
            alike = {value for value in values if value.endswith(f".{decimals}")}
            expected = expected_groups(len(values), len(alike), places)
            if len(alike) > 1 and expected < CHANCE:
                reason = (
                    f"{len(alike)} of {len(values)} different values end in .{decimals}; "
                    f"{expected:.2g} such groups would be chance."
                )
                yield from (_finding(study, c, reason) for c in members if c.printed in alike)


def expected_groups(values: int, alike: int, places: int) -> float:
    """Return how many groups of `alike` among `values` would share `places` decimals by chance."""
    return float(math.comb(values, alike) * 10.0 ** (-places * (alike - 1)))


def _finding(study: Study, cell: MappedCell, reason: str) -> Finding:
    return Finding(study.id, *cell.key, CHECK, cell.value, math.nan, SUSPICIOUS, reason)
