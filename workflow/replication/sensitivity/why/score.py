"""The score of a set-up: the bits that the published numbers take if it is true, and its own.

Deviations of a column are told by a Laplace code: n log2(2 e b), b their mean absolute log ratio,
winsorised, and never finer than a share of the tolerance, so that nothing is gained where a number
is met already. A small improvement of many numbers is seen so where a count of those inside sees a
plateau. What an explanation adds is what names its atoms and levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replication.judge.causes.atom import Explanations
from replication.sensitivity.why.reader import Combination, Family, Numbers, Reader
from replication.study.sensitivity_settings import ExplanationSearch

#: Shared readings from which exceptions for single tables are tried.
_STARTS = 6


@dataclass(frozen=True)
class Choice:
    """The best reading of a family on a set-up.

    Attributes
    ----------
    tables
        Table to reading.
    column
        Of each cell, the place of its reading among the family's combinations.
    data_bits, bits
        What the numbers take, and what names the readings.
    pairs
        Atom and level of what is read otherwise; an exception names its table: `atom@table`.
    """

    tables: dict[str, Combination]
    column: tuple[int, ...]
    data_bits: float
    bits: float
    pairs: tuple[tuple[str, str], ...]


class FamilyScore:
    """Scores readings of one family of numbers.

    Parameters
    ----------
    found, reader, family
        The study's atoms, and the numbers that are read alike.
    places
        Those of its cells that are scored.
    settings
        How deviations are winsorised, and how fine they are told apart.
    """

    def __init__(
        self,
        found: Explanations,
        reader: Reader,
        family: Family,
        places: Sequence[int],
        settings: ExplanationSearch,
    ) -> None:
        self.family = family
        kept = [n for n, place in enumerate(family.cells) if place in set(places)]
        self.places = [family.cells[n] for n in kept]
        tables = [family.tables[n] for n in kept]
        self.tables = list(dict.fromkeys(tables))
        self.table_of = np.array([self.tables.index(t) for t in tables], dtype=int)
        groups = [family.groups[n] for n in kept]
        names = list(dict.fromkeys(groups))
        self.group_of = np.array([names.index(g) for g in groups], dtype=int)
        # Of each table; a table's numbers of one family are of one group.
        self.group_of_table = np.array(
            [names.index(groups[tables.index(t)]) for t in self.tables], dtype=int
        )
        self.sizes = np.bincount(self.group_of, minlength=len(names)).astype(float)
        floors = settings.least_error * reader.tolerances[self.places]
        self.floors = np.bincount(self.group_of, floors, len(names)) / np.maximum(self.sizes, 1)
        self._atom_bits = found.atom_bits
        self._naming = self._naming_bits()

    def _naming_bits(self) -> tuple[Numbers, npt.NDArray[np.float64]]:
        """Return the bits of each shared reading, and of each exception from each of them."""
        levels = {atom.id: len(atom.levels or []) for atom in self.family.dimensions}
        combinations = self.family.combinations
        shared = [
            sum(self._atom_bits + math.log2(levels[atom]) for atom, _ in combination)
            for combination in combinations
        ]
        which = math.log2(max(len(self.tables), 1))
        other = np.zeros((len(combinations), len(combinations)))
        for one, base in enumerate(combinations):
            for two, exception in enumerate(combinations):
                differing = {atom for atom, _ in set(base) ^ set(exception)}
                other[one, two] = sum(
                    self._atom_bits + math.log2(levels[atom] + 1) + which for atom in differing
                )
        return np.array(shared), other

    def data_bits(self, sums: Numbers) -> Numbers:
        """Return the bits of the numbers, from sums of errors by group (last axis)."""
        means = np.maximum(sums / np.maximum(self.sizes, 1), self.floors)
        return np.asarray((self.sizes * np.log2(2 * math.e * means)).sum(axis=-1))

    def by_table(self, errors: Numbers) -> Numbers:
        """Return sums of errors: a row a table, a column a reading."""
        sums = np.zeros((len(self.tables), errors.shape[1]))
        np.add.at(sums, self.table_of, errors)
        return sums

    def shared_bits(self, errors: Numbers) -> Numbers:
        """Return all bits of each reading that all tables share; errors: ..., cells, readings."""
        grouped = np.zeros((*errors.shape[:-2], len(self.sizes), errors.shape[-1]))
        for group in range(len(self.sizes)):
            grouped[..., group, :] = errors[..., self.group_of == group, :].sum(axis=-2)
        return self.data_bits(np.moveaxis(grouped, -1, -2)) + self._naming[0]

    def best(self, errors: Numbers) -> Choice:
        """Return the best reading: one that the tables share, but for exceptions that pay.

        Parameters
        ----------
        errors
            A row a cell, a column a reading.
        """
        starts = np.argsort(self.shared_bits(errors), kind="stable")[:_STARTS]
        sums = self.by_table(errors)
        found = [self._with_exceptions(int(start), sums) for start in starts]
        start, chosen, total = min(found, key=lambda item: item[2])
        naming = self._naming[0][start] + self._naming[1][start, chosen].sum()
        combinations = self.family.combinations
        pairs = list(combinations[start])
        for table, place in zip(self.tables, chosen, strict=True):
            if place != start:
                pairs += _exceptions(table, combinations[start], combinations[place])
        return Choice(
            {t: combinations[p] for t, p in zip(self.tables, chosen, strict=True)},
            tuple(int(chosen[t]) for t in self.table_of),
            float(total - naming),
            float(naming),
            tuple(pairs),
        )

    def _with_exceptions(
        self, start: int, sums: Numbers
    ) -> tuple[int, npt.NDArray[np.int64], float]:
        chosen = np.full(len(self.tables), start)
        total = self._total(start, chosen, sums)
        while len(self.tables) > 1:
            trials = []
            for table in range(len(self.tables)):
                options = self._totals_with(start, chosen, sums, table)
                place = int(np.argmin(options))
                trials.append((float(options[place]), table, place))
            best, table, place = min(trials)
            if best >= total - 1e-9:
                break
            chosen[table], total = place, best
        return start, chosen, total

    def _total(self, start: int, chosen: npt.NDArray[np.int64], sums: Numbers) -> float:
        return float(self._totals_with(start, chosen, sums, 0)[chosen[0]])

    def _totals_with(
        self, start: int, chosen: npt.NDArray[np.int64], sums: Numbers, table: int
    ) -> Numbers:
        """Return all bits with each reading of one table, the others as chosen."""
        own: Numbers = sums[np.arange(len(chosen)), chosen]
        grouped = np.bincount(self.group_of_table, own, len(self.sizes))
        group = self.group_of_table[table]
        options: Numbers = np.repeat(grouped[None, :], sums.shape[1], axis=0).astype(float)
        options[:, group] += sums[table] - own[table]
        naming = self._naming[0][start] + self._naming[1][start, chosen].sum()
        naming = naming - self._naming[1][start, chosen[table]] + self._naming[1][start]
        return np.asarray(self.data_bits(options) + naming)


def _exceptions(table: str, base: Combination, exception: Combination) -> list[tuple[str, str]]:
    shared, own = dict(base), dict(exception)
    return [
        (f"{atom}@{table}", own.get(atom, "as_stated"))
        for atom in dict.fromkeys([*shared, *own])
        if shared.get(atom) != own.get(atom)
    ]
