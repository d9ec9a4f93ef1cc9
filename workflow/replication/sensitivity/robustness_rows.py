"""The tables of a study's sensitivity as text, for the report and the notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.sensitivity.analysis import TABLES
from replication.study.storage.seal import open_sealed
from replication.study.storage.table import Row, read_rows


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
