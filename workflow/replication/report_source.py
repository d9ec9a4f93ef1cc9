"""What the report is made from: verdicts, audit, design, provenance and studies, read and checked.

CSV fields stay the text that stands in the file, so that what the page shows can be held against
what a reader downloads.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from replication.config import load_study
from replication.errors import InputError
from replication.report_verdict import verdict
from replication.study import Study
from replication.table import (
    AUDIT_COLUMNS,
    CELL_COLUMNS,
    CLAIM_COLUMNS,
    DESIGN_COLUMNS,
    PUBLISHED_COLUMNS,
)

Row = dict[str, str]

#: What the audit calls a check that found nothing.
CONSISTENT = "consistent"


@dataclass(frozen=True)
class Source:
    """All that the report reads, except the series behind the charts.

    Attributes
    ----------
    root, data
        The project's folder and the folder of reproduced results.
    cells, claims, audit
        Rows of the merged evaluation files.
    provenance
        The document provenance.json.
    """

    root: Path
    data: Path
    cells: list[Row]
    claims: list[Row]
    audit: list[Row]
    provenance: dict[str, Any]

    @classmethod
    def load(cls, root: Path, data: Path) -> Source:
        """Read the merged files of `data`.

        Raises
        ------
        InputError
            A file is missing or malformed; the message names it and what to run.
        """
        source = cls(
            root=root,
            data=data,
            cells=read_rows(data / "cells.csv", CELL_COLUMNS),
            claims=read_rows(data / "claims.csv", CLAIM_COLUMNS),
            audit=read_rows(data / "audit.csv", AUDIT_COLUMNS),
            provenance=_read_provenance(data / "provenance.json"),
        )
        for name, rows in (("cells.csv", source.cells), ("claims.csv", source.claims)):
            for row in rows:
                try:
                    verdict(row["verdict"])
                except InputError as error:
                    raise InputError(f"{data / name}: {error}") from None
        return source

    @cached_property
    def studies(self) -> dict[str, Study]:
        """Return the studies that the evaluation holds, by id, in the order of their names."""
        rows = (*self.cells, *self.claims, *self.audit)
        names = sorted({row["study"] for row in rows})
        return {name: load_study(self.root, name) for name in names}

    @cached_property
    def engines(self) -> list[str]:
        """Return the engines that verdicts were reached on, sorted."""
        rows = (*self.cells, *self.claims)
        return sorted({row["engine"] for row in rows if row["engine"]})

    def headline_engine(self, study: Study) -> str:
        """Return the engine whose verdicts stand for the study: the paper's own if it was run."""
        rows = (*self.cells, *self.claims)
        ran = sorted({r["engine"] for r in rows if r["study"] == study.id and r["engine"]})
        own = study.original_system.engine
        return own if own in ran or not ran else ran[0]

    def headline(self, rows: list[Row]) -> list[Row]:
        """Return the rows that stand for their study: those of its headline engine."""
        chosen = {name: self.headline_engine(study) for name, study in self.studies.items()}
        return [row for row in rows if row["engine"] in ("", chosen[row["study"]])]

    @cached_property
    def findings(self) -> list[Row]:
        """Return the audit without the checks that found nothing, impossible values first."""
        found = [row for row in self.audit if row["finding"] not in ("", CONSISTENT)]
        return sorted(found, key=lambda row: row["finding"] != "impossible")

    def design(self, study: str) -> list[Row]:
        """Return the rows of a study's design; none where it was not kept."""
        path = self.data / "design" / f"{study}.csv"
        return read_rows(path, DESIGN_COLUMNS) if path.is_file() else []

    def published(self, study: str) -> dict[tuple[str, str, str], Row]:
        """Return the transcribed numbers of a paper by (table, row, column)."""
        path = self.root / "data" / "published" / f"{study}.csv"
        rows = read_rows(path, PUBLISHED_COLUMNS) if path.is_file() else []
        return {(row["table"], row["row"], row["column"]): row for row in rows}


def of_study(rows: list[Row], study: str) -> list[Row]:
    """Return the rows of one study."""
    return [row for row in rows if row["study"] == study]


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a CSV file that must have `columns`, every field as text."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, restval="")
            missing = [name for name in columns if name not in (reader.fieldnames or [])]
            if missing:
                raise InputError(
                    f"{path}: has no column {', '.join(missing)}; delete it and run again"
                )
            return [{name: row[name] or "" for name in reader.fieldnames or []} for row in reader]
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); run the evaluation first"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CSV table: {error}") from None


def _read_provenance(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); run the workflow first"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}; delete it and run again") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: must be a JSON object; delete it and run again")
    return document
