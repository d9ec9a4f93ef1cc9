"""Settings of a run and of the sensitivity analysis, and the paths of input files."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from replication.base.errors import InputError, check_known, describe, problems
from replication.base.files import read_yaml
from replication.base.model import Document, EngineName, Identifier, PositiveSeconds, Text
from replication.base.position import describe_at, located, read_model
from replication.engines.catalogue import ENGINES, chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION, PREFIX, Ns3Version
from replication.study.parameter import unique
from replication.study.study import ALL_STUDIES, Study, check_run_count
from replication.study.verdict import SettingsChange, SettingsChanges

STUDIES = Path("configs") / "studies"
SENSITIVITY = Path("configs") / "sensitivity.yaml"
SETTINGS_CHANGES = Path("configs") / "changes.yaml"


class Replicates(Document):
    """Number of replicates of a run that costs less than `cost_below_s`."""

    cost_below_s: PositiveSeconds | None = None
    count: Annotated[int, Field(ge=1, le=1000)]


class Extent(Document):
    """How much of a study is run; keys as in a [tier](#tiers)."""

    replicates: Annotated[list[Replicates], Field(min_length=1)]
    """List of `{cost_below_s, count}`: a run whose expected cost is below `cost_below_s` (s of
    CPU) has `count` replicates, 1 or at least 5. The first entry that fits counts; the last has no
    `cost_below_s`."""
    heeds_replicates_at_least: bool = False
    """Whether an experiment's `replicates_at_least` applies."""
    levels: Literal["all", "quick"]
    """`all`, or `quick`: the levels of each factor with `quick: true`; if there are none, all of
    up to three levels, else the first, middle and last."""
    cost_limit_s: PositiveSeconds | None = None
    """Limit of a run's CPU time. Longer runs are shortened, but not below the windows and counts
    of published numbers."""

    every_engine: bool = False
    """Whether studies with `primary_only` run on all engines, too."""
    textbook: Literal["none", "primary", "all"] | list[Identifier] = "none"
    """Where studies with two set-ups run the textbook set-up too: on `all` engines, on their
    `primary` engine (on the first one if that is not run), or, as a list, those studies on their
    primary engine. `replicates_at_least` does not apply to it."""

    @model_validator(mode="after")
    def _last_is_open(self) -> Self:
        *steps, last = (r.cost_below_s for r in self.replicates)
        if None in steps or last is not None:
            text = "replicates: every step but the last needs cost_below_s"
            raise InputError(text, ("replicates",))
        return self

    def replicates_for(self, cost_s: float) -> int:
        """Return the number of replicates of a run that costs `cost_s` seconds of CPU."""
        steps = self.replicates
        return next(r.count for r in steps if r.cost_below_s is None or cost_s < r.cost_below_s)


class Tier(Extent):
    """A tier: how much is run (configs/README.md)."""

    id: Identifier
    """Name of the file."""
    title: str
    """Title in the plan and the report."""
    batch_cost_s: PositiveSeconds
    """CPU time of a job of several scenarios; doubled until a plan has at most 400 jobs."""
    live_experiments: bool = True
    """Whether the report's notebooks run their live experiments. JupyterLab always does."""

    @model_validator(mode="after")
    def _decides(self) -> Self:
        for number, step in enumerate(self.replicates):
            check_run_count(step.count, ("replicates", number, "count"))
        return self


class Config(Document):
    """configs/config.yaml, which the command line may override."""

    tier: Identifier = "paper"
    """Name of a file in `tiers/`."""
    engines: Annotated[list[EngineName], Field(min_length=1)] | Literal["available"] = "available"
    """Engines to run on: a list of `ns3`, `ns2` and `linux`, or `available` for those that are
    installed (`replicate engines` lists them; `make engines` installs the others)."""
    ns3_version: Ns3Version = NS3_VERSION
    """Version of ns-3: a pinned wheel (`3.39.post2`, `3.44.post0`), or the release that is
    installed in the folder `NS3_PREFIX` (`3.37` for Debian 12's package `libns3-dev`)."""
    studies: Annotated[list[Identifier], Field(min_length=1)] | Literal["all"] = "all"
    """`all`, or a list of study ids."""
    runtime: Literal["native", "docker", "podman"] = "native"
    """How simulators run: `native`, or in [containers](../containers/README.md) of `docker` or
    `podman`."""
    batch_cost_s: PositiveSeconds | None = None
    """CPU time of a job, which runs several scenarios; by default that of the tier.
    [Clusters](../workflow/profiles/README.md) need minutes."""
    memory_limit_bytes: Annotated[int, Field(ge=2**28)] = 4 * 2**30
    """Memory limit of one run, at least 268435456."""
    time_limit_s: PositiveSeconds = 1800.0
    """Limit of one run's wall time."""

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        if self.engines != "available":
            unique(self.engines, "engine", "engines")
        if self.studies != "all":
            unique(self.studies, "study", "studies")
        return self

    def engine(self, name: str) -> Engine:
        """Return an engine by its name, in the configured version."""
        return chosen_engine(name, self.ns3_version)


class Scale(Document):
    """How much of each design point is run, with runs of full length."""

    levels: Literal["all", "quick"]
    """`all` or `quick`, as in a tier."""
    experiments: Annotated[list[Identifier], Field(min_length=1)] | None = None
    """Experiments to run; without it all."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time of all runs. Points of the space-filling design beyond it are left out; the
    defaults and single changes always run."""
    reason: Text
    """Effect on the validity of the results; shown in the report."""


class Reading(Document):
    """A named reading of what a paper does not print, which is run and judged like its results."""

    title: Text
    """Its name in the report."""
    values: dict[str, JsonValue]
    """Map of assumption to value; empty for the defaults."""
    reason: Text
    """Why a reader may want to see it; shown in the report."""


class StudyScale(Document):
    """Scale of a study's sensitivity analysis."""

    exploration: Scale
    held: dict[str, Text] = {}
    """Map of assumption that stays at its default to the reason."""
    readings: list[Reading] = []
    """Readings that the report shows side by side. All points run, with `replicates_at_default`
    replicates, outside the budget."""

    @model_validator(mode="after")
    def _titles_differ(self) -> Self:
        unique((reading.title for reading in self.readings), "reading", "readings")
        return self


class ExplanationSearch(Document):
    """Extent of the search for each study's best explanation (`explore.search`)."""

    paired_causes: Annotated[int, Field(ge=2, le=40)]
    """Number of best causes whose pairs are all tried."""
    depth: Annotated[int, Field(ge=1, le=12)]
    """Most causes of a configuration."""
    finalists: Annotated[int, Field(ge=1, le=50)]
    """Number of configurations that are scored on all data that are not held out."""
    permutations: Annotated[int, Field(ge=20, le=10000)]
    """Number of permutations of the permutation test."""


class Sensitivity(Document):
    """configs/sensitivity.yaml (configs/README.md)."""

    engine: EngineName
    """Engine of studies whose primary engine is not installed, or not in `engines` of
    config.yaml."""
    points: Annotated[int, Field(ge=8, le=4096)]
    """Number of design points of a study."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    """Seed of the space-filling design."""
    replicates_at_default: Annotated[int, Field(ge=3, le=100)]
    """Number of seeds at the defaults, for run-to-run variation."""
    explanation: ExplanationSearch
    """The search for explanations."""
    studies: dict[Identifier, StudyScale]
    """Map of study to its scale."""
    other_studies: StudyScale
    """The scale of all other studies."""

    @model_validator(mode="after")
    def _power_of_two(self) -> Self:
        if self.points & (self.points - 1):
            text = f"points: a Sobol' design needs a power of two, not {self.points}"
            raise InputError(text, ("points",))
        return self

    def of(self, study: str) -> StudyScale:
        """Return a study's scale, by default that of `other_studies`."""
        return self.studies.get(study, self.other_studies)


def listed(text: str) -> list[str]:
    """Return the names in a comma-separated text."""
    return [part.strip() for part in text.split(",") if part.strip()]


def load_config(path: Path, overrides: dict[str, Any] | None = None) -> Config:
    """Read `path` with some keys overridden; InputError names an unknown key or a wrong value."""
    document = read_yaml(path)
    document = {} if document is None else document
    if not isinstance(document, dict):
        raise InputError(f"{path}, line 1: must have keys, such as tier: paper")
    document |= overrides or {}
    if isinstance(version := document.get("ns3_version"), float):
        # YAML and Snakemake's command line read 3.37 as a number.
        document["ns3_version"] = str(version)
    for key, word in (("studies", ALL_STUDIES), ("engines", "available")):
        if isinstance(names := document.get(key), str):
            names = listed(names)
        if names is not None:
            document[key] = word if names == [word] else names
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        place = problems(error, document)[0].place
        if place and place[0] in (overrides or {}):
            raise InputError(f"command line: {describe(error, document)}") from None
        raise InputError(describe_at([path], error, document)) from None


def chosen_engines(root: Path, config: Config, inside: bool = False) -> list[str]:
    """Return the configured or all available engines; InputError if one cannot be run."""
    if inside or config.runtime != "native":
        if config.ns3_version != NS3_VERSION or os.environ.get(PREFIX):
            raise InputError(
                f"ns3_version: images contain only the wheel {NS3_VERSION}: run another ns-3 "
                f"natively, or remove ns3_version and unset {PREFIX}"
            )
        return list(ENGINES if config.engines == "available" else config.engines)
    if config.engines == "available":
        engines = [config.engine(name) for name in ENGINES]
        return [
            engine.name for engine in engines if not engine.missing(root) and engine.built(root)
        ]
    for name in config.engines:
        config.engine(name).require(root)
    return list(config.engines)


def load_tier(root: Path, name: str) -> Tier:
    """Read configs/tiers/<name>.yaml."""
    paths = {path.stem: path for path in (root / "configs" / "tiers").glob("*.yaml")}
    check_known("tier", [name], paths)
    return read_model(paths[name], Tier)


def load_sensitivity(root: Path) -> Sensitivity:
    """Read configs/sensitivity.yaml."""
    return read_model(root / SENSITIVITY, Sensitivity)


def load_settings_changes(root: Path) -> list[SettingsChange]:
    """Read configs/changes.yaml, changes to settings of no single study; none without the file."""
    path = root / SETTINGS_CHANGES
    return read_model(path, SettingsChanges).changes if path.is_file() else []


def explanations_path(root: Path, study: str) -> Path:
    """Return the file of a study's causes."""
    return root / "configs" / "explanations" / f"{study}.yaml"


def study_ids(root: Path) -> list[str]:
    """Return the ids of all studies, which are the folders of configs/studies."""
    return sorted(path.parent.name for path in (root / STUDIES).glob("*/study.yaml"))


def study_files(root: Path, name: str) -> list[Path]:
    """Return the files of a study: study.yaml, and claims.yaml and changes.yaml if they exist."""
    files = [root / STUDIES / name / part for part in ("study.yaml", "claims.yaml", "changes.yaml")]
    return [path for path in files if path.is_file()]


def load_study(root: Path, name: str) -> Study:
    """Read the study in the folder configs/studies/<name>."""
    study = _read_study(root, name)
    with located(*study_files(root, name)):
        study.check_present_rules()
    return study


def load_study_of(root: Path, data: Path, name: str) -> Study:
    """Read the study that the results in `data` were made from.

    That is the copy in a release, which today's rules may refuse, and the
    study in configs/studies for results made here.
    """
    is_kept = (data / STUDIES / name).is_dir()
    return _read_study(data, name) if is_kept else load_study(root, name)


def _read_study(root: Path, name: str) -> Study:
    check_known("studies", [name], study_ids(root))
    first, *more = study_files(root, name)
    study = read_model(first, Study, *more)
    with located(first, *more):
        if study.id != name:
            text = f"id is {study.id!r} but the folder is named {name!r}; rename one"
            raise InputError(text, ("id",))
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
