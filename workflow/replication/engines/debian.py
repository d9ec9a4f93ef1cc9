"""Debian's packages that decide an engine's results: what is here, and what the lock names."""

from __future__ import annotations

import functools
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from replication.study.errors import InputError
from replication.study.files import file_sha256, read_yaml
from replication.study.model import Document

#: The lock, below the project's folder.
LOCK = Path("workflow/engines/packages.yaml")
#: Once a process: a kernel's sources are large.
_sha256 = functools.cache(file_sha256)


class LockedPackage(Document):
    """A package as the released results had it; `file` is the one that decides results."""

    package: str
    version: str
    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class FoundPackage:
    """A package of this machine beside the lock."""

    package: str
    version: str
    sha256: str
    locked_version: str
    as_locked: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)

    def warning(self) -> str:
        """Return what to say of it; nothing if it is the locked one."""
        return "" if self.as_locked else package_warning(self.as_dict())


def package_warning(found: dict[str, Any]) -> str:
    """Return how the package of a provenance differs from the lock; nothing if it does not."""
    if not found or found.get("as_locked"):
        return ""
    here, locked = str(found.get("version")), str(found.get("locked_version"))
    named = "another build of it" if here == locked else locked
    return (
        f"Debian's {found.get('package')} is {here} here, the lock has {named}: "
        "results may differ from the released ones"
    )


def find_package(root: Path, engine: str) -> FoundPackage | None:
    """Return the package that decides an engine's results here; None if none does or is there.

    Raises
    ------
    InputError
        The lock is not there or malformed.
    """
    locked = _lock(root / LOCK).get(engine)
    if locked is None:
        return None
    # Where the build of the linux engine looks too.
    elsewhere = os.environ.get("REPLICATION_LINUX_SOURCE") if engine == "linux" else None
    file = Path(elsewhere or locked.file)
    if not file.is_file():
        return None
    sha256 = _sha256(file)
    as_locked = sha256 == locked.sha256
    version = locked.version if as_locked else _installed(locked.package)
    return FoundPackage(locked.package, version, sha256, locked.version, as_locked)


def other_build(root: Path, engine: str) -> str:
    """Return the hash of a package's file; nothing if it is the locked one or not there.

    What is made with the locked one is called as if there were no other.
    """
    found = find_package(root, engine)
    return "" if found is None or found.as_locked else found.sha256


@functools.cache
def _lock(path: Path) -> dict[str, LockedPackage]:
    document = read_yaml(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: must map engines to packages")
    return {name: LockedPackage.model_validate(entry) for name, entry in document.items()}


def _installed(package: str) -> str:
    """Return the version that Debian's package manager has; `unknown` where it has none."""
    command = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
