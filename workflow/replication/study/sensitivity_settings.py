"""Settings of the sensitivity analysis: configs/sensitivity.yaml, set before any run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.files import read_model
from replication.study.model import (
    Document,
    EngineName,
    Identifier,
    PositiveSeconds,
    Probability,
    Text,
)
from replication.study.study import Study

SETTINGS = Path("configs/sensitivity.yaml")
EXPLANATIONS = Path("configs/explanations")


class Scale(Document):
    """How much of each design point is run; `reason` says what that costs in validity.

    `cpu_budget_s` is the expected CPU time of all design points together: where it does not allow
    all of them, the last of the space-filling design are left out; runs are whole. `experiments`
    are those that are run; without it all are.
    """

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
    """The scale of a study's exploration.

    `held` has the assumptions that stay at their defaults, each with the reason. `engine` is one
    other than the paper's own, for `engine_reason`.
    """

    exploration: Scale
    """A scale."""
    engine: EngineName | None = None
    """Another engine than the paper's own."""
    engine_reason: Text | None = None
    """Why; goes with `engine`."""
    held: dict[str, Text] = {}
    """Assumption to reason: these stay at their defaults."""

    @model_validator(mode="after")
    def _reasoned(self) -> StudyScale:
        if (self.engine is None) != (self.engine_reason is None):
            raise ValueError("engine and engine_reason: give both or neither")
        return self


class Importance(Document):
    """The regression whose permutation importances are reported (extremely randomised trees)."""

    trees: Annotated[int, Field(ge=10, le=1000)]
    """Trees of the regression."""
    repeats: Annotated[int, Field(ge=2, le=100)]
    """Permutations of each assumption."""
    folds: Annotated[int, Field(ge=2, le=20)]
    """Folds of the cross-validation."""
    least_r2: Probability
    """Below it nothing is called important."""


class ClaimBits(Document):
    """What a claim's verdict takes to tell, in bits, where claims are what is explained."""

    direction_only: Annotated[float, Field(gt=0)]
    """Of one whose direction alone holds."""
    not_reproduced: Annotated[float, Field(gt=0)]
    """Of one that does not hold, or cannot be tested."""


class ExplanationSearch(Document):
    """The search for each study's best explanation (`sensitivity.search`)."""

    timer_hz: Annotated[list[Literal[100, 250, 300, 1000]], Field(min_length=1)]
    """Timer frequencies of kernels for configurations; `make explain` builds them.
    In a container there is the default one alone."""
    winsorised_log_ratio: Annotated[float, Field(gt=0)]
    """A number that is further off counts as if it were so far off."""
    least_error: Annotated[float, Field(gt=0, le=1)]
    """Share of a column's mean tolerance below which deviations are not told apart."""
    claim_bits: ClaimBits
    """What verdicts take."""
    beam: Annotated[int, Field(ge=1, le=20)]
    """Configurations that are followed at a time."""
    paired_causes: Annotated[int, Field(ge=2, le=40)]
    """Best causes of which all pairs are tried."""
    cheap_pairs_share: Annotated[float, Field(ge=0, le=0.5)]
    """Share of the budget for pairs of any other causes, the cheapest first."""
    levels_extended: Annotated[int, Field(ge=1, le=20)]
    """Levels of a cause that are tried beside others: its best alone."""
    depth: Annotated[int, Field(ge=1, le=12)]
    """Most causes of a configuration."""
    trials: Annotated[int, Field(ge=0, le=500)]
    """Settings of the chosen causes' numbers that the sampler tries (TPE; Optuna)."""
    finalists: Annotated[int, Field(ge=1, le=50)]
    """Configurations that are scored on all that may be seen."""
    replicates_of_ranks: Annotated[int, Field(ge=3, le=999)]
    """Replicates by whose range a number is judged whose tolerance is a rank."""
    permutations: Annotated[int, Field(ge=20, le=10000)]
    """Of the null."""
    significance: Annotated[float, Field(gt=0, lt=0.5)]
    """Chance of as good a score by nothing from which on nothing is called found."""
    equally_good_bits: Annotated[float, Field(gt=0)]
    """Configurations that are no worse than the best by this are listed beside it."""
    held_out_at_least: Probability
    """Share of the share inside of the cells seen that those held out must reach."""
    never_together_expected: Annotated[float, Field(gt=0)]
    """Two claims never hold together if by their own shares this many runs should have both."""


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
    robust_at_least: Probability
    """Share of designs from which on a claim is robust."""
    fragile_at_most: Probability
    """Share of designs up to which a claim is fragile."""
    importance: Importance
    """The regression that says which assumption matters."""
    explanation: ExplanationSearch
    """The search for explanations."""
    studies: dict[Identifier, StudyScale]
    """Study to its scales."""
    other_studies: StudyScale
    """The scales of all other studies."""

    @model_validator(mode="after")
    def _consistent(self) -> Sensitivity:
        if self.points & (self.points - 1):
            raise ValueError(f"points: a Sobol' design needs a power of two, not {self.points}")
        if self.fragile_at_most >= self.robust_at_least:
            raise ValueError("fragile_at_most must be below robust_at_least")
        return self

    def of(self, study: str) -> StudyScale:
        """Return a study's scale; a study without one of its own has that of `other_studies`."""
        return self.studies.get(study, self.other_studies)

    def engine_of(self, study: Study, available: Collection[str]) -> str:
        """Return the engine that a study is explored on.

        The one that its scale names or else the paper's own, if it is among those that are
        `available`; the settings' `engine` stands in for one that is not.
        """
        wanted = self.of(study.id).engine or study.original_system.engine
        return wanted if wanted in available else self.engine

    def engine_note(self, study: Study, engine: str) -> str:
        """Return why `engine` is not the paper's own system; empty if it is."""
        own = study.original_system.engine
        if engine == own:
            return ""
        scale = self.of(study.id)
        if engine == scale.engine and scale.engine_reason:
            return scale.engine_reason
        return f"{own}, the paper's own system, was not there."


def load_sensitivity(root: Path) -> Sensitivity:
    """Read configs/sensitivity.yaml; InputError names each wrong field."""
    return read_model(root / SETTINGS, Sensitivity)


def explanations_path(root: Path, study: str) -> Path:
    """Return the file of a study's causes."""
    return root / EXPLANATIONS / f"{study}.yaml"
