"""Settings of a run and of the sensitivity analysis, and where their files are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from replication.engines.catalogue import ENGINES, available, chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION, PREFIX, Ns3Version
from replication.study.errors import InputError, describe
from replication.study.files import read_model, read_yaml
from replication.study.model import Document, EngineName, Identifier, PositiveSeconds, Text
from replication.study.parameter import unique
from replication.study.study import ALL_STUDIES, Study

STUDIES = Path("configs") / "studies"
RuntimeName = Literal["native", "docker", "podman"]


class Replicates(Document):
    """How many replicates a run gets whose expected cost lies below `cost_below_s`."""

    cost_below_s: PositiveSeconds | None = None
    count: Annotated[int, Field(ge=1, le=1000)]


class Tier(Document):
    """How much is run: see configs/README.md."""

    id: Identifier
    """The file's name."""
    title: str
    """Shown in the plan and the report."""
    replicates: Annotated[list[Replicates], Field(min_length=1)]
    """List of `{cost_below_s, count}`: a run whose expected cost is below `cost_below_s` (s of
    CPU) gets `count` replicates; the first step that fits counts, and the last has no
    `cost_below_s`. Intervals need three."""
    heeds_replicates_at_least: bool = False
    """Whether an experiment's own `replicates_at_least` raises their number."""
    levels: Literal["all", "quick"]
    """`all`, or `quick`: of each factor the levels flagged `quick: true`; without flags all of
    up to three levels, else the first, middle and last."""
    cost_limit_s: PositiveSeconds | None = None
    """A run whose expected CPU time is higher is shortened in proportion, but not below what the
    windows and counts of published numbers need."""
    batch_cost_s: PositiveSeconds
    """Runs are packed into jobs of about this CPU time; doubled until a plan has at most 400."""

    @model_validator(mode="after")
    def _last_is_open(self) -> Tier:
        *steps, last = (r.cost_below_s for r in self.replicates)
        if None in steps or last is not None:
            raise ValueError("replicates: every step but the last needs cost_below_s")
        return self

    def replicates_for(self, cost_s: float) -> int:
        """Return the number of replicates of a run that costs `cost_s` seconds of CPU."""
        steps = self.replicates
        return next(r.count for r in steps if r.cost_below_s is None or cost_s < r.cost_below_s)


class Config(Document):
    """configs/config.yaml, with what the command line sets laid over it."""

    tier: Identifier = "paper"
    """Name of a file in `tiers/`."""
    engines: Annotated[list[EngineName], Field(min_length=1)] | Literal["available"] = "available"
    """Simulators or kernels to run on: a list of `ns3`, `ns2` and `linux`, or `available` for
    those that are there (`replicate engines` tells; `make engines` gets the others)."""
    ns3_version: Ns3Version = NS3_VERSION
    """Which ns-3 the engine `ns3` is: a pinned wheel (`3.39.post2`, `3.44.post0`), or the release
    that is installed in the folder `NS3_PREFIX` (`3.37` for Debian 12's package `libns3-dev`)."""
    studies: Annotated[list[Identifier], Field(min_length=1)] | Literal["all"] = "all"
    """`all`, or a list of study ids."""
    runtime: RuntimeName = "native"
    """What starts the simulators: `native`, or in [containers](../containers/README.md)
    by `docker` or `podman`."""
    batch_cost_s: PositiveSeconds | None = None
    """Runs are packed into jobs of about this CPU time; without it the tier's.
    [Clusters](../workflow/profiles/README.md) want minutes."""
    memory_limit_bytes: Annotated[int, Field(ge=2**28)] = 4 * 2**30
    """Most memory of one run; at least 268435456."""
    time_limit_s: PositiveSeconds = 1800.0
    """Longest wall time of one run."""

    @model_validator(mode="after")
    def _unique_names(self) -> Config:
        if self.engines != "available":
            unique(self.engines, "engine")
        if self.studies != "all":
            unique(self.studies, "study")
        return self

    def engine(self, name: str) -> Engine:
        """Return an engine by its name, in the version chosen."""
        return chosen_engine(name, self.ns3_version)


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

    def engine_note(self, study: Study, engine: str) -> str:
        """Return why `engine` is not the paper's own system; empty if it is."""
        own = study.original_system.engine
        return "" if engine == own else f"{own}, the paper's own system, was not there."


def listed(text: str) -> list[str]:
    """Return the names in a comma-separated text; blanks around them are no part of them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def load_config(path: Path, overrides: dict[str, Any] | None = None) -> Config:
    """Read `path` and lay `overrides` over it; InputError names an unknown key or a wrong value."""
    document = read_yaml(path) or {}
    if not isinstance(document, dict):
        raise InputError(f"{path}: must be a mapping of configuration keys")
    document |= overrides or {}
    if isinstance(version := document.get("ns3_version"), float):
        # YAML and Snakemake's command line read 3.37 as a number.
        document["ns3_version"] = str(version)
    for key, word in (("studies", ALL_STUDIES), ("engines", "available")):
        if key in document:
            document[key] = _listed(key, document[key], word)
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None


def _listed(key: str, value: Any, word: str) -> Any:
    """Return a list of names, written as a list or between commas; `word` alone stays a text."""
    names = listed(value) if isinstance(value, str) else value
    names = names if isinstance(names, list) else [names]
    if any(isinstance(name, bool | float) for name in names):
        # What YAML and Snakemake's command line make of 1e5 and true; 2001 is its text again.
        raise InputError(
            f"{key}: {value!r} was read as a number or truth value; put the name in quotes in a "
            f"file, or a comma behind it on the command line ({key}=name,)"
        )
    names = [str(name) if isinstance(name, int) else name for name in names]
    return word if names == [word] else names


def chosen_engines(root: Path, config: Config, inside: bool = False) -> list[str]:
    """Return the engines to run: those asked for, or all that are there; else InputError."""
    if inside or config.runtime != "native":
        if config.ns3_version != NS3_VERSION or os.environ.get(PREFIX):
            raise InputError(
                f"ns3_version: images hold the wheel {NS3_VERSION} alone: run another ns-3 "
                f"natively, or leave ns3_version and {PREFIX} out"
            )
        return list(ENGINES if config.engines == "available" else config.engines)
    if config.engines == "available":
        return available(root, config.ns3_version)
    for name in config.engines:
        config.engine(name).require(root)
    return list(config.engines)


def load_tier(root: Path, name: str) -> Tier:
    """Read configs/tiers/<name>.yaml."""
    path = root / "configs" / "tiers" / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in path.parent.glob("*.yaml")))
        raise InputError(f"tier: {name!r} is unknown; there are {known}")
    return read_model(path, Tier)


def load_sensitivity(root: Path) -> Sensitivity:
    """Read configs/sensitivity.yaml; InputError names each wrong field."""
    return read_model(root / "configs" / "sensitivity.yaml", Sensitivity)


def explanations_path(root: Path, study: str) -> Path:
    """Return the file of a study's causes."""
    return root / "configs" / "explanations" / f"{study}.yaml"


def study_ids(root: Path) -> list[str]:
    """Return the ids of all studies, the folders of configs/studies, sorted."""
    return sorted(path.parent.name for path in (root / STUDIES).glob("*/study.yaml"))


def study_files(root: Path, name: str) -> list[Path]:
    """Return the files of a study: its set-up, and its claims and changes where they are apart."""
    files = [root / STUDIES / name / part for part in ("study.yaml", "claims.yaml", "changes.yaml")]
    return [path for path in files if path.is_file()]


def load_study(root: Path, name: str) -> Study:
    """Read the files of configs/studies/<name>; the study's id must be the folder's name."""
    known = study_ids(root)
    if name not in known:
        raise InputError(f"studies: {name!r} is unknown; there are {', '.join(known)}")
    first, *more = study_files(root, name)
    study = read_model(first, Study, *more)
    if study.id != name:
        raise InputError(f"{first}: id is {study.id!r} but the folder is named {name!r}")
    return study


@dataclass(frozen=True)
class Paths:
    """Folders and files of the workflow, relative to the project's folder."""

    data: Path = Path("data/reproduced")
    totals: Path = Path("data/reproduced/progress_totals.json")
    sensitivity: Path = Path("data/reproduced/sensitivity")
    regions: Path = Path("data/reproduced/regions")
    published: Path = Path("data/published")
    notebooks: Path = Path("notebooks")
    executed: Path = Path("reports/notebooks")
    html: Path = Path("reports/html")
