"""The tables of a study's sensitivity: columns, origin, and rows as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.engines.catalogue import ENGINES
from replication.plan.input_hashes import file_hash, input_hashes, is_same
from replication.sensitivity.robustness import CELL_ROBUSTNESS, CLAIM_ROBUSTNESS, POINT_COLUMNS
from replication.sensitivity.spread import SPREAD_TABLE
from replication.study.files import read_json
from replication.study.published import published_path
from replication.study.sensitivity_settings import SETTINGS
from replication.study.storage.table import Row, read_frame, read_rows

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
        return cls(study=study, spread=read_frame(spread_path, dtype=types), **parts)


def made_from(root: Path, name: str, engine: str) -> dict[str, str]:
    """Return the hashes of all that a study's sensitivity hangs on, as the files are now."""
    published, settings = file_hash(published_path(root, name)), file_hash(root / SETTINGS)
    return input_hashes(root, name, engine, published=published, settings=settings)


def read_made_from(folder: Path) -> dict[str, str]:
    """Return what the tables in `folder` were made from; empty where that is not known."""
    path = folder / MADE_FROM
    found: dict[str, str] = read_json(path) if path.is_file() else {}
    return found


def is_current(root: Path, folder: Path, name: str) -> bool:
    """Return whether the tables in `folder` were made from the files as they are now."""
    document = read_made_from(folder)
    engine = document.get("engine", "")
    return engine in ENGINES and is_same(document, made_from(root, name, engine))
