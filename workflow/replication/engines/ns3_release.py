"""What the release notes of ns-3 say of TCP, release by release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from replication.engines.ns3_version import minor
from replication.study.errors import InputError, describe
from replication.study.files import read_yaml
from replication.study.model import Document


class Change(Document):
    """One entry of the release notes.

    `touches` names congestion controls, or `sack`, `prr` or `all`; `reference` is the notes' own
    number of an issue (#) or merge request (!).
    """

    release: Annotated[str, Field(pattern=r"^3\.\d+$")]
    reference: Annotated[str, Field(pattern=r"^[#!]\d+$")]
    change: str
    touches: Annotated[list[str], Field(min_length=1)]


def read_changes(root: Path) -> list[Change]:
    """Return the documented changes, oldest release first."""
    path = root / "workflow" / "engines" / "ns3_releases.yaml"
    try:
        return TypeAdapter(list[Change]).validate_python(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None


def between(changes: list[Change], older: str, newer: str) -> list[Change]:
    """Return the changes that came after version `older`, up to version `newer`."""
    return [c for c in changes if minor(older) < minor(c.release) <= minor(newer)]
