"""The tables of explanations, as /data has them for all studies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replication.study.storage.table import merge_tables

EXPLANATION_COLUMNS = (
    "study",
    "explanation",
    "word",
    "atoms",
    "bits",
    "null_p",
    "setups_tried",
    "cells",
    "inside_before",
    "inside_after",
    "unseen",
    "unseen_inside",
    "claims_before",
    "claims_after",
    "cpu_minutes",
)
EXPLAINED_COLUMNS = (
    "study",
    "table",
    "row",
    "column",
    "engine",
    "unit",
    "published",
    "reproduced_mean",
    "inside",
    "seen",
    "reason",
)
#: The tables of a study's folder, which are merged under the same names.
EXPLANATIONS = {"explanations": EXPLANATION_COLUMNS, "explained_cells": EXPLAINED_COLUMNS}


def merge_explanations(folders: Sequence[Path], data: Path) -> None:
    """Put the studies' tables together in `data`: explanations.csv and explained_cells.csv.

    Raises
    ------
    InputError
        A table is missing or of another version.
    """
    for name, columns in EXPLANATIONS.items():
        paths = [folder / f"{name}.csv" for folder in folders]
        merge_tables(paths, data / f"{name}.csv", columns)
