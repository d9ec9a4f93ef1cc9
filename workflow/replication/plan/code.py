"""Code: hashes over the package's rooms, by which a rule knows that what it runs has changed."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from replication.study.files import sha256_of

PACKAGE = Path(__file__).parents[1]
_SIMULATE = ("study", "engines", "run", "plan/config.py", "plan/design.py")
_JUDGE = (*_SIMULATE, "measure", "judge", "compare", "sensitivity")
_REPORT = ("report", "lab.py")


class Code(NamedTuple):
    """What decides runs and their tables, verdicts, and notebooks and pages."""

    simulate: str
    judge: str
    report: str


@functools.cache
def code() -> Code:
    """Return the hashes of the code that is here."""
    return Code(_hash(_SIMULATE), _hash(_JUDGE), _hash(_REPORT))


def _hash(rooms: Iterable[str]) -> str:
    paths = [path for room in rooms for path in (PACKAGE / room, *(PACKAGE / room).rglob("*"))]
    return sha256_of(*(p for p in paths if p.is_file() and p.suffix != ".pyc"))[:16]
