"""Origin: of which files, and of whose run, the results are that a report shows.

The provenance beside the results says it. A report of a mixture, or of other studies, numbers or
engines than those that are here, would show verdicts beside words that they do not belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.plan.config import load_config
from replication.study.errors import InputError
from replication.study.files import digest_of, sha256_of

#: What is true in the provenance of results that were released.
RELEASED = "released"
#: How many names a message gives.
NAMED = 5


def digests(data: Path, tables: list[Path]) -> dict[str, str]:
    """Return the SHA-256 of each table by its name below `data`."""
    return {path.relative_to(data).as_posix(): digest_of(path.read_bytes()) for path in tables}


def require_tables(data: Path, provenance: Mapping[str, Any]) -> None:
    """Require that the tables in `data` are those that the provenance tells of.

    Raises
    ------
    InputError
        A table is gone, or of another run; the message names it.
    """
    tables = provenance.get("tables") or {}
    others = [name for name, digest in tables.items() if _digest(data / name) != digest]
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
    stale = _changed(root, provenance)
    if stale:
        raise InputError(
            f"{data}: was made from another version of {listed(stale)}; run `make report`"
        )


def listed(names: list[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join(names[:NAMED] + more)


def _digest(path: Path) -> str | None:
    return digest_of(path.read_bytes()) if path.is_file() else None


def _changed(root: Path, provenance: Mapping[str, Any]) -> list[str]:
    """Return the studies' files and the engines that the results were not made from."""
    version = (provenance.get("config") or {}).get("ns3_version")
    given = {"ns3_version": version} if version else {}
    config = load_config(root / "configs" / "config.yaml", given)
    stale = []
    for study, known in (provenance.get("studies") or {}).items():
        for key, path in (
            ("study_sha256", root / "configs" / "studies" / f"{study}.yaml"),
            ("published_sha256", root / "data" / "published" / f"{study}.csv"),
        ):
            if not path.is_file() or known.get(key) != sha256_of(path):
                stale.append(str(path))
    for name, known in (provenance.get("engines") or {}).items():
        if name not in ENGINES or known.get("fingerprint") != config.engine(name).fingerprint(root):
            stale.append(f"engine {name}")
    return stale
