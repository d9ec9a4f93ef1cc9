"""An explanation's files: their names, columns and words, and what they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.input_hashes import file_hash, input_hashes, is_same, value_hash
from replication.study.published import published_path
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
    settings = value_hash(load_sensitivity(root).explanation.model_dump(mode="json"))
    published = file_hash(published_path(root, name))
    atoms = file_hash(explanations_path(root, name))
    return input_hashes(root, name, engine, published=published, settings=settings, atoms=atoms)


def is_current(root: Path, name: str, document: Mapping[str, Any]) -> bool:
    """Return whether an account was made from the files as they are now."""
    then = document.get("made_from", {})
    engine = then.get("engine", "")
    return engine in ENGINES and is_same(then, made_from(root, name, engine))


def holding(verdicts: Mapping[str, str]) -> int:
    """Return how many claims hold."""
    return sum(verdict == Verdict.REPRODUCED for verdict in verdicts.values())
