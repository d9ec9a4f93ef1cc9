"""Seals: the hashes of what was made, so that nothing damaged is run, or shown, unnoticed.

A program that was cut short crashes; one in which a byte has changed may give other numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from replication.errors import InputError
from replication.files import write_text

NAME = "seal.sha256"
#: What a compiler leaves beside a program decides nothing any more.
_LEFT_BEHIND = (".o", ".d")


def seal(folder: Path) -> None:
    """Write the hashes of the files of a built program, a kernel or a report beside them."""
    lines = [f"{sha256}  {name}\n" for name, sha256 in _hashes(folder).items()]
    write_text(folder / NAME, "".join(lines))


def check_seal(folder: Path) -> None:
    """Require that the files in `folder` are what they were when it was sealed, if it was.

    Raises
    ------
    InputError
        One of them is gone or has changed; the message says what to do.
    """
    for name in _broken(folder):
        raise InputError(
            f"{folder / name}: is not what was built (damaged?): remove data/reproduced/engines "
            "and run again"
        )


def check_kernels(cache: Path) -> Iterator[str]:
    """Remove damaged kernels from the cache and seal those that are new; yield what was done.

    The engine's build makes a kernel anew that is not there.
    """
    for kernel in sorted(cache.glob("*/linux")):
        folder = kernel.parent
        if not (folder / NAME).is_file():
            seal(folder)
        elif _broken(folder):
            for name in (kernel.name, NAME):
                (folder / name).unlink()
            yield f"linux: the kernel in {folder} was damaged: removed, to be built anew"


def whole_or_unsealed(folder: Path) -> Path:
    """Return the path of a folder's seal, which is removed if the seal is broken.

    A rule with that output then runs again; nothing else is touched.
    """
    path = folder / NAME
    if _broken(folder):
        path.unlink()
    return path


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that decides what runs, or is shown."""
    return {
        path.relative_to(folder).as_posix(): _sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix not in _LEFT_BEHIND
        and not path.name.startswith(".")
        and path.name != NAME
    }


def _broken(folder: Path) -> list[str]:
    """Return the sealed files of `folder` that are gone or have changed; none if it has no seal."""
    path = folder / NAME
    if not path.is_file():
        return []
    lines = [
        line.split("  ", 1)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    if not lines:
        return [NAME]
    return [line[-1] for line in lines if _sha256(folder / line[-1]) != line[0]]


def _sha256(path: Path) -> str:
    """Return the hash of a file; empty where there is none that can be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
