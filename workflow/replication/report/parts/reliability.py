"""Reliability: what was tried against the project, and how it ended, as counted by the harness.

The tests in tests/faults and `make load` write here what they really did; nothing is typed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from replication.study.errors import InputError, describe
from replication.study.files import read_text
from replication.study.model import Document, Identifier

Number = Annotated[int, Field(ge=0)]
Measure = Annotated[float, Field(ge=0)]


class Trials(Document):
    """One kind of fault or bad input: how often it was tried, and how each trial ended.

    `right`: the result of an undisturbed run, to the byte. `refused`: a clear error with its
    remedy, no result. What is neither is `wrong`: silently wrong or stale, a traceback, a crash, a
    hang, a file outside the project. Sessions that died are in none of the three.
    """

    id: Identifier
    part: Literal["faults", "alterations", "inputs", "supply"]
    title: str
    tried: Number
    right: Number
    refused: Number
    wrong: Number
    note: str = ""


class Load(Document):
    """One large or long run: what was asked, and what it took; times in wall seconds."""

    id: Identifier
    title: str
    scenarios: Number
    flows: Number
    simulated_s: Measure
    wall_s: Measure
    cpu_s: Measure
    peak_memory_bytes: Number
    compared: str = ""
    compared_memory_bytes: Number | None = None
    memory_limit_bytes: Number
    held: bool


class Reliability(Document):
    """Everything that the harness counted; one entry an id, the latest one."""

    schema_version: Literal[1] = 1
    trials: list[Trials] = []
    loads: list[Load] = []

    def of(self, part: str) -> list[Trials]:
        """Return the trials of one part."""
        return [entry for entry in self.trials if entry.part == part]


def read_reliability(path: Path) -> Reliability | None:
    """Return what `path` holds, or None where there is no such file.

    Raises
    ------
    InputError
        The file is not what the harness wrote.
    """
    if not path.is_file():
        return None
    text = read_text(path)
    try:
        return Reliability.model_validate_json(text)
    except ValidationError as error:
        raise InputError(
            f"{path}: {describe(error)}; remove it and run `make test-faults`"
        ) from None


#: What the parts are called where a person reads them.
PARTS = {
    "faults": "Faults",
    "alterations": "Altered data",
    "inputs": "Bad input",
    "supply": "What is used and shipped",
}


def megabytes(count: int | None) -> str:
    """Return bytes as a reader has them; nothing for none."""
    return "" if count is None else f"{count / 1e6:.1f} MB"
