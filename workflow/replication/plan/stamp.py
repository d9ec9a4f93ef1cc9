"""Stamps: what something was made from, by name and hash, held against what is there now.

Results, releases and registrations each keep a stamp. All are compared here, so that
every message names what has changed and the command that makes the thing anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.config import load_config
from replication.study.errors import InputError
from replication.study.files import digest_of, sha256_of
from replication.study.published import published_path
from replication.study.scenario import canonical_json

#: Name of a thing to its hash.
Stamp = Mapping[str, str]
#: What is true in the provenance of results that were released.
RELEASED = "released"
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


def digests(data: Path, tables: list[Path]) -> dict[str, str]:
    """Return the SHA-256 of each table by its name below `data`, or `GONE`."""
    return {
        path.relative_to(data).as_posix(): digest_of(path.read_bytes()) if path.is_file() else GONE
        for path in tables
    }


def study_files(root: Path, study: str) -> dict[str, Path]:
    """Return the files of a study, by the key of their hashes in the provenance."""
    return {
        "study_sha256": root / "configs" / "studies" / f"{study}.yaml",
        "published_sha256": published_path(root, study),
    }


def changed(then: Stamp, now: Stamp) -> list[str]:
    """Return the names whose hashes differ, in the order in which they are first met."""
    return [name for name in {**then, **now} if then.get(name, GONE) != now.get(name, GONE)]


def require_same(where: str, then: Stamp, now: Stamp, remedy: str) -> None:
    """Require that nothing has changed.

    Raises
    ------
    InputError
        Something has; the message names `where`, what, and the remedy.
    """
    names = changed(then, now)
    if names:
        raise InputError(f"{where}: was made from another version of {listed(names)}; {remedy}")


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


def require_tables(data: Path, provenance: Mapping[str, Any]) -> None:
    """Require that the tables in `data` are those that the provenance tells of.

    A report of a mixture would show verdicts beside words that they do not belong to.

    Raises
    ------
    InputError
        A table is gone, or of another run; the message names it.
    """
    tables = provenance.get("tables") or {}
    others = changed(tables, digests(data, [data / name for name in tables]))
    if others or not tables:
        raise InputError(
            f"{data}: {listed(others) or 'provenance.json'}: gone, or not of the run that "
            "provenance.json tells of; run `make report`"
        )


def require_sources(root: Path, data: Path, provenance: Mapping[str, Any]) -> None:
    """Require that the results in `data` were made from the files that are in `root`.

    Raises
    ------
    InputError
        A study, its published numbers or an engine is another now; the message names them.
    """
    version = (provenance.get("config") or {}).get("ns3_version")
    given = {"ns3_version": version} if version else {}
    config = load_config(root / "configs" / "config.yaml", given)
    then: dict[str, str] = {}
    now: dict[str, str] = {}
    for study, known in (provenance.get("studies") or {}).items():
        for key, path in study_files(root, study).items():
            then[str(path)], now[str(path)] = str(known.get(key)), file_hash(path)
    for name, known in (provenance.get("engines") or {}).items():
        then[f"engine {name}"] = str(known.get("fingerprint"))
        now[f"engine {name}"] = config.engine(name).fingerprint(root) if name in ENGINES else GONE
    require_same(str(data), then, now, "run `make report`")
