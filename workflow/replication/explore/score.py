"""The score of a configuration: the bits that encode the published numbers if it is true.

Numbers of one column that can be read in the same ways are a *family*. All interpretations of every
family are scored on every configuration, as they need no simulation. The tables of a family share
its interpretation, except where an exception is worth its bits.

Deviations of a column are coded by a Laplace code: n log2(2 e b), b their mean absolute log ratio,
winsorised, and never finer than a share of the tolerance, so that a number that matches gains
nothing more. Unlike a count of matches, which has plateaus, this sees small improvements of many
numbers. An explanation also costs the bits that name its causes and levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.explore.cause import Explanations
from replication.metrics.cell_map import MappedCell
from replication.verdicts.cell import half_width

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
#: Cause and level of interpretations that apply together.
Combination = tuple[tuple[str, str], ...]
#: Largest log ratio that counts: a factor of 7.4.
MOST_LOG_RATIO = 2.0
#: Share of a column's mean tolerance below which smaller deviations gain nothing.
LEAST_ERROR = 0.25
#: Least bits that leaving out a cause must cost for it to be part of an explanation.
PAYS_BITS = 2.0
#: Best shared interpretations for which exceptions for single tables are tried.
_STARTS = 6
#: Relative tolerance of a number of one published run.
_ONE_RUN_TOLERANCE = 0.1


@dataclass(frozen=True)
class Family:
    """Numbers of one column that may be read in the same ways.

    `combinations` are the possible interpretations, the first as the study states. Deviations of
    `column` share a scale; if it is empty, those of each table do.
    """

    cells: Sequence[MappedCell]
    combinations: Sequence[Combination]
    column: str


def matches(cell: MappedCell, printed: Numbers | float) -> Flags:
    """Return whether printed values lie inside a cell's tolerance."""
    width = half_width(cell.cell.tolerance, cell.value)
    if math.isnan(width):
        width = _ONE_RUN_TOLERANCE * abs(cell.value)
    return np.asarray(np.abs(printed - cell.value) <= width + cell.half_ulp)


def log_values(values: Numbers, slack: Numbers) -> Numbers:
    """Return logarithms; negative values count as zero, and zero as `slack`."""
    return np.asarray(np.log(np.maximum(values, 0.0) + slack))


def deviations(logs: Numbers, published: Numbers) -> Numbers:
    """Return absolute differences of logarithms, up to `MOST_LOG_RATIO`, also if undefined."""
    return np.nan_to_num(np.minimum(np.abs(logs - published), MOST_LOG_RATIO), nan=MOST_LOG_RATIO)


def _log_tolerance(cell: MappedCell) -> float:
    tolerance = cell.cell.tolerance
    if tolerance.absolute is not None:
        return math.log1p(tolerance.absolute / max(abs(cell.value), tolerance.absolute))
    return math.log1p(tolerance.relative or _ONE_RUN_TOLERANCE)


@dataclass(frozen=True)
class Choice:
    """The best interpretation of a family on a configuration.

    `tables` has that of each table, `shared` the one that they share but for exceptions;
    `data_bits` encode the numbers, `bits` name the interpretation.
    """

    tables: dict[str, Combination]
    shared: Combination = ()
    data_bits: float = 0.0
    bits: float = 0.0

    @cached_property
    def pairs(self) -> Combination:
        """Its causes and levels; an exception names its table: `cause@table`."""
        shared, pairs = dict(self.shared), [*self.shared]
        for table, combination in self.tables.items():
            levels = dict(combination)
            for cause in dict.fromkeys([*shared, *levels]):
                if shared.get(cause) != levels.get(cause):
                    pairs.append((f"{cause}@{table}", levels.get(cause, "as_stated")))
        return tuple(pairs)

    @property
    def total(self) -> float:
        """All bits."""
        return self.data_bits + self.bits


class FamilyScore:
    """Scores the interpretations of one family at those of its cells that are among `cells`."""

    def __init__(
        self, explanations: Explanations, family: Family, cells: Sequence[MappedCell]
    ) -> None:
        self.family, wanted = family, {cell.key for cell in cells}
        self.cells = cells = [cell for cell in family.cells if cell.key in wanted]
        self.slack = np.array([max(cell.half_ulp, 1e-12) for cell in cells])
        self.published = log_values(np.array([cell.value for cell in cells]), self.slack)
        table = [c.table for c in cells]
        group = [family.column or c.table for c in cells]
        self.table_of, tables = pd.factorize(np.array(table, dtype=object))
        self.tables = list(tables)
        self.group_of, groups = pd.factorize(np.array(group, dtype=object))
        # The cells of a table are in one group.
        self.group_of_table = self.group_of[np.unique(self.table_of, return_index=True)[1]]
        self.sizes = np.bincount(self.group_of, minlength=len(groups)).astype(float)
        floors = LEAST_ERROR * np.array([_log_tolerance(cell) for cell in cells])
        self.floors = np.bincount(self.group_of, floors, len(groups)) / self.sizes
        self._shared, self._other = self._naming_bits(explanations)
        self._places = {frozenset(pairs): n for n, pairs in enumerate(family.combinations)}

    def _naming_bits(self, explanations: Explanations) -> tuple[Numbers, Numbers]:
        """Return the bits of each shared interpretation, and of each exception from each."""
        options, cause_bits = self.family.combinations, explanations.cause_bits
        which_bits = math.log2(max(len(self.tables), 1))

        def levels(cause: str) -> int:
            return len(explanations.by_id[cause].levels or [])

        def exception_bits(base: Combination, pairs: Combination) -> float:
            causes = {cause for cause, _ in {*base} ^ {*pairs}}
            return sum(cause_bits + math.log2(levels(cause) + 1) + which_bits for cause in causes)

        shared = [
            sum(cause_bits + math.log2(levels(cause)) for cause, _ in pairs) for pairs in options
        ]
        other = [[exception_bits(base, pairs) for pairs in options] for base in options]
        return np.array(shared), np.array(other, dtype=float)

    def errors(self, printed: Numbers) -> Numbers:
        """Return the absolute log ratio to the published values, up to `MOST_LOG_RATIO`."""
        return deviations(log_values(printed, self.slack[:, None]), self.published[:, None])

    def inside(self, printed: Numbers) -> Flags:
        """Return which numbers match: a row for each cell, a column for each interpretation."""
        rows = [matches(cell, row) for cell, row in zip(self.cells, printed, strict=True)]
        return np.array(rows, dtype=bool).reshape(printed.shape)

    def data_bits(self, sums: Numbers) -> Numbers:
        """Return the bits that encode the numbers, from sums of errors by group (last axis)."""
        means = np.maximum(sums / self.sizes, self.floors)
        return np.asarray((self.sizes * np.log2(2 * math.e * means)).sum(axis=-1))

    def shared_bits(self, errors: Numbers) -> Numbers:
        """Return all bits of each shared interpretation; errors: ..., cells, interpretations."""
        grouped = np.zeros((*errors.shape[:-2], len(self.sizes), errors.shape[-1]))
        for group in range(len(self.sizes)):
            grouped[..., group, :] = errors[..., self.group_of == group, :].sum(axis=-2)
        return self.data_bits(np.moveaxis(grouped, -1, -2)) + self._shared

    def best(self, errors: Numbers, inside: Flags | None = None) -> Choice:
        """Return the best interpretation: shared by the tables, with exceptions that pay.

        `errors` have a row for each cell and a column for each interpretation. Each cause is worth
        at least `PAYS_BITS` while the others stay; an exception must also bring a number inside its
        tolerance (`inside`).
        """
        if not self.tables:
            return Choice({})
        starts = np.argsort(self.shared_bits(errors), kind="stable")[:_STARTS]
        sums = self._by_table(errors)
        reached = [self._with_exceptions(int(start), sums) for start in starts]
        _, start, chosen = min(reached, key=lambda item: item[0])
        best = self._choice(start, chosen, sums)
        while unpaid := self._unpaid(best, errors, inside):
            best = min(unpaid, key=lambda less: less.total)
        return best

    def _unpaid(self, best: Choice, errors: Numbers, inside: Flags | None) -> list[Choice]:
        """Return a choice without each of its causes that does not pay for itself."""
        unpaid = []
        for pair, less in self.without_each(best, errors):
            pays = less.total - best.total >= PAYS_BITS
            if not pays or not self._gains(pair, best, less, inside):
                unpaid.append(less)
        return unpaid

    def without_each(self, choice: Choice, errors: Numbers) -> list[tuple[tuple[str, str], Choice]]:
        """Return a choice without each of its causes, while the others stay."""
        choices, sums = [], self._by_table(errors)
        for pair in choice.pairs:
            cause, _, only = pair[0].partition("@")
            shared, chosen = dict(choice.shared), []
            # Without its exception a table takes the shared level of the cause.
            usual = shared.get(cause) if only else shared.pop(cause)
            for table in self.tables:
                levels = dict(choice.tables[table])
                if only == table:
                    levels.pop(cause, None)
                    levels |= {cause: usual} if usual else {}
                elif not only and levels.get(cause) == pair[1]:
                    del levels[cause]
                chosen.append(self._number(levels))
            choices.append((pair, self._choice(self._number(shared), np.array(chosen), sums)))
        return choices

    def _gains(
        self, pair: tuple[str, str], best: Choice, less: Choice, inside: Flags | None
    ) -> bool:
        """Return whether an exception brings a number inside; a shared cause need not."""
        table = pair[0].partition("@")[2]
        if inside is None or not table:
            return True
        rows = inside[self.table_of == self.tables.index(table)]
        with_it, without = (self._number(dict(c.tables[table])) for c in (best, less))
        return bool(rows[:, with_it].sum() > rows[:, without].sum())

    def _number(self, combination: dict[str, str]) -> int:
        """Return the place of an interpretation; 0, the study's, where it is not possible."""
        return self._places.get(frozenset(combination.items()), 0)

    def _by_table(self, errors: Numbers) -> Numbers:
        """Return the sums of errors: a row for each table, a column for each interpretation."""
        sums = np.zeros((len(self.tables), errors.shape[1]))
        np.add.at(sums, self.table_of, errors)
        return sums

    def _grouped(self, chosen: Places, sums: Numbers) -> Numbers:
        """Return the sums of errors by group, each table under its chosen interpretation."""
        chosen_sums = sums[np.arange(len(chosen)), chosen]
        return np.bincount(self.group_of_table, chosen_sums, len(self.sizes)).astype(float)

    def _choice(self, start: int, chosen: Places, sums: Numbers) -> Choice:
        """Return the choice of the shared interpretation `start` and that of each table."""
        data_bits = self.data_bits(self._grouped(chosen, sums))
        naming = self._shared[start] + self._other[start, chosen].sum()
        combinations = self.family.combinations
        tables = {t: combinations[n] for t, n in zip(self.tables, chosen, strict=True)}
        return Choice(tables, combinations[start], float(data_bits), float(naming))

    def _with_exceptions(self, start: int, sums: Numbers) -> tuple[float, int, Places]:
        """Return all bits of `start` with the best exceptions, `start`, and that of each table."""
        chosen = np.full(len(self.tables), start)
        total = float(self._totals(start, chosen, sums)[0, start])
        while len(self.tables) > 1:
            totals = self._totals(start, chosen, sums)
            table, place = np.unravel_index(totals.argmin(), totals.shape)
            if totals[table, place] >= total - 1e-9:
                break
            chosen[table], total = place, float(totals[table, place])
        return total, start, chosen

    def _totals(self, start: int, chosen: Places, sums: Numbers) -> Numbers:
        """Return all bits with each interpretation of one table (a row), the others as chosen."""
        every, other = np.arange(len(chosen)), self._other[start]
        options = np.tile(self._grouped(chosen, sums), (*sums.shape, 1))
        options[every, :, self.group_of_table] += sums - sums[every, chosen][:, None]
        naming = self._shared[start] + other[chosen].sum() - other[chosen][:, None] + other
        return np.asarray(self.data_bits(options) + naming)
