"""Named variations: studies with other values on one engine, as `configs/<variation>.yaml` says."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from replication.base.model import Document, EngineName, Identifier, Text
from replication.base.position import read_model
from replication.design.config import Extent
from replication.study.variation import Variation

#: The variants of a modern kernel's network stack; what the stack lacks is substituted.
MODERN_KERNEL = "modern_kernel"
#: All named variations.
VARIATIONS = (MODERN_KERNEL,)


class VariedStudy(Document):
    """What a named variation changes in one study."""

    set: Variation | None = None
    """A variation of the study; nothing is changed without it."""
    reasons: Annotated[list[Text], Field(min_length=1)]
    """List: what is substituted, and why."""


class NamedVariation(Document):
    """A variation of several studies, whose claims are judged like those of the report."""

    schema_version: Literal[1] = 1
    engine: EngineName
    """The engine that runs it."""
    tiers: dict[str, Extent]
    """Tier to how much it runs."""
    studies: Annotated[dict[Identifier, VariedStudy], Field(min_length=1)]
    """Study to what is changed in it; only these studies are run."""


def variation_path(root: Path, variation: str) -> Path:
    """Return the file of a named variation."""
    return root / "configs" / f"{variation}.yaml"


def load_variation(root: Path, variation: str) -> NamedVariation:
    """Read a named variation; InputError names each wrong field."""
    return read_model(variation_path(root, variation), NamedVariation)


def variation_runs(root: Path, engines: Collection[str], studies: Collection[str]) -> list[str]:
    """Return `variation/study` of the named variations, on those of their engines in `engines`."""
    runs = []
    for variation in VARIATIONS:
        named = load_variation(root, variation)
        if named.engine in engines:
            runs += [f"{variation}/{name}" for name in sorted(set(named.studies) & set(studies))]
    return runs
