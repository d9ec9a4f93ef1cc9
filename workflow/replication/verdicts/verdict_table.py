"""The verdicts on cells and claims as one typed table, which every later stage only formats.

data/README.md explains `verdicts.parquet`. Each study has one; the CSV files are those of all
studies together.

If several engines ran a study, one is its *primary engine*, whose verdicts represent the study: the
paper's own family if it ran points, else ns3, which every study can run, else the first that ran.

Counts of verdicts have one definition and one denominator each, for pages, notebooks and CSV:
data/README.md explains them (`counts.csv`); shares are of the tested. A claim *holds* if it is
reproduced; repeats of a claim are not counted.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from replication.base import table as tables
from replication.base.errors import InputError
from replication.base.files import REMEDY
from replication.design.config import load_study
from replication.engines.catalogue import ENGINES
from replication.study.setup import Setup
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.published_run import CENTRAL


@dataclass(frozen=True)
class CellRow:
    """A published number, ours on one engine under one set-up, and the verdict.

    An undefined number is NaN. Columns up to `reason` are those of cells.csv.
    """

    study: str
    table: str
    row: str
    column: str
    kind: str
    engine: str
    setup: Setup
    unit: str
    #: Times `factor`, like half of its last digit; `printed` is the paper's text without it.
    published: float
    published_half_ulp: float
    printed: str
    factor: float
    reproduced_mean: float
    reproduced_low: float
    reproduced_high: float
    n: int
    relative_deviation: float
    verdict: Verdict
    reason_code: str
    reason: str
    row_label: str
    column_label: str
    display_unit: str
    display_factor: float
    accepted_margin: float
    #: Whether a number of one published run lies in our central 95 %; None if untested.
    compatible: bool | None
    points: list[dict[str, str]]
    #: JSON of `study.claim_model.Quantity`.
    quantities: list[str]
    reasons: list[str]


@dataclass(frozen=True)
class ClaimRow:
    """The verdict on a claim on one engine under one set-up, and the statistic.

    An undefined number is NaN. Columns up to `reason` are those of claims.csv.
    """

    study: str
    claim: str
    quote: str
    place: str
    engine: str
    setup: Setup
    statistic: str
    observed: float
    low: float
    high: float
    margin: str
    runs_passing: str
    counted: bool
    verdict: Verdict
    reason_code: str
    reason: str
    statistic_unit: str
    points: list[dict[str, str]]
    #: JSON of `study.claim_model.Quantity`.
    quantities: list[str]
    reasons: list[str]


#: Either type of row.
RowType = TypeVar("RowType", CellRow, ClaimRow)
#: The name of the table.
NAME = "verdicts.parquet"
#: The column that has "cells" or "claims".
KIND = "item"
_KINDS: dict[str, type[CellRow] | type[ClaimRow]] = {"cells": CellRow, "claims": ClaimRow}
COLUMNS = {kind: tuple(get_type_hints(row)) for kind, row in _KINDS.items()}
_TEXT = pa.string()
_ARROW_TYPES: dict[Any, pa.DataType] = {
    str: _TEXT,
    Setup: _TEXT,
    Verdict: _TEXT,
    float: pa.float64(),
    int: pa.int64(),
    bool: pa.bool_(),
    bool | None: pa.bool_(),
    list[str]: pa.list_(_TEXT),
    list[dict[str, str]]: pa.list_(pa.struct([("experiment", _TEXT), ("point", _TEXT)])),
}
_FIELDS = {KIND: str, **get_type_hints(CellRow), **get_type_hints(ClaimRow)}
_NUMBERS = {column for column, kind in _FIELDS.items() if kind is float}
SCHEMA = pa.schema([(column, _ARROW_TYPES[kind]) for column, kind in _FIELDS.items()])
#: The primary engine if the paper's family did not run.
DEFAULT = "ns3"
#: What is counted, with its words on a page.
WHAT = {"printed": "printed numbers", "trace": "statistics of published traces", "claims": "claims"}
#: All studies, each on its primary engine.
ALL_STUDIES = ""
#: The table of all counts.
COUNTS = "counts.csv"


@dataclass(frozen=True)
class CountRow:
    """How many verdicts are of each kind on one engine under one set-up: a row of counts.csv."""

    study: str
    engine: str
    setup: Setup
    what: str
    total: int
    tested: int
    reproduced: int
    direction_only: int
    not_reproduced: int
    not_testable: int
    impossible: int
    compared: int
    outside: int


COUNT_COLUMNS = tuple(get_type_hints(CountRow))


def write_verdicts(folder: Path, cells: Iterable[CellRow], claims: Iterable[ClaimRow]) -> None:
    """Write the rows of cells and claims as a typed table, with the digits of CSV files."""
    rows = [{KIND: "cells"} | _plain(cell) for cell in cells]
    rows += [{KIND: "claims"} | _plain(claim) for claim in claims]
    tables.write_parquet(pa.Table.from_pylist(rows, SCHEMA), folder / NAME)


def _plain(row: CellRow | ClaimRow) -> dict[str, Any]:
    """Return the fields of a row; undefined numbers are None."""
    fields = dict(row.__dict__)
    for column, value in fields.items():
        if isinstance(value, float):
            rounded = float(f"{value:.{tables.DIGITS}g}")
            fields[column] = None if math.isnan(value) else rounded
    return fields


def _typed(row_type: type[RowType], fields: Mapping[str, Any]) -> RowType:
    """Return the row with fields that `_plain` returned."""
    values = dict(fields)
    for column in values.keys() & _NUMBERS:
        if values[column] is None:
            values[column] = math.nan
    values["setup"] = Setup(values["setup"])
    values["verdict"] = Verdict(values["verdict"])
    return row_type(**values)


def read_cells(folder: Path) -> list[CellRow]:
    """Return the rows of numbers in a folder's typed table; errors as of `read_table`."""
    return [_typed(CellRow, fields) for fields in read_table(folder, "cells").to_pylist()]


def read_claims(folder: Path) -> list[ClaimRow]:
    """Return the rows of claims in a folder's typed table; errors as of `read_table`."""
    return [_typed(ClaimRow, fields) for fields in read_table(folder, "claims").to_pylist()]


def read_table(folder: Path, kind: str = "") -> pa.Table:
    """Return the "cells" or "claims" of a folder's typed table, or all of it.

    InputError: it is missing, damaged, of another version, or has an unknown verdict or set-up.
    """
    path = folder / NAME
    table = tables.read_parquet(path)
    # Earlier versions have further columns.
    table = table.select([name for name in SCHEMA.names if name in table.column_names])
    if table.schema != SCHEMA:
        raise InputError(f"{path}: made by another version; {REMEDY}")
    for column, known in (("verdict", Verdict), ("setup", Setup)):
        if unknown := set(table[column].to_pylist()) - set(known):
            raise InputError(f"{path}: {column} {min(unknown)!r} is unknown; {REMEDY}")
    return table.filter(pc.equal(table[KIND], kind)).select(list(COLUMNS[kind])) if kind else table


def merge_verdicts(folders: Sequence[Path], primary: Mapping[str, str], out_dir: Path) -> None:
    """Join the typed tables of studies, in the given order, and write the CSV files and counts."""
    tables.write_parquet(pa.concat_tables(map(read_table, folders)), out_dir / NAME)
    for kind, columns in (("cells", tables.CELL_COLUMNS), ("claims", tables.CLAIM_COLUMNS)):
        rows = read_table(out_dir, kind).select(list(columns)).to_pylist()
        tables.write_table(out_dir / f"{kind}.csv", rows, columns)
    counts = count_rows(read_cells(out_dir), read_claims(out_dir), primary)
    tables.write_table(out_dir / COUNTS, map(vars, counts), COUNT_COLUMNS)


class EngineCoverage(NamedTuple):
    """How many of the points of its design an engine ran, and why not the others, each once."""

    engine: str
    ran: int
    points: int
    reasons: tuple[str, ...]

    def why_not(self) -> str:
        """Return why the engine ran nothing, to follow its name."""
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"refuses all {self.points} points{why}"


def is_supported(row: Mapping[str, str]) -> bool:
    """Return whether the engine runs this row of a design."""
    return row["supported"].lower() in ("true", "1")


def runs_under(design: Iterable[tables.Row], setup: Setup = Setup.DEFAULTS) -> list[tables.Row]:
    """Return the rows of a design under a set-up."""
    return [row for row in design if row["setup"] == setup]


def engine_coverage(design: Iterable[Mapping[str, str]]) -> dict[str, EngineCoverage]:
    """Return the coverage of each engine, in the order of the design's rows."""
    refusals: dict[str, dict[tuple[str, str], str]] = {}
    for row in design:
        refusal = "" if is_supported(row) else row["reason"]
        refusals.setdefault(row["engine"], {})[row["experiment"], row["point"]] = refusal
    coverage = {}
    for engine, answers in refusals.items():
        reasons = [reason for reason in answers.values() if reason]
        ran = len(answers) - len(reasons)
        once = tuple(dict.fromkeys(reasons))
        coverage[engine] = EngineCoverage(engine, ran, len(answers), once)
    return coverage


class PrimaryEngine(NamedTuple):
    """The engine whose verdicts represent a study; `mark` explains a fallback."""

    engine: str
    mark: str = ""


def primary_engine(original: str, parts: Mapping[str, EngineCoverage]) -> PrimaryEngine:
    """Return the primary engine of a study, from the paper's own family and the coverage."""
    ran = [name for name, part in parts.items() if part.ran]
    if not ran:
        first = next(iter(parts), "")
        why = f"; {first} {parts[first].why_not()}" if first else ""
        return PrimaryEngine(first, f"No engine ran this study{why}.")
    if original in ran:
        return PrimaryEngine(original)
    engine = DEFAULT if DEFAULT in ran else ran[0]
    why = parts[original].why_not() if original in parts else "did not run here"
    said = f"the paper ran {ENGINES[original].title}, which {why}"
    return PrimaryEngine(engine, f"Verdicts of {engine}; {said}.")


def primary_engines(root: Path, data: Path, studies: Iterable[str]) -> dict[str, str]:
    """Return the primary engine of each study, from the design in `data`."""
    chosen = {}
    for study in studies:
        coverage = engine_coverage(runs_under(tables.read_design(data, study)))
        original = load_study(root, study).original_system.engine
        chosen[study] = primary_engine(original, coverage).engine
    return chosen


class Share(NamedTuple):
    """A part of a whole."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"


class Tally:
    """How many verdicts are of each kind."""

    outside = Share(0, 0)

    def __init__(self, words: Iterable[str]) -> None:
        counted = Counter(words)
        self.by_verdict = {verdict: counted[verdict] for verdict in Verdict}
        self.total = counted.total()
        self.tested = self.total - self.by_verdict[Verdict.NOT_TESTABLE]

    def share(self, word: str) -> Share:
        """Return how many of those tested are of the verdict `word`."""
        return Share(self.by_verdict[Verdict(word)], self.tested)


class Numbers(Tally):
    """Verdicts on numbers, their tables, and how many lie outside the central 95 % of our runs.

    A trace is a table, and its flows are the table's rows.
    """

    def __init__(self, rows: Iterable[CellRow]) -> None:
        rows = list(rows)
        super().__init__(row.verdict for row in rows)
        self.tables = len({(row.study, row.table) for row in rows})
        self.rows = len({(row.study, row.table, row.row) for row in rows})
        #: How many are numbers of one published run; the others have a tolerance.
        self.of_one_run = sum(math.isnan(row.accepted_margin) for row in rows)
        compared = [row.compatible for row in rows if row.compatible is not None]
        self.outside = Share(compared.count(False), len(compared))
        #: How many chance would put outside if the published runs were runs of ours.
        self.outside_by_chance = (1 - CENTRAL[1] + CENTRAL[0]) * len(compared)


def tallies(cells: Iterable[CellRow], claims: Iterable[ClaimRow]) -> dict[str, Tally]:
    """Count rows of one set-up, and of one engine for each study, by what is counted."""
    cells = list(cells)
    return {
        "printed": Numbers(row for row in cells if row.kind == "printed"),
        "trace": Numbers(row for row in cells if row.kind == "trace"),
        "claims": Tally(row.verdict for row in claims if row.counted),
    }


def claims_tally(study: Study, verdicts: Mapping[str, str]) -> Tally:
    """Count the verdicts on a study's claims, by claim; like `tallies`, without repeats."""
    counted = [claim.id for claim in study.claims if claim.is_counted]
    return Tally(verdicts[claim] for claim in counted if claim in verdicts)


def rows_on(
    rows: Iterable[RowType], engines: Mapping[str, str], setup: Setup = Setup.DEFAULTS
) -> list[RowType]:
    """Return the rows of one set-up, and of the one engine of each study.

    `engines` has the engine of each study; rows without an engine belong to every engine.
    """
    chosen = [row for row in rows if row.setup == setup and row.study in engines]
    return [row for row in chosen if row.engine in ("", engines[row.study])]


def count_rows(
    cells: Sequence[CellRow], claims: Sequence[ClaimRow], primary: Mapping[str, str]
) -> Iterator[CountRow]:
    """Yield the rows of counts.csv, for each set-up.

    Each study is counted on each engine, then all studies on their `primary` one.
    """
    engines = {cell.engine for cell in cells} | {claim.engine for claim in claims}
    for study, engine in itertools.product(sorted(primary), sorted(engines - {""})):
        yield from _counts_on(cells, claims, {study: engine}, study, engine)
    yield from _counts_on(cells, claims, primary, ALL_STUDIES, "")


def _counts_on(
    cells: Sequence[CellRow],
    claims: Sequence[ClaimRow],
    engines: Mapping[str, str],
    study: str,
    engine: str,
) -> Iterator[CountRow]:
    """Count the studies on their `engines`, in rows of `study` and `engine`."""
    for setup in Setup:
        counted = tallies(rows_on(cells, engines, setup), rows_on(claims, engines, setup))
        for what, tally in counted.items():
            if tally.total:
                yield CountRow(
                    study=study,
                    engine=engine,
                    setup=setup,
                    what=what,
                    total=tally.total,
                    tested=tally.tested,
                    reproduced=tally.by_verdict[Verdict.REPRODUCED],
                    direction_only=tally.by_verdict[Verdict.DIRECTION_ONLY],
                    not_reproduced=tally.by_verdict[Verdict.NOT_REPRODUCED],
                    not_testable=tally.by_verdict[Verdict.NOT_TESTABLE],
                    impossible=tally.by_verdict[Verdict.IMPOSSIBLE],
                    compared=tally.outside.whole,
                    outside=tally.outside.part,
                )
