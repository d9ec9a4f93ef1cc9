"""The tables of a study's sensitivity: columns, origin, and rows as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.engines.catalogue import ENGINES
from replication.plan.stamp import changed, file_hash, parse_stamp, study_files
from replication.sensitivity.robustness import CELL_ROBUSTNESS, CLAIM_ROBUSTNESS, POINT_COLUMNS
from replication.sensitivity.spread import SPREAD_TABLE
from replication.study.sensitivity_settings import SETTINGS
from replication.study.storage.seal import open_sealed, read_sealed
from replication.study.storage.table import Row, read_rows

EFFECT_COLUMNS = (
    "study",
    "claim",
    "engine",
    "parameter",
    "method",
    "value",
    "before",
    "after",
    "importance",
    "deviation",
)
TABLES: dict[str, Sequence[str]] = {
    "points": POINT_COLUMNS,
    "claims": CLAIM_ROBUSTNESS,
    "cells": CELL_ROBUSTNESS,
    "effects": EFFECT_COLUMNS,
    "spread": SPREAD_TABLE,
}
MADE_FROM = "made_from.json"


@dataclass(frozen=True)
class RobustnessRows:
    """What `make sensitivity` found on one study; each table's columns are in `TABLES`."""

    study: str
    points: list[Row]
    claims: list[Row]
    cells: list[Row]
    effects: list[Row]
    spread: pd.DataFrame

    @classmethod
    def load(cls, folder: Path, study: str) -> RobustnessRows:
        """Read the tables in `folder`; InputError names what is missing or of another version."""
        spread_path = folder / "spread.csv"
        parts = {
            part: read_rows(folder / f"{part}.csv", columns) for part, columns in TABLES.items()
        }
        del parts["spread"]
        types = {"point": str, "experiment": str}
        return cls(study=study, spread=pd.read_csv(open_sealed(spread_path), dtype=types), **parts)


def made_from(root: Path, name: str, engine: str) -> dict[str, str]:
    """Return the hashes of all that a study's sensitivity hangs on, as the files are now."""
    files = study_files(root, name)
    return {
        "study": file_hash(files["study_sha256"]),
        "published": file_hash(files["published_sha256"]),
        "settings": file_hash(root / SETTINGS),
        "engine": engine,
        "engine_fingerprint": ENGINES[engine].fingerprint(root),
    }


def read_made_from(folder: Path) -> dict[str, str]:
    """Return what the tables in `folder` were made from; empty where that is not known."""
    path = folder / MADE_FROM
    return parse_stamp(read_sealed(path)) if path.is_file() else {}


def is_current(root: Path, folder: Path, name: str) -> bool:
    """Return whether the tables in `folder` were made from the files as they are now."""
    document = read_made_from(folder)
    engine = document.get("engine", "")
    return engine in ENGINES and not changed(document, made_from(root, name, engine))
