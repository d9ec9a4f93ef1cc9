"""Readings of every number: all of them are scored on every set-up, as they cost no simulation.

Numbers of one column that may be read in the same ways are a *family*. Its readings are shared by
its tables, but for exceptions, which are paid for in bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from replication.judge.bound import propagation_s
from replication.judge.causes.atom import Atom, Explanations
from replication.judge.causes.reading import Reading, combined, refusal
from replication.judge.cell import half_width
from replication.measure.cell_map import MappedCell
from replication.measure.metric import quantity
from replication.measure.results import Results
from replication.study.claim_model import Quantity
from replication.study.study import Study

Numbers = npt.NDArray[np.float64]
#: Atom and level of the readings that are taken together.
Combination = tuple[tuple[str, str], ...]
#: Where a tolerance is a rank, a number is told apart as if a tenth were allowed.
_RANK_TOLERANCE = 0.1


@dataclass(frozen=True)
class Family:
    """Numbers of one column that may be read in the same ways.

    Attributes
    ----------
    name
        Its column, or its tables.
    cells
        Places of its cells among all of the study.
    dimensions
        The atoms that may read them.
    combinations
        What they can be read as; the first is what the study says.
    tables
        Of each cell.
    groups
        Of each cell: what has one scale of deviations, a column or a table.
    """

    name: str
    cells: tuple[int, ...]
    dimensions: tuple[Atom, ...]
    combinations: tuple[Combination, ...]
    tables: tuple[str, ...]
    groups: tuple[str, ...]


class Reader:
    """Takes what the paper would have printed from results, under every reading."""

    def __init__(self, study: Study, found: Explanations, cells: Sequence[MappedCell]) -> None:
        self.study = study
        self.explanations = found
        self.cells = cells
        self.families = _families(study, found, cells)

    def reading(self, combination: Combination) -> Reading | None:
        """Return the reading that atoms make together."""
        parts = []
        for atom, key in combination:
            levels = self.explanations.by_id[atom].levels or []
            parts += [level.reading for level in levels if level.key == key]
        return combined(part for part in parts if part is not None)

    def printed(self, results: Results, count: int, places: Sequence[int]) -> list[Numbers]:
        """Return what would be printed: of each family an array over set-ups, cells and readings.

        Parameters
        ----------
        results
            Of set-ups, each a replicate.
        count
            How many set-ups they are of.
        places
            Cells whose points were run; the others are left out of the arrays.
        """
        arrays = []
        for family in self.families:
            own = [place for place in family.cells if place in set(places)]
            array = np.full((count, len(own), len(family.combinations)), np.nan)
            for column, combination in enumerate(family.combinations):
                reading = self.reading(combination)
                for row, place in enumerate(own):
                    cell = self.cells[place]
                    if not refusal(cell, reading):
                        array[:, row, column] = self._values(results, count, cell, reading)
            arrays.append(array)
        return arrays

    def _values(
        self, results: Results, count: int, cell: MappedCell, reading: Reading | None
    ) -> Numbers:
        wanted = cell.quantity if reading is None else reading.of(cell).quantity
        values = _means(results, count, wanted)
        if reading is None:
            return values
        less_s = propagation_s(self.study, wanted) if reading.less_propagation else 0.0
        return np.array([reading.printed(float(v), less_s) for v in values])

    @cached_property
    def tolerances(self) -> Numbers:
        """What each cell's tolerance is as a log ratio."""
        return np.array([_log_tolerance(cell) for cell in self.cells])

    def errors(self, printed: Numbers, places: Sequence[int], cap: float) -> Numbers:
        """Return the absolute log ratio to the published values, no more than `cap`."""
        published, slack = self.published(places)
        return deviations(log_values(printed, slack[:, None]), published[:, None], cap)

    def published(self, places: Sequence[int]) -> tuple[Numbers, Numbers]:
        """Return the logarithms of the published values, and half their last digits."""
        slack = np.array([max(self.cells[p].half_ulp, 1e-12) for p in places])
        values = np.array([self.cells[p].value for p in places])
        return log_values(values, slack), slack

    def inside(self, place: int, printed: float) -> bool:
        """Return whether what would be printed lies inside a cell's tolerance."""
        cell = self.cells[place]
        width = half_width(cell.cell.tolerance, cell.value)
        if math.isnan(width):
            width = _RANK_TOLERANCE * abs(cell.value)
        return abs(printed - cell.value) <= width + cell.half_ulp


def _means(results: Results, count: int, wanted: Quantity) -> Numbers:
    """Return the mean of a quantity over its points, of each set-up."""
    everywhere = wanted.model_copy(update={"where": {}})
    frame = quantity(results, everywhere)
    mask = np.ones(len(frame), dtype=bool)
    for factor, keys in wanted.where.items():
        mask &= np.isin(frame[factor].to_numpy(dtype=str), keys)
    values = frame["value"].to_numpy(dtype=float)[mask]
    numbers = frame["replicate"].to_numpy(dtype=int)[mask]
    sums = np.bincount(numbers, values, count)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / np.bincount(numbers, minlength=count))


def log_values(values: Numbers, slack: Numbers) -> Numbers:
    """Return logarithms; what is below zero counts as zero, and zero as the last digit's half."""
    return np.asarray(np.log(np.maximum(values, 0.0) + slack), dtype=float)


def deviations(logs: Numbers, published: Numbers, cap: float) -> Numbers:
    """Return absolute differences of logarithms; what is undefined counts as the cap."""
    return np.nan_to_num(np.minimum(np.abs(logs - published), cap), nan=cap)


def _log_tolerance(cell: MappedCell) -> float:
    tolerance = cell.cell.tolerance
    if tolerance.absolute is not None:
        return math.log1p(tolerance.absolute / max(abs(cell.value), tolerance.absolute))
    return math.log1p(tolerance.relative or _RANK_TOLERANCE)


def _families(study: Study, found: Explanations, cells: Sequence[MappedCell]) -> list[Family]:
    by_column = {table.id: table.columns is not None for table in study.tables}
    dimensions = found.of_kind("reading")
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for place, cell in enumerate(cells):
        if cell.not_comparable:
            continue
        own = tuple(d.id for d in dimensions if d.concerns(cell.table, cell.column))
        name = cell.column if by_column[cell.table] else ""
        groups.setdefault((name, own), []).append(place)
    families = []
    for (name, own), places in groups.items():
        atoms = tuple(found.by_id[atom] for atom in own)
        tables = tuple(cells[place].table for place in places)
        families.append(
            Family(
                name or "tables " + ", ".join(dict.fromkeys(tables)),
                tuple(places),
                atoms,
                _combinations(atoms, cells[places[0]]),
                tables,
                tuple(name or table for table in tables),
            )
        )
    return families


def _combinations(atoms: Sequence[Atom], cell: MappedCell) -> tuple[Combination, ...]:
    """Return the readings that can be had together; the first is the study's own."""
    options: list[list[tuple[str, Reading] | None]] = [
        [None, *((level.key, level.reading) for level in atom.levels or [] if level.reading)]
        for atom in atoms
    ]
    found = []
    for chosen in itertools.product(*options):
        pairs = [(a.id, c) for a, c in zip(atoms, chosen, strict=True) if c is not None]
        if _contradict([reading for _, (_, reading) in pairs]):
            continue
        if not refusal(cell, combined(reading for _, (_, reading) in pairs)):
            found.append(tuple((atom, key) for atom, (key, _) in pairs))
    return tuple(found)


def _contradict(readings: Sequence[Reading]) -> bool:
    """Return whether two of the readings set the same thing but for the factor."""
    given = [set(r.model_dump(exclude_defaults=True)) - {"factor"} for r in readings]
    return sum(map(len, given)) > len(set().union(*given)) if given else False
