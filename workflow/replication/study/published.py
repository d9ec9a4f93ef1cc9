"""Published tables: the one reader of data/published/<study>.csv, and what their cells mean.

The reader is strict: a file that a spreadsheet has shifted by a column still looks like a table.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Flows, Links, Where
from replication.study.errors import InputError
from replication.study.files import read_number
from replication.study.model import (
    LINE,
    OPTIONAL,
    WHOLE,
    Document,
    Identifier,
    Label,
    Text,
    Window,
    break_in,
    one_of,
)
from replication.study.storage.table import PUBLISHED_COLUMNS

UNITS = ("1", "bit/s", "s", "packets", "segments", "bytes")
#: What stands before a number that is computed from a paper's data rather than printed in it.
DERIVED = "derived:"

#: A number, and its exponent.
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS = {word: number for number, word in enumerate(_WORDS)} | {"single": 1}
_THOUSANDS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9}
_BITS = ("bps", "bit/s", "bits/s", "b/s")
#: What a unit behind a printed number makes of it; others say too little ("MB" is bits to some).
_SUFFIXES = {
    "%": 0.01,
    **{prefix + bits: 10.0**n for prefix, n in _THOUSANDS.items() for bits in _BITS},
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    **dict.fromkeys(("min", "minutes"), 60.0),
}
#: What a number may stand for whose unit is in the table's head: a power of ten or of 1024, of
#: bits or bytes; minutes and hours.
_FACTORS = [10.0**n * size for n in range(-12, 13) for size in (1, 8)]
_FACTORS += [1024.0**n * size for n in (1, 2, 3) for size in (1, 8)] + [60.0, 3600.0]
#: A value that was computed from the printed number may have its rounding noise.
_NOISE = 1e-9


class PublishedError(InputError):
    """A published number cannot be read or mapped; the message names file, line and cell."""


@dataclass(frozen=True)
class PublishedNumber:
    """A line of a file of published numbers (data/README.md has the columns).

    `file` and `line` say where it was read; they are empty for a number that was read elsewhere.
    """

    table: str
    row: str
    column: str
    unit: str
    value: float
    printed: str = ""
    place: str = ""
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """Where the number stands, for messages."""
        cell = f"table {self.table}, row {self.row}, column {self.column}"
        return f"{self.file}: line {self.line}: {cell}" if self.file else cell


def published_path(root: Path, study: str) -> Path:
    """Return the CSV of a study's published numbers."""
    return root / "data" / "published" / f"{study}.csv"


def read_published(path: Path) -> list[PublishedNumber]:
    """Read a study's published numbers in the file's order; PublishedError names line and field."""
    found: dict[tuple[str, str, str], PublishedNumber] = {}
    factors: dict[tuple[str, str], tuple[float, int]] = {}
    for line, fields in _lines(path):
        where = f"{path}: line {line}"
        row = _fields(where, fields)
        value, factor = _number(where, row)
        number = PublishedNumber(**row | {"value": value}, file=str(path), line=line)  # type: ignore[arg-type]
        first = found.setdefault((number.table, number.row, number.column), number).line
        if first != line:
            raise PublishedError(f"{number.where} is there twice, first in line {first}; keep one")
        if factor is not None:
            # Where no unit is printed, one factor leads from printed to value in all of a column.
            usual, first = factors.setdefault((number.table, number.column), (factor, line))
            if factor != usual:
                raise PublishedError(
                    f"{number.where}: value {row['value']} is {factor:g} times printed "
                    f"{number.printed!r}, in line {first} it is {usual:g} times; correct one"
                )
    return list(found.values())


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        # Spreadsheets put a byte order mark in front.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PublishedError(
            f"{path}: cannot be read ({error.strerror}); transcribe the paper's numbers into it"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise PublishedError(f"{path}: line {line}: is not UTF-8 text; save it as UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if line == 1 and fields != list(PUBLISHED_COLUMNS):
                raise PublishedError(f"{path}: line 1: must be {','.join(PUBLISHED_COLUMNS)}")
            if line > 1 and fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise PublishedError(
            f"{path}: line {line}: is not a line of a CSV table: {error}; a quote that opens a "
            "field must close it, and one inside is doubled"
        ) from None


def _fields(where: str, fields: Sequence[str]) -> dict[str, str]:
    if len(fields) != len(PUBLISHED_COLUMNS):
        raise PublishedError(
            f"{where}: has {len(fields)} fields, not {len(PUBLISHED_COLUMNS)}; a text with a comma "
            "needs quotes around it"
        )
    row = dict(zip(PUBLISHED_COLUMNS, fields, strict=True))
    for name, text in row.items():
        if (broken := break_in(text)) is not None:
            raise PublishedError(
                f"{where}: {name}: holds {broken!r}; a field is one line of text, and a quote that "
                "opens it must close it there"
            )
        if not text or text != text.strip():
            raise PublishedError(
                f"{where}: {name}: {text[:60]!r} is empty or has blanks around it; fill or trim it"
            )
    if row["unit"] not in UNITS:
        raise PublishedError(f"{where}: unit: {row['unit'][:60]!r} is none of {', '.join(UNITS)}")
    return row


def _number(where: str, row: Mapping[str, str]) -> tuple[float, float | None]:
    """Return a line's value, and its ratio to the printed number if no unit says so."""
    given = f"{where}: value {row['value'][:60]!r}, printed {row['printed'][:60]!r}"
    try:
        value = read_number(row["value"])
    except InputError as error:
        raise PublishedError(f"{given}: {error}") from None
    if value is None:
        raise PublishedError(f"{given}: the value is not a number, such as 0.5 or 1e6; correct it")
    number, suffix = _printed(row["printed"])
    if number is None:
        raise PublishedError(
            f"{given}: no number is printed; copy it from the paper, or write {DERIVED} and the "
            "number that was computed"
        )
    meant = number * _SUFFIXES.get(suffix, 1.0)
    # Where no unit is printed, the value is the number times a factor that its column shares.
    factors = [1.0] if suffix in _SUFFIXES or not meant else _FACTORS
    factor = next((f for f in factors if math.isclose(value, meant * f, rel_tol=_NOISE)), None)
    if factor is None:
        says = f"{meant:.10g}" + ("" if suffix in _SUFFIXES else ", or that by a power of ten")
        raise PublishedError(f"{given}: what is printed says {says}; correct one of them")
    return float(value), factor if factors is _FACTORS else None


def _printed(text: str) -> tuple[float | None, str]:
    text = text.removeprefix(DERIVED)
    found = _NUMBER.search(text)
    if found is None:
        return _NUMBER_WORDS.get(text.strip().lower()), ""
    sign = -1 if text[: found.start()].endswith(("-", "−")) else 1
    unit = text[found.end() :].split()[:1]
    return sign * float(found[0].replace(",", "")), "".join(unit)


def half_ulp(printed: str, value: float) -> float:
    """Return half a unit of the last printed digit, in the unit of `value`, the same figure in SI.

    `printed` is the figure as printed, such as ``122.144``, ``~121 kbps`` or ``derived:14.65``. Its
    first number counts; text without digits ("three") is exact.
    """
    found = _NUMBER.search(printed)
    if found is None:
        return 0.0
    number = Decimal(found[0].replace(",", ""))
    places = number.as_tuple().exponent
    assert isinstance(places, int)  # digits only: never NaN or infinite
    ulp = Decimal(1).scaleb(places)
    scale = abs(Decimal(repr(float(value))) / number) if number and value else 1
    return float(ulp / 2 * scale)


def significant_digits(printed: str) -> int:
    """Return how many significant digits the first number of `printed` has (0: no number)."""
    found = _NUMBER.search(printed)
    digits = found[1].replace(",", "") if found else ""
    significant = digits.replace(".", "").lstrip("0")
    # Trailing zeros of a whole number may only be place holders.
    return len(significant) if "." in digits else len(significant.rstrip("0"))


class Spread(Document):
    """The printed standard deviations of several published runs, by which their mean is judged."""

    column: Identifier
    """The table's column that has them (`over_runs: standard_deviation`)."""
    runs: Annotated[int, Field(ge=2, le=10**6), WHOLE]
    """How many runs were published. Where that is not printed their standard deviation says too
    little: give `relative` or `absolute`, and say so in `reason`."""


class Tolerance(Document):
    """How close is close, set before any run was looked at.

    `relative` and `absolute` are half-widths of the band around the published value; `spread` gives
    it the 95 % band of a difference of two means, of the published runs and of ours. With `factor`
    the value is that of one published run: it has to be one that our runs could give, and may
    differ from their mean by this factor (`verdicts.published_run`).
    """

    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    absolute: Annotated[float, Field(gt=0)] | None = None
    factor: Annotated[float, Field(gt=1, le=3)] | None = None
    spread: Spread | None = OPTIONAL
    """`{column, runs}`: the column with the printed standard deviations, and of how many runs."""
    reason: Text

    _one_kind = one_of("relative", "absolute", "factor", "spread")


class Cell(Document):
    """What a published cell means as a quantity of our runs, and how close is close."""

    metric: Identifier
    """See `replicate metrics`."""
    flows: Flows = "tcp"
    """`tcp`, `cbr`, `all`, flow ids, or `{start_order: k}`, the k-th TCP flow to start."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] = "mean"
    """Over flows: `mean`, `sum`, `maximum`, `minimum`, `pooled` (ratio of sums over all
    packets), `jain`."""
    window_s: Window | None = None
    """[from, to]: only this part of the run, for metrics of the series."""
    links: Links | None = OPTIONAL
    """Monitored links, each with its direction as in the series, `[bottleneck:ab]`, that a metric
    of links is taken over; without it all that are monitored. `aggregate` combines them."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """What the number is multiplied by to be the metric: 0.5 for a printed round trip of which the
    metric is one way, 8 for bytes."""
    over_runs: Literal["mean", "standard_deviation"] = "mean"
    """What the number is of the runs: their `mean`, or their `standard_deviation` (of a sample,
    n - 1), which takes three replicates."""
    tolerance: Tolerance
    """One of `relative` (0 to 1, of the published value), `absolute` (in the unit of the CSV),
    `spread` (printed standard deviations) and `factor` (above 1, of a number of one published
    run), with `reason` *."""
    monotonic: Literal["increasing", "decreasing"] | None = None
    """`increasing` or `decreasing`: how the column has to run along its rows; the audit checks
    the published numbers against it."""
    label: Label | None = None
    """Head of the column in the report; without it the key's words, or the level's label."""

    @model_validator(mode="after")
    def _spread_of_runs(self) -> Cell:
        if self.over_runs != "mean" and self.tolerance.factor is not None:
            raise ValueError("tolerance: a standard deviation is of several runs and has no factor")
        return self


class TableRow(Document):
    """A published row that is not a factor level; `flows` takes the place of the cells' own."""

    experiment: Identifier | None = None
    where: Where
    flows: Flows | None = None
    label: Label | None = None


class Table(Document):
    """Maps a published table to points of an experiment.

    Every row has a published number in every column but those that `not_printed` names.
    """

    id: Annotated[str, Field(min_length=1, max_length=64), LINE]
    """The `table` of the CSV; text, so `"1"` in quotes."""
    title: Text
    """Title in the report."""
    experiment: Identifier
    """The experiment's id."""
    where: Where = {}
    """Factor to level, or to a list of levels, for the whole table."""
    row_factor: Identifier | None = None
    """The factor whose level keys are the row keys; or else `rows`."""
    rows: dict[Identifier, TableRow] | None = None
    """Map of row key to `{where, experiment, flows, label}`: the points of that row (`where` *), of
    another experiment, the flows it stands for instead of the cell's, and its head in the
    report."""
    column_factor: Identifier | None = None
    """The factor whose level keys are the column keys, with one `cell` for all; or else
    `columns`."""
    cell: Cell | None = None
    """Goes with `column_factor`."""
    columns: dict[Identifier, Cell] | None = None
    """Map of column key to cell."""
    not_printed: dict[Identifier, list[Identifier]] = {}
    """Row key to the columns that the paper leaves empty there; every other cell needs its
    number in the CSV."""
    not_comparable: dict[Identifier, dict[Identifier, Text]] = {}
    """Row key to column key to reason: the number is printed, but of another thing than the
    metric, and is `not testable`."""

    _one_of_rows = one_of("row_factor", "rows")
    _one_of_columns = one_of("column_factor", "columns")

    @model_validator(mode="after")
    def _has_cell(self) -> Table:
        if (self.column_factor is None) != (self.cell is None):
            raise ValueError(f"table {self.id}: cell goes with column_factor")
        columns = self.columns or {}
        for cell in [self.cell] if self.cell else columns.values():
            spread = cell.tolerance.spread
            named = columns.get(spread.column) if spread else None
            if spread and (named is None or named.over_runs == "mean"):
                raise ValueError(
                    f"table {self.id}: tolerance.spread.column: {spread.column!r} is no column of "
                    "standard deviations; give one that has over_runs: standard_deviation"
                )
        return self
