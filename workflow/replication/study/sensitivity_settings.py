"""Settings of the sensitivity analysis: configs/sensitivity.yaml, set before any run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.files import read_model
from replication.study.model import Document, EngineName, Identifier, PositiveSeconds, Text
from replication.study.study import Study


class Scale(Document):
    """How much of each design point is run; runs are whole."""

    levels: Literal["all", "quick"]
    """`all` or `quick`."""
    experiments: Annotated[list[Identifier], Field(min_length=1)] | None = None
    """Those that are run; without it all are."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time of all its runs; points of the space-filling design beyond it are left
    out. The defaults and single changes always run."""
    reason: Text
    """What that costs in validity; shown in the report."""


class StudyScale(Document):
    """The scale of a study's exploration."""

    exploration: Scale
    """A scale."""
    held: dict[str, Text] = {}
    """Assumption to reason: these stay at their defaults."""


class ExplanationSearch(Document):
    """How far the search for each study's best explanation looks (`explore.search`)."""

    paired_causes: Annotated[int, Field(ge=2, le=40)]
    """Best causes of which all pairs are tried."""
    depth: Annotated[int, Field(ge=1, le=12)]
    """Most causes of a configuration."""
    finalists: Annotated[int, Field(ge=1, le=50)]
    """Configurations that are scored on all that may be seen."""
    permutations: Annotated[int, Field(ge=20, le=10000)]
    """Of the permutation test."""


class Sensitivity(Document):
    """configs/sensitivity.yaml; see configs/README.md."""

    engine: EngineName
    """On which a study runs whose paper's own engine is not there (not installed, or not among
    `engines` of config.yaml)."""
    points: Annotated[int, Field(ge=8, le=4096)]
    """Design points a study."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    """Of the space-filling design."""
    replicates_at_default: Annotated[int, Field(ge=3, le=100)]
    """Seeds at the defaults, to know what chance does."""
    explanation: ExplanationSearch
    """The search for explanations."""
    studies: dict[Identifier, StudyScale]
    """Study to its scales."""
    other_studies: StudyScale
    """The scales of all other studies."""

    @model_validator(mode="after")
    def _power_of_two(self) -> Sensitivity:
        if self.points & (self.points - 1):
            raise ValueError(f"points: a Sobol' design needs a power of two, not {self.points}")
        return self

    def of(self, study: str) -> StudyScale:
        """Return a study's scale; a study without one of its own has that of `other_studies`."""
        return self.studies.get(study, self.other_studies)

    def engine_of(self, study: Study, available: Collection[str]) -> str:
        """Return the engine that a study is explored on: the paper's own, if it is `available`."""
        own = study.original_system.engine
        return own if own in available else self.engine

    def engine_note(self, study: Study, engine: str) -> str:
        """Return why `engine` is not the paper's own system; empty if it is."""
        own = study.original_system.engine
        return "" if engine == own else f"{own}, the paper's own system, was not there."


def load_sensitivity(root: Path) -> Sensitivity:
    """Read configs/sensitivity.yaml; InputError names each wrong field."""
    return read_model(root / "configs" / "sensitivity.yaml", Sensitivity)


def explanations_path(root: Path, study: str) -> Path:
    """Return the file of a study's causes."""
    return root / "configs" / "explanations" / f"{study}.yaml"
