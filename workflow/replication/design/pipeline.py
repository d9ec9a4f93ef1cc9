"""The pipeline as the rules see it: configuration, plan, names of files, how to start engines."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

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
from replication.design.input_hashes import Code, code
from replication.design.plan import Plan, load_plan
from replication.engines.catalogue import (
    ENGINES,
    find_package,
    kernels_to_build,
    package_warning,
)
from replication.engines.input_file import write_inputs
from replication.engines.ns3 import NS3_VERSION
from replication.metrics.metric_model import wanted_quantities
from replication.metrics.trace import has_traces, traces_hash
from replication.simulate.process import Limits, Usage
from replication.simulate.run import RunTables, check_run
from replication.simulate.runtime import (
    Launch,
    find_image,
    find_inside,
    make_runtime,
    program_in_image,
)
from replication.study.errors import InputError
from replication.study.files import digest_of, sha256_of
from replication.study.scenario import Scenario
from replication.study.study import CONFORMANCE, REGIONS_TABLE, Study

#: What gathering the tables of a batch may take on top of a simulator, in units of 2^20 bytes.
WORKER_MB = 1024
#: CPU seconds, as measured: what is done for each study besides its runs, and what builds take.
STUDY_COST_S, NS3_PROGRAM_COST_S, KERNEL_COST_S = 40.0, 25.0, 600.0

#: By type of experiment, the study whose paper its notebook tells of; others have `ANY_STUDY`.
WRITTEN_FOR = {
    "cbr_sweep": "liang_shen",
    "pairwise_fairness": "liang_shen",
    "queuing": "liang_shen",
    "homogeneous_dumbbell": "nishitha",
    "throughput_tables": "saxena",
    "bdp_jain": "dzivhani",
    "cwnd_traces": "kapadia",
}
ANY_STUDY = "any_study"
#: What `make explain` executes, and the notebooks on no study, which the report does not have.
SENSITIVITY = "sensitivity"
GUIDES = ("start_here", "your_paper", "regions")


def notebook_names(study: Study, engines: Sequence[str]) -> list[str]:
    """Return a study's notebooks: by types of experiment, then those that have a condition here."""
    types = dict.fromkeys(
        experiment.type if WRITTEN_FOR.get(experiment.type) == study.id else ANY_STUDY
        for experiment in study.experiments
    )
    further = {"engines": len(engines) > 1, "trace_comparison": has_traces(study)}
    return [*types, *(name for name, is_wanted in further.items() if is_wanted)]


@dataclass(frozen=True)
class Start:
    """How the engines of a configuration are started.

    `inside` is the hash of the sources of the image that the whole workflow runs in, if it does.
    """

    root: Path
    config: Config
    inside: str | None = None
    paths: Paths = field(default_factory=Paths)
    _fingerprints: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_native(self) -> bool:
        """Return whether programs are built here, and run without a container."""
        return self.config.runtime == "native" and self.inside is None

    def fingerprint(self, engine: str) -> str:
        """Return the fingerprint of an engine's version and sources, which are read once."""
        if engine not in self._fingerprints:
            self._fingerprints[engine] = self.config.engine(engine).fingerprint(self.root)
        return self._fingerprints[engine]

    def image(self, engine: str) -> str:
        """Return the id of the image of an engine, for a runtime that is not native."""
        return find_image(self.root, self.config.runtime, engine)

    def program(self, engine: str) -> Path:
        """Return the path of an engine's program."""
        if self.inside is not None:
            return program_in_image(engine)
        return self.config.engine(engine).program(self.root, self.paths.data)

    def program_of(self, engine: str) -> list[Path]:
        """Return what has to be built of an engine; none if images hold it."""
        return [self.program(engine)] if self.is_native else []

    def package(self, engine: str) -> dict[str, Any] | None:
        """Return Debian's package of this machine that decides an engine's results, if one does."""
        return find_package(self.root, engine) if self.is_native else None

    def place(self, engine: str) -> str:
        """Return what tells an engine's runs in an image from others; nothing for native ones."""
        if self.is_native:
            return ""
        if self.inside is not None:
            return f"@inside-{self.inside}"
        return f"@{self.config.runtime}-{self.image(engine)[7:19]}"

    def store_of(self, engine: str) -> Path:
        """Return the store of an engine's runs: what ran elsewhere never stands in for them."""
        name = f"{engine}-{self.fingerprint(engine)}{self.place(engine)}"
        return self.paths.data / "store" / name

    def machine(self, engine: str) -> dict[str, Any]:
        """Return how an engine is started."""
        native = self.config.runtime == "native"
        image = f"source:{self.inside}" if self.inside else None
        return {
            "engine": engine,
            "runtime": self.config.runtime,
            "program": str(self.program(engine)) if native else None,
            "image": image if native else self.image(engine),
            "ns3_version": self.config.ns3_version,
            "store": str(self.store_of(engine)),
            "memory_bytes": self.config.memory_limit_bytes,
            "time_s": self.config.time_limit_s,
        }


@dataclass(frozen=True, kw_only=True)
class Pipeline(Start):
    """Everything the rules ask for; `documents` are the chosen studies by their ids."""

    engines: list[str]
    documents: dict[str, Study]
    plan: Plan
    sensitivity: Sensitivity

    @classmethod
    def load(
        cls, root: Path, overrides: dict[str, Any], deployment: Iterable[Enum] = ()
    ) -> Pipeline:
        """Validate the configuration, every chosen study and its numbers, and plan the run.

        `deployment` is how Snakemake deploys software (`--sdm`): by Apptainer, or not at all.
        InputError says what is wrong, or that the runtime or an image is not there.
        """
        config = load_config(root / "configs" / "config.yaml", overrides)
        start = Start(root, config, find_inside(root, deployment))
        if start.inside is not None and config.runtime != "native":
            raise InputError(
                f"runtime: {config.runtime} cannot start containers in the image that the workflow "
                "runs in: leave it native"
            )
        engines = chosen_engines(root, config, start.inside is not None)
        names = study_ids(root) if config.studies == "all" else sorted(config.studies)
        documents = {name: load_study(root, name) for name in names}
        # What gathers a batch's tables is in its name: Snakemake looks at no rule's parameters
        # where it remakes an `ancient` input, the design.
        named = {
            engine: f"{start.fingerprint(engine)}+{code().simulate}{start.place(engine)}"
            for engine in engines
        }
        return cls(
            **vars(start),
            engines=engines,
            documents=documents,
            plan=load_plan(root, config, documents, named),
            sensitivity=load_sensitivity(root),
        )

    @property
    def studies(self) -> list[str]:
        """Return the ids of the chosen studies."""
        return list(self.documents)

    @property
    def code(self) -> Code:
        """Return the hashes of our code: a rule's `code` parameter, which reruns it."""
        return code()

    @functools.cached_property
    def batches(self) -> dict[str, Batch]:
        """Return every batch by its id."""
        return {b.id: b for study in self.plan.studies.values() for b in study.batches}

    def batch_ids(self, *studies: str) -> list[str]:
        """Return the ids of studies' batches."""
        return [batch.id for study in studies for batch in self.plan.studies[study].batches]

    def runtime_min(self, batch: str) -> int:
        """Return the minutes to grant a batch: twice its cost, and one run up to its own limit."""
        return math.ceil((2 * self.batches[batch].cost_s + self.config.time_limit_s) / 60)

    @property
    def memory_mb(self) -> int:
        """Return the memory that a scheduler should grant a batch: one run's limit, and ours."""
        return math.ceil(self.config.memory_limit_bytes / 2**20) + WORKER_MB

    def explored_on(self, study: str) -> str:
        """Return the engine that a study's sensitivity runs on: its paper's own, if it is there."""
        own = self.documents[study].original_system.engine
        return own if own in self.engines else self.sensitivity.engine

    @property
    def explained(self) -> list[str]:
        """Return the studies whose best explanation is searched: those with possible causes."""
        return [one for one in self.studies if explanations_path(self.root, one).is_file()]

    def features(self, study: str) -> str:
        """Return a hash over what of a study is read off series when its runs are collected."""
        wanted = wanted_quantities(self.documents[study])
        return digest_of("".join(one.model_dump_json() for one in wanted).encode())[:16]

    @functools.cached_property
    def traced(self) -> list[str]:
        """Return the ids of the chosen studies with published traces."""
        return [name for name, study in self.documents.items() if has_traces(study)]

    @property
    def traces(self) -> str:
        """Return a hash over the raw traces; empty where there are none."""
        return traces_hash(self.root, self.traced)

    def executed(self) -> list[Path]:
        """Return the executed notebooks of the report."""
        return [
            self.paths.executed / f"{name}.{notebook}.ipynb"
            for name, study in self.documents.items()
            for notebook in notebook_names(study, self.engines)
        ]

    @property
    def runs_live(self) -> bool:
        """Return whether notebooks can run the engine ns3 themselves, as this run has it."""
        is_pinned = self.config.ns3_version == NS3_VERSION
        return "ns3" in self.engines and self.config.runtime == "native" and is_pinned

    @property
    def live_program(self) -> list[Path]:
        """Return what has to be built for notebooks that run the engine ns3."""
        return self.program_of("ns3") if self.runs_live else []

    @property
    def shown(self) -> str:
        """Return a hash over what the report shows if it is there, and never waits for."""
        explored = [*self.paths.sensitivity.glob("*/*.csv"), *self.paths.regions.glob("*/*.json")]
        return self.content(*sorted([*explored, self.paths.data / REGIONS_TABLE, CONFORMANCE]))

    @staticmethod
    def content(*paths: Path) -> str:
        """Return a hash over those of the files that exist: for what is used if it is there."""
        return sha256_of(*paths)[:16]

    @staticmethod
    def study_files(*studies: str) -> list[str]:
        """Return the files of studies, below the project's folder."""
        return [path.as_posix() for study in studies for path in study_files(Path(), study)]

    @property
    def settings(self) -> dict[str, Any]:
        """Return what a run's provenance has of its configuration and engines."""
        is_native = self.config.runtime == "native"
        engines: dict[str, dict[str, Any]] = {}
        for name in self.engines:
            engine = self.config.engine(name)
            engines[name] = {"version": engine.version, "fingerprint": self.fingerprint(name)}
            if found := self.package(name):
                engines[name]["package"] = found
            # A whole workflow in an image runs the program of that image, which its id names.
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
        """Return the store of each engine."""
        return {engine: self.store_of(engine) for engine in self.engines}

    def summary(self) -> list[str]:
        """Return what would run, a line a study, and the expected cost."""
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
            self._fixed_costs(),
        ]

    def _fixed_costs(self) -> str:
        costs = {"judging, notebooks and pages": STUDY_COST_S * len(self.studies)}
        if "ns3" in self.engines and any(not path.is_file() for path in self.program_of("ns3")):
            costs["compiling the program of ns3"] = NS3_PROGRAM_COST_S
        if "linux" in self.engines and self.is_native:
            for hz in kernels_to_build(self.root, self.plan.timer_hz()):
                costs[f"building the kernel of {hz} Hz"] = KERNEL_COST_S
        parts = ", ".join(f"{what} ({cost_s / 60:.1f})" for what, cost_s in costs.items())
        return f"besides, about {sum(costs.values()) / 60:.1f} CPU minutes: {parts}"


def run_single(
    root: Path, data: Path, scenario: Scenario, engine: str, work: Path
) -> tuple[Usage, RunTables]:
    """Run a scenario in the folder `work`, which is made; return what it used, and its tables.

    Engines are built below `data`, the folder of results. InputError where the engine is not built
    or refuses the scenario, RunError where the run failed.
    """
    config = load_config(root / "configs" / "config.yaml")
    start = Start(root, config, find_inside(root, ()), Paths(data=data))
    program = root / start.program(engine)
    if start.is_native:
        config.engine(engine).require(root)
        if not program.is_file():
            raise InputError(
                f"engine {engine}: is not built; run `make engines ENGINES={engine}` first"
            )
    limits = Limits(config.memory_limit_bytes, config.time_limit_s)
    runtime = make_runtime(root, Launch(config.runtime, engine, program), work.parent, limits)
    try:
        write_inputs(work, scenario, config.engine(engine))
        used = runtime.run(work)
        return used, check_run(work, scenario)
    finally:
        runtime.close()
