"""Input hashes: what optional results were made from, compared with the files as they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.config import study_files
from replication.study.files import sha256_of
from replication.study.scenario import canonical_json


def value_hash(value: Any) -> str:
    """Return the hash of what JSON can hold."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's name and content; empty where there is none."""
    return sha256_of(path) if path.is_file() else ""


def input_hashes(root: Path, study: str, engine: str, **more: str) -> dict[str, str]:
    """Return the hashes of a study's files and of its engine as they are now, and `more`."""
    return {
        "study": sha256_of(*study_files(root, study)),
        "engine": engine,
        "engine_fingerprint": ENGINES[engine].fingerprint(root),
        **more,
    }


def is_same(then: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether nothing has changed since `then`; what was not kept then says nothing."""
    return bool(then) and {**now, **then} == now
