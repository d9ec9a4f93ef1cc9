"""Published numbers: the strict reader of data/published/<study>.csv, and models of its tables."""

import csv
import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from replication.base.errors import InputError, cut, quoted
from replication.base.files import read_number
from replication.base.model import (
    LINE,
    WHOLE,
    Document,
    Identifier,
    Label,
    Text,
    control_character,
    one_of,
)
from replication.base.table import PUBLISHED_COLUMNS
from replication.study.claim_model import Flows, Measured, Where

UNITS = ("1", "bit/s", "s", "packets", "segments", "bytes")
#: Prefix of a number that is computed from a paper's data, not printed in it.
DERIVED = "derived:"

#: A number, and its exponent.
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS = {word: number for number, word in enumerate(_WORDS)} | {"single": 1}
_THOUSANDS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9}
_BITS = ("bps", "bit/s", "bits/s", "b/s")
#: Factors of the units behind printed numbers; others are ambiguous ("MB" can mean bits).
_SUFFIXES = {
    "%": 0.01,
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    **dict.fromkeys(("min", "minutes"), 60.0),
}
for _prefix, _exponent in _THOUSANDS.items():
    _SUFFIXES |= {_prefix + bits: 10.0**_exponent for bits in _BITS}
#: Possible factors of a number whose unit is in the table's head: powers of ten and of 1024, of
#: bits or bytes; minutes and hours.
_FACTORS = [10.0**n * size for n, size in itertools.product(range(-12, 13), (1, 8))]
_FACTORS += [1024.0**n * size for n, size in itertools.product((1, 2, 3), (1, 8))]
_FACTORS += [60.0, 3600.0]
#: Relative rounding error of a value that was computed from the printed number.
_NOISE = 1e-9


@dataclass(frozen=True)
class PublishedNumber:
    """A published number: a line of the CSV (data/README.md has the columns), and its place."""

    table: str
    row: str
    column: str
    unit: str
    value: float
    printed: str
    place: str
    file: Path
    line: int

    @property
    def cell(self) -> str:
        """The number's place in the tables, for messages."""
        table, row, column = (cut(name, 64) for name in (self.table, self.row, self.column))
        return f"table {table}, row {row}, column {column}"

    @property
    def where(self) -> str:
        """The number's place, for messages."""
        return f"{self.file}, line {self.line}: {self.cell}"


def published_path(root: Path, study: str) -> Path:
    """Return the CSV of a study's published numbers."""
    return root / "data" / "published" / f"{study}.csv"


def read_published(path: Path) -> list[PublishedNumber]:
    """Read a study's published numbers in the file's order; InputError names line and field."""
    line = 1
    numbers: dict[tuple[str, str, str], PublishedNumber] = {}
    factors: dict[tuple[str, str, bool], list[tuple[float, PublishedNumber]]] = {}
    try:
        # Spreadsheets write a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        for fields in reader:
            if line == 1 and fields != list(PUBLISHED_COLUMNS):
                raise InputError(_wrong_head(fields))
            if line > 1 and fields:
                number, factor = _number(path, line, fields)
                first = numbers.setdefault((number.table, number.row, number.column), number)
                if first.line != line:
                    raise InputError(f"{number.cell} is there twice, first in line {first.line}")
                column = number.table, number.column, factor is None
                factors.setdefault(column, []).append((factor or 1.0, number))
            line = reader.line_num + 1
        if line == 1:
            raise InputError(_wrong_head([]))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); transcribe the paper's numbers into it"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: is not UTF-8 text; save it as UTF-8") from None
    except (csv.Error, InputError) as error:
        remedy = "; close each quoted field" if isinstance(error, csv.Error) else ""
        raise InputError(f"{path}, line {line}: {error}{remedy}") from None
    for column_factors in factors.values():
        _check_factors(column_factors)
    return list(numbers.values())


def _wrong_head(fields: Sequence[str]) -> str:
    head = ",".join(PUBLISHED_COLUMNS)
    if not fields:
        return f"is empty; it must be {head}"
    if len(fields) == 1 and ";" in fields[0]:
        return f"has semicolons between its fields; save the table with commas: {head}"
    return f"is {quoted(','.join(fields))}; it must be {head}"


def _check_factors(numbers: Sequence[tuple[float, PublishedNumber]]) -> None:
    """Check that the numbers of a column without printed units have one factor."""
    ((usual, _),) = Counter(factor for factor, _ in numbers).most_common(1)
    example = next(number for factor, number in numbers if factor == usual)
    for factor, number in numbers:
        if factor != usual:
            raise InputError(
                f"{number.where}: value {number.value:g} is {factor:g} times printed "
                f"{quoted(number.printed)}, in line {example.line} it is {usual:g} times; correct "
                "one of them"
            )


def _number(path: Path, line: int, fields: Sequence[str]) -> tuple[PublishedNumber, float | None]:
    """Return a line's number, and without a printed unit its ratio to the printed number."""
    if len(fields) != len(PUBLISHED_COLUMNS):
        raise InputError(
            f"has {len(fields)} fields, not {len(PUBLISHED_COLUMNS)}; a text with a comma needs "
            "quotes around it"
        )
    row = dict(zip(PUBLISHED_COLUMNS, fields, strict=True))
    for name, text in row.items():
        if (control := control_character(text)) is not None:
            raise InputError(f"{name}: contains {control!r}; close the quotes of the field")
        if not text or text != text.strip():
            raise InputError(f"{name}: {text[:60]!r} is empty or has blanks around it")
    if row["unit"] not in UNITS:
        raise InputError(f"unit: {row['unit'][:60]!r} is none of {', '.join(UNITS)}")
    given = f"value {row['value'][:60]!r}, printed {row['printed'][:60]!r}"
    value = read_number(row["value"])
    if value is None:
        raise InputError(f"{given}: the value is not a number, such as 0.5 or 1e6; correct it")
    number, suffix = _printed(row["printed"])
    if number is None:
        raise InputError(
            f"{given}: no number is printed; copy it from the paper, or write {DERIVED} and the "
            "computed number"
        )
    meant = number * _SUFFIXES.get(suffix, 1.0)
    factors = [1.0] if suffix in _SUFFIXES or not meant else _FACTORS
    factor = next((f for f in factors if math.isclose(value, meant * f, rel_tol=_NOISE)), None)
    if factor is None:
        says = f"{meant:.10g}" + ("" if suffix in _SUFFIXES else ", or that by a power of ten")
        raise InputError(f"{given}: the printed text means {says}; correct one of them")
    published = PublishedNumber(
        table=row["table"],
        row=row["row"],
        column=row["column"],
        unit=row["unit"],
        value=float(value),
        printed=row["printed"],
        place=row["place"],
        file=path,
        line=line,
    )
    return published, factor if factors is _FACTORS else None


def _printed(text: str) -> tuple[float | None, str]:
    """Return the number in a printed text, and the unit that follows it."""
    text = text.removeprefix(DERIVED)
    number = _NUMBER.search(text)
    if number is None:
        return _NUMBER_WORDS.get(text.strip().lower()), ""
    sign = -1 if text[: number.start()].endswith(("-", "−")) else 1
    unit = text[number.end() :].split()[:1]
    return sign * float(number[0].replace(",", "")), "".join(unit)


def half_ulp(printed: str, value: float) -> float:
    """Return half a unit of the last printed digit, in the unit of `value`.

    The first number of `printed` counts (``~121 kbps``); text without digits ("three") is exact.
    """
    first = _NUMBER.search(printed)
    if first is None:
        return 0.0
    number = Decimal(first[0].replace(",", ""))
    ulp = Decimal(1).scaleb(int(number.as_tuple().exponent))
    scale = abs(Decimal(repr(float(value))) / number) if number and value else 1
    return float(ulp / 2 * scale)


def significant_digits(printed: str) -> int:
    """Return the number of significant digits of the first number of `printed`; 0 without one."""
    first = _NUMBER.search(printed)
    digits = first[1].replace(",", "") if first else ""
    significant = digits.replace(".", "").lstrip("0")
    # Trailing zeros of a whole number may be place holders.
    return len(significant) if "." in digits else len(significant.rstrip("0"))


class Spread(Document):
    """Printed standard deviations of several published runs."""

    column: Identifier
    """The table's column with the standard deviations (`over_runs: standard_deviation`)."""
    runs: Annotated[int, Field(ge=2, le=10**6), WHOLE]
    """Number of published runs. If the paper does not state it, give `relative` or `absolute`
    instead, and say so in `reason`."""


class Tolerance(Document):
    """Tolerance of a published number, set before any run was looked at.

    `relative` and `absolute` are half-widths of a band around the number; `spread` sets the 95 %
    band of the difference between published mean and ours. With `factor` the number is that of one
    published run, and may differ from our mean by this factor (`verdicts.published_run`).
    """

    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    absolute: Annotated[float, Field(gt=0)] | None = None
    factor: Annotated[float, Field(gt=1, le=3)] | None = None
    spread: Spread | None = None
    reason: Text

    _one_kind = one_of("relative", "absolute", "factor", "spread")


class Cell(Measured):
    """The quantity of our runs that a published number is compared with, and its tolerance."""

    factor: Annotated[float, Field(gt=0)] = 1.0
    """Factor from the number to the metric: 0.5 for a printed round trip and a metric of one
    direction, 8 for a number in bytes/s whose metric is in bit/s."""
    over_runs: Literal["mean", "standard_deviation"] = "mean"
    """Whether the number is the `mean` of the runs or their `standard_deviation` (n - 1), which
    needs three replicates."""
    tolerance: Tolerance
    """One of `relative` (0 to 1, of the published value), `absolute` (in the unit of the CSV),
    `spread` (printed standard deviations) and `factor` (above 1, for a number of one published
    run), with `reason` *."""
    monotonic: Literal["increasing", "decreasing"] | None = None
    """Whether the published numbers must increase or decrease along the rows; the audit checks
    this."""

    @model_validator(mode="after")
    def _spread_of_runs(self) -> Self:
        if self.over_runs != "mean" and self.tolerance.factor is not None:
            raise ValueError("tolerance: factor is for one run, not for a standard deviation")
        return self


class TableRow(Document):
    """A published row that is not a level of a factor; its `flows` override the cell's."""

    experiment: Identifier | None = None
    where: Where
    flows: Flows | None = None
    label: Label | None = None


def keys_of(cells: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return row and column of each cell; `cells` has the columns of each row."""
    keys = []
    for row, columns in cells.items():
        keys += [(row, column) for column in columns]
    return keys


class Table(Document):
    """A published table, mapped to points of an experiment."""

    id: Annotated[str, Field(min_length=1, max_length=64), LINE]
    """`table` in the CSV; text, so `"1"` in quotes."""
    title: Text
    """Title in the report."""
    experiment: Identifier
    """Id of the experiment."""
    where: Where = {}
    """Map of factor to level or list of levels, for the whole table."""
    row_factor: Identifier | None = None
    """Factor whose level keys are the row keys; or give `rows`."""
    rows: dict[Identifier, TableRow] | None = None
    """Map of row key to `{where, experiment, flows, label}`: levels of the row (`where` *), another
    experiment, other flows than the cell's, and the row's head in the report."""
    column_factor: Identifier | None = None
    """Factor whose level keys are the column keys, with one `cell` for all; or give `columns`."""
    cell: Cell | None = None
    """The cell of all columns of `column_factor`."""
    tolerances: dict[Identifier, Tolerance] = {}
    """Map of column key of `column_factor` to its tolerance, where it is not that of `cell`."""
    columns: dict[Identifier, Cell] | None = None
    """Map of column key to cell."""
    not_printed: dict[Identifier, list[Identifier]] = {}
    """Map of row key to the columns that the paper leaves empty; every other cell needs its number
    in the CSV."""
    not_comparable: dict[Identifier, dict[Identifier, Text]] = {}
    """Map of row key to column key to reason, for a printed number that does not measure the
    metric; it is `not testable`."""

    together: list[dict[Identifier, list[Identifier]]] = []
    """Groups of numbers that one sentence states together, each a map of row key to column keys. A
    number is reproduced only if all numbers of its group are."""

    _one_of_rows = one_of("row_factor", "rows")
    _one_of_columns = one_of("column_factor", "columns")

    @property
    def cells(self) -> list[Cell]:
        """The cells of all columns."""
        if self.cell is None:
            return [*(self.columns or {}).values()]
        return [self.cell, *(self.cell_of(column) for column in self.tolerances)]

    def cell_of(self, column: str) -> Cell:
        """Return the cell of a column; KeyError without one."""
        if self.cell is None:
            return (self.columns or {})[column]
        tolerance = self.tolerances.get(column, self.cell.tolerance)
        return self.cell.model_copy(update={"tolerance": tolerance})

    def group_of(self, row: str, column: str) -> list[tuple[str, str]]:
        """Return row and column of the numbers that are judged together with one, and its own."""
        for group in self.together:
            if column in group.get(row, ()):
                return keys_of(group)
        return []

    @model_validator(mode="after")
    def _in_one_group(self) -> Self:
        numbers: Counter[tuple[str, str]] = Counter()
        for group in self.together:
            numbers.update(keys_of(group))
        for (row, column), groups in numbers.items():
            if groups > 1:
                raise InputError(
                    f"table {self.id}: together: row {row}, column {column} is in {groups} groups; "
                    "leave it in one",
                    ("together",),
                )
        return self

    @model_validator(mode="after")
    def _has_cell(self) -> Self:
        if (self.column_factor is None) != (self.cell is None):
            raise ValueError(f"table {self.id}: cell goes with column_factor")
        if self.tolerances and self.cell is None:
            raise ValueError(f"table {self.id}: tolerances goes with column_factor")
        columns = self.columns or {}
        for cell in self.cells:
            spread = cell.tolerance.spread
            named = columns.get(spread.column) if spread else None
            if spread and (named is None or named.over_runs == "mean"):
                raise ValueError(
                    f"table {self.id}: tolerance.spread.column: {spread.column!r} has no standard "
                    "deviations; give a column with over_runs: standard_deviation"
                )
        return self
