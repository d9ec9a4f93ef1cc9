"""Two results set side by side: where each is, and the table of what differs.

Results are a folder, a clone, or the release of a commit or tag.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from replication.compare.verdicts import BEYOND, CELL, CLAIM, COLUMNS, Compared, counted
from replication.report.pages.source import read_provenance
from replication.report.released import PROVENANCE, RELEASED
from replication.study.errors import InputError
from replication.study.storage.table import write_table


def write_differences(
    found: Sequence[Compared], path: Path, tiers: Sequence[str] = ()
) -> list[str]:
    """Write the table of what moved, verdicts first; return the counts, and that `tiers` differ."""
    moved = [item for item in found if item.has_moved]
    moved.sort(key=lambda item: (not item.verdict_moved, item.beyond_noise != BEYOND))
    counts = [counted(kind, found) for kind in (CELL, CLAIM)]
    if all(tiers) and len(set(tiers)) > 1:
        what = "their runs differ in points, replicates and length"
        counts.insert(0, f"The tiers differ, {' and '.join(tiers)}: {what}.")
    write_table(path, (item.row() for item in moved), COLUMNS)
    return counts


def tier_of(folder: Path) -> str:
    """Return the tier of the results in a folder; empty where it is not said."""
    path = folder / PROVENANCE
    return str(read_provenance(path)["tier"]["id"]) if path.is_file() else ""


_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/~^-]*")


@contextlib.contextmanager
def results_at(root: Path, name: str) -> Iterator[Path]:
    """Give the folder with the tables that `name` means, which may be gone after the block.

    It is a folder of results, of released data or of a clone, or a tag or commit of `root`;
    InputError if it is none of these.
    """
    path = Path(name)
    for folder in (path, path / "data" / "reproduced", path / RELEASED):
        if (folder / "cells.csv").is_file():
            yield folder
            return
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(fileobj=io.BytesIO(_of_commit(root, name))) as archive:
            archive.extractall(work, filter="data")
        yield Path(work) / RELEASED


def _of_commit(root: Path, name: str) -> bytes:
    problem = (
        f"{name}: is no folder with cells.csv, and no commit or tag with {RELEASED}/cells.csv; "
        "give one of them, such as data/reproduced or HEAD"
    )
    if not _REVISION.fullmatch(name):
        raise InputError(problem)
    files = [f"{RELEASED}/{file}" for file in ("cells.csv", "claims.csv", PROVENANCE)]
    command = ["git", "-C", str(root), "archive", name, *files]
    try:
        found = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        raise InputError(f"{problem} (git is not installed)") from None
    if found.returncode:
        raise InputError(problem)
    return found.stdout
