"""Seals: the hashes of what was built, so that a damaged program or kernel is never run.

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
    """Write the hashes of the files of a built program, or kernel, beside them."""
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


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that decides what runs."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
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
    lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    now = _hashes(folder)
    return [line[-1] for line in lines if now.get(line[-1]) != line[0]]
