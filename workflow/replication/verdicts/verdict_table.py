"""The verdicts on cells and claims as one typed table, which every later stage only formats.

data/README.md explains `verdicts.parquet`. Each study has one; the CSV files are those of all
studies together.

If several engines ran a study, one is its *primary engine*, whose verdicts represent the study: the
paper's own family if it ran points, else ns3, which every study can run, else the first that ran.

Counts of verdicts have one definition and one denominator each, for pages, notebooks and CSV:
data/README.md explains them (`counts.csv`); shares are of the tested.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from replication.design.config import load_study
from replication.engines.catalogue import ENGINES
from replication.study import table as tables
from replication.study.errors import InputError
from replication.study.files import REMEDY
from replication.study.verdict import FORMER_REASON_CODES, Verdict
from replication.verdicts.published_run import CENTRAL

#: A row of the typed table; a missing value is None.
Judged = dict[str, Any]

_TEXT, _NUMBER = pa.string(), pa.float64()
_POINTS = pa.list_(pa.struct([("experiment", _TEXT), ("point", _TEXT)]))
_TYPES = {
    **dict.fromkeys(("published", "published_half_ulp", "relative_deviation"), _NUMBER),
    **dict.fromkeys(("reproduced_mean", "reproduced_low", "reproduced_high"), _NUMBER),
    **dict.fromkeys(("observed", "low", "high", "accepted_margin", "display_factor"), _NUMBER),
    "n": pa.int64(),
    **dict.fromkeys(("counted", "compatible"), pa.bool_()),
    "points": _POINTS,
    **dict.fromkeys(("quantities", "reasons"), pa.list_(_TEXT)),
}
#: Columns that the CSV files do not have; `quantities` are JSON of `study.claim_model.Quantity`.
_SHARED = ("points", "quantities", "reasons")
_SHOWN = ("row_label", "column_label", "display_unit", "display_factor", "accepted_margin")
COLUMNS = {
    # `compatible`: whether a number of one published run lies in the central 95 % of our runs.
    "cells": (*tables.CELL_COLUMNS, *_SHOWN, "compatible", *_SHARED),
    "claims": (*tables.CLAIM_COLUMNS, "statistic_unit", *_SHARED),
}
NAME = "verdicts.parquet"
#: The column that has "cells" or "claims".
KIND = "item"
SCHEMA = pa.schema(
    [
        (column, _TYPES.get(column, _TEXT))
        for column in dict.fromkeys([KIND, *COLUMNS["cells"], *COLUMNS["claims"]])
    ]
)
Rows = Iterable[Mapping[str, Any]]
#: The primary engine if the paper's family did not run.
DEFAULT = "ns3"
#: What is counted, with its words on a page.
WHAT = {"printed": "printed numbers", "trace": "statistics of published traces", "claims": "claims"}
#: All studies, each on its primary engine.
ALL_STUDIES = ""
#: The table of all counts.
COUNTS = "counts.csv"
COUNT_COLUMNS = (
    *("study", "engine", "what", "total", "tested"),
    *(word.replace(" ", "_") for word in Verdict),
    *("compared", "outside"),
)


def write_verdicts(folder: Path, cells: Rows, claims: Rows) -> None:
    """Write the rows of cells and claims as a typed table, with the digits of CSV files."""
    judged = [
        {KIND: kind} | {column: _plain(row[column]) for column in COLUMNS[kind]}
        for kind, rows in (("cells", cells), ("claims", claims))
        for row in rows
    ]
    tables.write_parquet(pa.Table.from_pylist(judged, SCHEMA), folder / NAME)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{tables.DIGITS}g}")
    return value


def read_verdicts(folder: Path, kind: str) -> list[Judged]:
    """Return the rows of `read_table`."""
    rows: list[Judged] = read_table(folder, kind).to_pylist()
    return rows


def read_table(folder: Path, kind: str = "") -> pa.Table:
    """Return the "cells" or "claims" of a folder's typed table, or all of it.

    InputError: it is missing, damaged, of another version, or has an unknown verdict.
    """
    path = folder / NAME
    table = tables.read_parquet(path)
    # Earlier versions have further columns.
    table = table.select([name for name in SCHEMA.names if name in table.column_names])
    if table.schema != SCHEMA:
        raise InputError(f"{path}: made by another version; {REMEDY}")
    if unknown := set(table["verdict"].to_pylist()) - set(Verdict):
        raise InputError(f"{path}: verdict {min(unknown)!r} is unknown; {REMEDY}")
    codes = [FORMER_REASON_CODES.get(code, code) for code in table["reason_code"].to_pylist()]
    column = table.column_names.index("reason_code")
    table = table.set_column(column, SCHEMA.field("reason_code"), pa.array(codes, _TEXT))
    return table.filter(pc.equal(table[KIND], kind)).select(list(COLUMNS[kind])) if kind else table


def merge_verdicts(folders: Sequence[Path], primary: Mapping[str, str], out_dir: Path) -> None:
    """Join the typed tables of studies, in the given order, and write the CSV files and counts."""
    tables.write_parquet(pa.concat_tables(map(read_table, folders)), out_dir / NAME)
    for kind, columns in (("cells", tables.CELL_COLUMNS), ("claims", tables.CLAIM_COLUMNS)):
        rows = read_table(out_dir, kind).select(list(columns)).to_pylist()
        tables.write_table(out_dir / f"{kind}.csv", rows, columns)
    cells, claims = (read_verdicts(out_dir, kind) for kind in COLUMNS)
    tables.write_table(out_dir / COUNTS, count_rows(cells, claims, primary), COUNT_COLUMNS)


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


def engine_coverage(design: Iterable[Mapping[str, str]]) -> dict[str, EngineCoverage]:
    """Return the coverage of each engine, in the order of the design's rows."""
    refusals: dict[str, dict[tuple[str, str], str]] = {}
    for row in design:
        refusal = "" if is_supported(row) else row["reason"]
        refusals.setdefault(row["engine"], {})[row["experiment"], row["point"]] = refusal
    found = {}
    for engine, answers in refusals.items():
        reasons = [reason for reason in answers.values() if reason]
        ran, once = len(answers) - len(reasons), tuple(dict.fromkeys(reasons))
        found[engine] = EngineCoverage(engine, ran, len(answers), once)
    return found


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
    found = {}
    for study in studies:
        design = tables.read_rows(data / "design" / f"{study}.csv", tables.DESIGN_COLUMNS)
        original = load_study(root, study).original_system.engine
        found[study] = primary_engine(original, engine_coverage(design)).engine
    return found


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
        found = Counter(words)
        self.by_verdict = {verdict: found[verdict] for verdict in Verdict}
        self.total = found.total()
        self.tested = self.total - self.by_verdict[Verdict.NOT_TESTABLE]

    def share(self, word: str) -> Share:
        """Return how many of those tested are of the verdict `word`."""
        return Share(self.by_verdict[Verdict(word)], self.tested)


class Numbers(Tally):
    """Verdicts on numbers, their tables, and how many lie outside the central 95 % of our runs.

    A trace is a table, and its flows are the table's rows.
    """

    def __init__(self, rows: Iterable[Judged]) -> None:
        rows = list(rows)
        super().__init__(row["verdict"] for row in rows)
        self.tables = len({(row["study"], row["table"]) for row in rows})
        self.rows = len({(row["study"], row["table"], row["row"]) for row in rows})
        #: How many are numbers of one published run; the others have a tolerance.
        self.of_one_run = sum(row["accepted_margin"] is None for row in rows)
        compared = [row["compatible"] for row in rows if row["compatible"] is not None]
        self.outside = Share(compared.count(False), len(compared))
        #: How many chance would put outside if the published runs were runs of ours.
        self.outside_by_chance = (1 - CENTRAL[1] + CENTRAL[0]) * len(compared)


def tallies(cells: Iterable[Judged], claims: Iterable[Judged]) -> dict[str, Tally]:
    """Count rows of the verdict table, of one engine for each study, by what is counted."""
    cells = list(cells)
    return {
        "printed": Numbers(row for row in cells if row["kind"] == "printed"),
        "trace": Numbers(row for row in cells if row["kind"] == "trace"),
        "claims": Tally(row["verdict"] for row in claims if row["counted"]),
    }


def count_rows(
    cells: Sequence[Judged], claims: Sequence[Judged], primary: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of counts.csv: each study on each engine, then all on their `primary` one."""
    engines = {row["engine"] for row in (*cells, *claims)} - {""}
    counted = [
        (study, engine, {study: engine}) for study in sorted(primary) for engine in sorted(engines)
    ]
    for study, engine, chosen in [*counted, (ALL_STUDIES, "", primary)]:
        # Rows without an engine belong to every engine.
        own_cells, own_claims = (
            [r for r in rows if r["study"] in chosen and r["engine"] in ("", chosen[r["study"]])]
            for rows in (cells, claims)
        )
        for what, tally in tallies(own_cells, own_claims).items():
            if tally.total:
                yield {
                    **{"study": study, "engine": engine, "what": what},
                    **{"total": tally.total, "tested": tally.tested},
                    **{word.replace(" ", "_"): n for word, n in tally.by_verdict.items()},
                    **{"compared": tally.outside.whole, "outside": tally.outside.part},
                }
