"""The pipeline, which the rules read: configuration, plan, file names, how to start engines."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, Self

from replication.design.config import (
    Config,
    Paths,
    Sensitivity,
    chosen_engines,
    explanations_path,
    load_config,
    load_sensitivity,
    load_study,
    load_tier,
    study_files,
    study_ids,
)
from replication.design.design import Batch
from replication.design.input_hashes import rule_code
from replication.design.notebook_names import lecture_names
from replication.design.plan import Plan, load_plan
from replication.engines.catalogue import ENGINES, find_package, kernels_to_build, package_warning
from replication.engines.ns3 import NS3_VERSION
from replication.metrics.trace_source import traces_hash
from replication.simulate.runtime import (
    Launch,
    find_image,
    find_inside,
    program_in_image,
)
from replication.study.errors import InputError
from replication.study.files import sha256_of
from replication.study.study import REGIONS_TABLE, Study

#: Memory to gather the tables of a batch, in MiB.
_GATHER_MB = 1024
#: Measured CPU seconds: to judge and show a study, to compile ns-3's program, to build a kernel.
_STUDY_COST_S, _NS3_PROGRAM_COST_S, _KERNEL_COST_S = 40.0, 25.0, 600.0


@dataclass(frozen=True)
class Start:
    """How engines are started; `inside` is the source hash of the image of the whole workflow."""

    root: Path
    config: Config
    inside: str | None = None
    paths: Paths = field(default_factory=Paths)

    @property
    def is_native(self) -> bool:
        """Whether programs are built here and run without a container."""
        return self.config.runtime == "native" and self.inside is None

    @functools.cached_property
    def _identity(self) -> Callable[[str], tuple[str, Path]]:
        """A function that returns fingerprint and program of an engine; every job asks for it."""

        @functools.cache
        def identify(name: str) -> tuple[str, Path]:
            engine = self.config.engine(name)
            return engine.fingerprint(self.root), engine.program(self.root, self.paths.data)

        return identify

    def fingerprint(self, engine: str) -> str:
        """Return the fingerprint of an engine's version and sources."""
        return self._identity(engine)[0]

    def listed_version(self, engine: str) -> str:
        """Return the version in an engine's results, if its generation is listed."""
        return self.config.engine(engine).listed_version(self.root)

    def image(self, engine: str) -> str:
        """Return the id of an engine's image, for a container runtime."""
        return find_image(self.root, self.config.runtime, engine)

    def program(self, engine: str) -> Path:
        """Return the path of an engine's program."""
        if self.inside is not None:
            return program_in_image(engine)
        return self._identity(engine)[1]

    def program_of(self, engine: str) -> list[Path]:
        """Return the program that must be built for an engine; none if images contain it."""
        return [self.program(engine)] if self.is_native else []

    def package(self, engine: str) -> dict[str, Any] | None:
        """Return the Debian package that an engine's results depend on, if any."""
        return find_package(self.root, engine) if self.is_native else None

    def place(self, engine: str) -> str:
        """Return the suffix that distinguishes an engine's runs in an image from native ones."""
        if self.is_native:
            return ""
        if self.inside is not None:
            return f"@inside-{self.inside}"
        return f"@{self.config.runtime}-{self.image(engine)[7:19]}"

    def store_of(self, engine: str) -> Path:
        """Return the store of an engine's runs, which no other image or version shares."""
        name = f"{engine}-{self.fingerprint(engine)}{self.place(engine)}"
        return self.paths.data / "store" / name

    def machine(self, engine: str) -> dict[str, Any]:
        """Return how an engine is started, as plain data for a rule's parameter."""
        native = self.config.runtime == "native"
        image = f"source:{self.inside}" if self.inside else None
        launch = Launch(
            runtime=self.config.runtime,
            engine=engine,
            program=str(self.program(engine)) if native else None,
            image=image if native else self.image(engine),
            store=str(self.store_of(engine)),
            ns3_version=self.config.ns3_version,
            memory_bytes=self.config.memory_limit_bytes,
            time_s=self.config.time_limit_s,
        )
        return vars(launch)


@dataclass(frozen=True, kw_only=True)
class Pipeline(Start):
    """Everything that the rules read."""

    engines: list[str]
    plan: Plan
    sensitivity: Sensitivity

    @classmethod
    def load(cls, root: Path, overrides: dict[str, Any], deployment: Iterable[Enum] = ()) -> Self:
        """Check the configuration and the chosen studies, and plan the run.

        `deployment` is Snakemake's `--sdm`. InputError names what is wrong or missing.
        """
        config = load_config(root / "configs" / "config.yaml", overrides)
        start = Start(root, config, find_inside(root, deployment))
        if start.inside is not None and config.runtime != "native":
            raise InputError(
                f"runtime: {config.runtime} cannot start containers in the image that the workflow "
                "runs in: use native"
            )
        engines = chosen_engines(root, config, start.inside is not None)
        names = study_ids(root) if config.studies == "all" else sorted(config.studies)
        # A batch's name has the hash of the code that gathers its tables, because Snakemake ignores
        # changed parameters of a rule whose `ancient` input, the design, is made again.
        gathers = rule_code(root, "simulate", "simulate_batch")
        named = {
            engine: f"{start.fingerprint(engine)}+{gathers}{start.place(engine)}"
            for engine in engines
        }
        return cls(
            **{field.name: getattr(start, field.name) for field in fields(start)},
            engines=engines,
            plan=load_plan(root, config, names, named),
            sensitivity=load_sensitivity(root),
        )

    @property
    def studies(self) -> list[str]:
        """Ids of the chosen studies."""
        return list(self.plan.studies)

    @functools.cached_property
    def documents(self) -> dict[str, Study]:
        """The chosen studies by their ids, which take longer to read than the kept plan."""
        return {name: load_study(self.root, name) for name in self.studies}

    @functools.cached_property
    def batches(self) -> dict[str, Batch]:
        """Batches by id."""
        return {b.id: b for study in self.plan.studies.values() for b in study.batches}

    def batch_ids(self, *studies: str) -> list[str]:
        """Return the ids of studies' batches."""
        return [batch.id for study in studies for batch in self.plan.studies[study].batches]

    def runtime_min(self, batch: str) -> int:
        """Return a scheduler's time limit for a batch: twice its cost, and the limit of one run."""
        return math.ceil((2 * self.batches[batch].cost_s + self.config.time_limit_s) / 60)

    @property
    def memory_mb(self) -> int:
        """A scheduler's memory limit for a batch, in MiB."""
        return math.ceil(self.config.memory_limit_bytes / 2**20) + _GATHER_MB

    def explored_on(self, study: str) -> str:
        """Return the engine of a study's sensitivity analysis: the primary one if available."""
        own = self.plan.studies[study].original_engine
        return own if own in self.engines else self.sensitivity.engine

    @property
    def explained(self) -> list[str]:
        """Studies with possible causes, whose best explanation is searched."""
        return [one for one in self.studies if explanations_path(self.root, one).is_file()]

    def features(self, study: str) -> str:
        """Return a hash of the features that are computed when a study's runs are collected."""
        return self.plan.studies[study].features

    @functools.cached_property
    def traced(self) -> list[str]:
        """Ids of the chosen studies with published traces."""
        return [name for name, study in self.plan.studies.items() if study.has_traces]

    @property
    def traces(self) -> str:
        """Hash of the raw traces; empty without any."""
        return traces_hash(self.root, self.traced)

    def executed(self) -> list[Path]:
        """Return the paths of the report's executed notebooks."""
        names = lecture_names(self.studies)
        for study, planned in self.plan.studies.items():
            names += [f"{study}.{notebook}" for notebook in planned.notebooks]
        return [self.paths.executed / f"{name}.ipynb" for name in names]

    @property
    def runs_live(self) -> bool:
        """Whether notebooks can run the engine ns3 themselves, in the same version."""
        is_pinned = self.config.ns3_version == NS3_VERSION
        return "ns3" in self.engines and self.config.runtime == "native" and is_pinned

    @property
    def lectures_run_live(self) -> bool:
        """Whether lectures of no single study run it: 10 s of CPU each, so not in quick tiers."""
        return self.runs_live and load_tier(self.root, self.config.tier).levels == "all"

    @property
    def live_program(self) -> list[Path]:
        """The program that notebooks run."""
        return self.program_of("ns3") if self.runs_live else []

    @property
    def shown(self) -> str:
        """Hash of optional results, which the report shows but does not wait for."""
        explored = [*self.paths.sensitivity.glob("*/*.csv"), *self.paths.regions.glob("*/*.json")]
        tables = [self.paths.data / REGIONS_TABLE, *Path("data").glob("*.csv")]
        return self.content(*sorted([*explored, *tables]))

    def code_of(self, rooms: str, script: str) -> str:
        """Return a rule's parameter that reruns it when its code changes."""
        return rule_code(self.root, rooms, script)

    @staticmethod
    def content(*paths: Path | str) -> str:
        """Return a hash of those files that exist: a rule's parameter that reruns it."""
        return sha256_of(*map(Path, paths))[:16]

    def study_hash(self, *studies: str) -> str:
        """Return a hash of the files of studies and of their published numbers."""
        published = [self.paths.published / f"{study}.csv" for study in studies]
        return self.content(*self.study_files(*studies), *published)

    @staticmethod
    def study_files(*studies: str) -> list[str]:
        """Return the files of studies, below the project's folder."""
        return [path.as_posix() for study in studies for path in study_files(Path(), study)]

    @property
    def settings(self) -> dict[str, Any]:
        """Configuration and engines of the run, for its provenance."""
        is_native = self.config.runtime == "native"
        engines: dict[str, dict[str, Any]] = {}
        for name in self.engines:
            engine = self.config.engine(name)
            engines[name] = {"version": engine.version, "fingerprint": self.fingerprint(name)}
            if found := self.package(name):
                engines[name]["package"] = found
            # In an image the workflow runs the image's program.
            if self.is_native and (own := engine.own_program(self.root)):
                engines[name]["installed"] = {"build": own.build, "as_pinned": own.as_pinned}
        return {
            "config": self.config.model_dump(mode="json"),
            "engines": engines,
            "images": {} if is_native else {name: self.image(name) for name in self.engines},
            "studies": self.studies,
        }

    @property
    def stores(self) -> dict[str, Path]:
        """Store of each engine."""
        return {engine: self.store_of(engine) for engine in self.engines}

    def summary(self) -> list[str]:
        """Return lines on the tier, the engines, the runs of each study, and the expected cost."""
        tier = load_tier(self.root, self.config.tier)
        engines = f"engines: {', '.join(self.engines)}"
        others = " and ".join(name for name in ENGINES if name not in self.engines)
        if others and self.config.engines == "available":
            engines += f" (not installed: {others}; `make engines` installs and builds them)"
        warnings = [package_warning(self.package(engine)) for engine in self.engines]
        return [
            f"tier {tier.id}: {tier.title}",
            engines,
            *(f"warning: {warning}" for warning in warnings if warning),
            *self.plan.summary(self.stores),
            self._other_costs(),
        ]

    def _other_costs(self) -> str:
        costs = {"judging, notebooks and pages": _STUDY_COST_S * len(self.studies)}
        if "ns3" in self.engines and any(not path.is_file() for path in self.program_of("ns3")):
            costs["compiling the program of ns3"] = _NS3_PROGRAM_COST_S
        if "linux" in self.engines and self.is_native:
            for hz in kernels_to_build(self.root, self.plan.timer_hz()):
                costs[f"building the kernel of {hz} Hz"] = _KERNEL_COST_S
        parts = ", ".join(f"{what} ({cost_s / 60:.1f})" for what, cost_s in costs.items())
        return f"other work: about {sum(costs.values()) / 60:.1f} CPU minutes: {parts}"
