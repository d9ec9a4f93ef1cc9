"""Where results are: a folder, a packed release, or the release of a commit or tag."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from replication.report.archive import folder_of, unpack
from replication.study.errors import InputError

#: Of a commit, where its release is.
RELEASED = "data/release/results.tar.xz"
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/~^-]*")


@contextlib.contextmanager
def results_at(root: Path, name: str) -> Iterator[Path]:
    """Give the folder of the results that `name` means, which may be gone after the block.

    Parameters
    ----------
    root
        The project's folder.
    name
        A folder of results or of a clone, a packed release, or a tag or commit.

    Raises
    ------
    InputError
        It is none of these; the message says what was looked for.
    """
    path = Path(name)
    for folder in (path, path / "data" / "reproduced"):
        if (folder / "cells.csv").is_file():
            yield folder
            return
    packed = next((p for p in (path, path / RELEASED) if p.is_file()), None)
    content = packed.read_bytes() if packed else _of_commit(root, name)
    try:
        files = unpack(content)
    except InputError as error:
        raise InputError(f"{name}: its release {error}") from None
    with folder_of(files) as folder:
        yield folder


def _of_commit(root: Path, name: str) -> bytes:
    problem = (
        f"{name}: is no folder with cells.csv, no packed release and no commit or tag with "
        f"{RELEASED}; give one of them, such as data/reproduced or HEAD"
    )
    if not _REVISION.fullmatch(name):
        raise InputError(problem)
    command = ["git", "-C", str(root), "show", f"{name}:{RELEASED}"]
    try:
        found = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        raise InputError(f"{problem} (git is not installed)") from None
    if found.returncode:
        raise InputError(problem)
    return found.stdout
