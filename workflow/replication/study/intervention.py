"""Interventions: a stated cause, switched on and off, and the change that this must make."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from replication.base.model import Document, EngineName, Identifier, Label, Text
from replication.base.position import read_model
from replication.study.claim_model import Condition, RatioTest, ValueTest
from replication.study.parameter import unique
from replication.study.variation import Variation

CONFIG = Path("configs/interventions.yaml")


class Configuration(Document):
    """One side of an intervention."""

    words: Label
    """The configuration in words."""
    set: Variation | None = None
    """A variation of the study; without it the study's defaults."""


class Intervention(Document):
    """A cause that a text states, and the experiment that tests it.

    Both configurations are judged as a claim is: the effect must be there with the cause, and gone
    without it.
    """

    id: Identifier
    sentence: Text
    """The cause, in a sentence that the report shows where the intervention holds."""
    place: Label
    """Where the report states the cause."""
    study: Identifier
    """The study whose points are run."""
    engine: EngineName
    """Engine of the runs."""
    replicates: Annotated[int, Field(ge=1, le=100)] = 1
    """Runs of each point and configuration."""
    both: Variation | None = None
    """A variation of the study in both configurations."""
    with_cause: Configuration
    """The configuration with the cause."""
    without_cause: Configuration
    """The configuration without the cause."""
    test: Annotated[ValueTest | RatioTest, Field(discriminator="kind")]
    """The statistic, as in a claim; `expect` is the condition with the cause."""
    gone: Condition
    """Condition on the same statistic without the cause."""

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        if not isinstance(self.test.expect, Condition):
            raise ValueError(f"intervention {self.id}: expect must have at_least or at_most")
        if self.with_cause.set == self.without_cause.set:
            raise ValueError(f"intervention {self.id}: both configurations are the same")
        return self


class Interventions(Document):
    """The document configs/interventions.yaml."""

    schema_version: Literal[1]
    interventions: list[Intervention]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        unique([tested.id for tested in self.interventions], "intervention", "interventions")
        return self


def load_interventions(root: Path) -> list[Intervention]:
    """Return the interventions of the project in `root`; none without the file."""
    path = root / CONFIG
    return read_model(path, Interventions).interventions if path.is_file() else []
