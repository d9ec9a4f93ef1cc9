"""Input hashes: what optional results were made from, compared with the files as they are now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replication.study.files import sha256_of
from replication.study.published import published_path
from replication.study.scenario import canonical_json

#: Name of a thing to its hash.
Stamp = Mapping[str, str]
#: Stands for what is not there.
GONE = ""
#: How many names a message gives.
NAMED = 5


def value_hash(value: Any) -> str:
    """Return the hash of what JSON can hold."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's name and content, or `GONE`."""
    return sha256_of(path) if path.is_file() else GONE


def study_files(root: Path, study: str) -> dict[str, Path]:
    """Return the files of a study, by the key of their hashes in the provenance."""
    return {
        "study_sha256": root / "configs" / "studies" / f"{study}.yaml",
        "published_sha256": published_path(root, study),
    }


def changed(then: Stamp, now: Stamp) -> list[str]:
    """Return the names whose hashes differ, in the order in which they are first met."""
    return [name for name in {**then, **now} if then.get(name, GONE) != now.get(name, GONE)]


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Return the first few names, and how many more there are."""
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return separator.join([*names[:NAMED], *more])


def write_stamp(stamp: Stamp) -> str:
    """Return the text that keeps a stamp."""
    return json.dumps(stamp, indent=2, sort_keys=True) + "\n"


def parse_stamp(text: str) -> dict[str, str]:
    """Return the stamp that a text keeps; empty if it keeps none."""
    try:
        return {str(name): str(known) for name, known in json.loads(text).items()}
    except (ValueError, AttributeError):
        return {}
