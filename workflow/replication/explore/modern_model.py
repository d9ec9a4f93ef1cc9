"""Which studies are judged on a modern kernel, and with which substitutions."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from replication.design.config import Extent
from replication.study.model import Document, EngineName, Identifier, Text
from replication.study.position import read_model
from replication.study.variation import Variation

CONFIG = Path("configs/modern_kernel.yaml")


class Substituted(Document):
    """The substitutions in one study."""

    set: Variation | None = None
    """A variation of the study; nothing is changed without it."""
    reasons: Annotated[list[Text], Field(min_length=1)]
    """List: what is substituted, and why."""


class ModernKernel(Document):
    """configs/modern_kernel.yaml."""

    schema_version: Literal[1] = 1
    engine: EngineName
    """The engine with the modern stack."""
    tiers: dict[str, Extent]
    """Tier to how much it runs."""
    studies: Annotated[dict[Identifier, Substituted], Field(min_length=1)]
    """Study to its substitutions; only these studies are run."""


def load_modern(root: Path) -> ModernKernel:
    """Read configs/modern_kernel.yaml; InputError names each wrong field."""
    return read_model(root / CONFIG, ModernKernel)


def modern_studies(root: Path, studies: Collection[str], engines: Collection[str]) -> list[str]:
    """Return the studies that are judged on the modern kernel, if its engine is in `engines`."""
    modern = load_modern(root)
    return sorted(set(modern.studies) & set(studies)) if modern.engine in engines else []
