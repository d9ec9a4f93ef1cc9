"""An explanation's files: their names, columns and words, and what they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.stamp import changed, file_hash, study_files, value_hash
from replication.study.sensitivity_settings import explanations_path, load_sensitivity
from replication.study.verdict import Verdict

#: The account's file.
NAME = "explanation.json"
#: What the best that was found is called.
EXPLANATION = "explanation"
BEST_GUESS = "best guess"
NONE_FOUND = "none found"

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


def made_from(root: Path, name: str, engine: str) -> dict[str, str]:
    """Return the hashes of all that a study's explanation hangs on, as the files are now."""
    files = study_files(root, name)
    return {
        "study": file_hash(files["study_sha256"]),
        "published": file_hash(files["published_sha256"]),
        "settings": value_hash(load_sensitivity(root).explanation.model_dump(mode="json")),
        "atoms": file_hash(explanations_path(root, name)),
        "engine": engine,
        "engine_fingerprint": ENGINES[engine].fingerprint(root),
    }


def is_current(root: Path, name: str, document: Mapping[str, Any]) -> bool:
    """Return whether an account was made from the files as they are now."""
    then = document.get("made_from", {})
    engine = then.get("engine", "")
    return engine in ENGINES and not changed(then, made_from(root, name, engine))


def holding(verdicts: Mapping[str, str]) -> int:
    """Return how many claims hold."""
    return sum(verdict == Verdict.REPRODUCED for verdict in verdicts.values())
