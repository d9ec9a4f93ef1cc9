"""Settings of the sensitivity analysis: configs/sensitivity.yaml, set before any run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.files import read_model
from replication.model import Document, Identifier, PositiveSeconds, Probability
from replication.study import EngineName, Text

SETTINGS = Path("configs/sensitivity.yaml")


class Scale(Document):
    """How much of each design point is run; `reason` says what that costs in validity.

    `cpu_budget_s` is the expected CPU time of all design points together: where it does not allow
    whole runs, the longest are shortened until it does. `experiments` are those that are run;
    without it all are.
    """

    levels: Literal["all", "quick"]
    experiments: Annotated[list[Identifier], Field(min_length=1)] | None = None
    cpu_budget_s: PositiveSeconds
    reason: Text


class StudyScale(Document):
    """The scale of a study's exploration and, where it has hypotheses, of their tests.

    `parameters` limits what is varied; without it every assumed parameter is.
    """

    exploration: Scale
    hypotheses: Scale
    parameters: Annotated[list[str], Field(min_length=1)] | None = None


class Importance(Document):
    """The regression whose permutation importances are reported (extremely randomised trees)."""

    trees: Annotated[int, Field(ge=10, le=1000)]
    repeats: Annotated[int, Field(ge=2, le=100)]
    folds: Annotated[int, Field(ge=2, le=20)]
    least_r2: Probability


class Sensitivity(Document):
    """configs/sensitivity.yaml; see configs/README.md."""

    engine: EngineName
    method: Literal["sobol", "latin_hypercube"]
    points: Annotated[int, Field(ge=8, le=4096)]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    replicates_at_default: Annotated[int, Field(ge=3, le=100)]
    jobs: Annotated[int, Field(ge=1, le=64)]
    robust_at_least: Probability
    fragile_at_most: Probability
    explained_at_least: Probability
    importance: Importance
    studies: dict[Identifier, StudyScale]
    other_studies: StudyScale

    @model_validator(mode="after")
    def _consistent(self) -> Sensitivity:
        if self.method == "sobol" and self.points & (self.points - 1):
            raise ValueError(f"points: a Sobol' design needs a power of two, not {self.points}")
        if self.fragile_at_most >= self.robust_at_least:
            raise ValueError("fragile_at_most must be below robust_at_least")
        return self

    def of(self, study: str) -> StudyScale:
        """Return a study's scale; a study without one of its own has that of `other_studies`."""
        return self.studies.get(study, self.other_studies)


def load_sensitivity(root: Path) -> Sensitivity:
    """Read configs/sensitivity.yaml; InputError names each wrong field."""
    return read_model(root / SETTINGS, Sensitivity)
