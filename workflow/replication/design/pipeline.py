"""The rules' view of a run: its plan, the start of its engines, file names and reasons to rerun."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Self

from replication.base.errors import InputError
from replication.base.table import REGIONS_TABLE
from replication.design.config import (
    Config,
    Paths,
    Sensitivity,
    chosen_engines,
    explanations_path,
    load_config,
    load_sensitivity,
    load_tier,
    study_ids,
)
from replication.design.input_hashes import content_hash, rule_code
from replication.design.notebook_names import lecture_names
from replication.design.plan import Plan, load_plan
from replication.design.start import Start
from replication.engines.catalogue import ENGINES, kernels_to_build, package_warning
from replication.engines.ns3 import NS3_VERSION
from replication.metrics.trace_source import traces_hash
from replication.simulate.runtime import find_inside

#: Memory to gather the tables of a batch, in MiB.
_GATHER_MB = 1024
#: Measured CPU seconds: to judge and show a study, without and with live experiments.
_STUDY_COST_S, _LIVE_STUDY_COST_S = 18.0, 35.0
#: The same to compile ns-3's program, and to build a kernel.
_NS3_PROGRAM_COST_S, _KERNEL_COST_S = 25.0, 600.0


@dataclass(frozen=True)
class Pipeline:
    """What the rules read in addition to the `plan` and the `start` of its engines."""

    start: Start
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
        studies = study_ids(root) if config.studies == "all" else sorted(config.studies)
        # A batch's name has the hash of the code that gathers its tables, because Snakemake ignores
        # changed parameters of a rule whose `ancient` input, the design, is made again.
        gathers = rule_code(root, "simulate", "simulate_batch")
        named = {}
        for engine in engines:
            named[engine] = f"{start.fingerprint(engine)}+{gathers}{start.place(engine)}"
        plan = load_plan(root, config, studies, named)
        return cls(start, engines, plan, load_sensitivity(root))

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.start.config

    @property
    def paths(self) -> Paths:
        """The folders and files of the workflow."""
        return self.start.paths

    @property
    def studies(self) -> list[str]:
        """Ids of the chosen studies."""
        return list(self.plan.studies)

    @property
    def settings(self) -> dict[str, Any]:
        """Configuration, engines and studies of the run, for its provenance."""
        return self.start.settings(self.engines) | {"studies": self.studies}

    # -- resources ---------------------------------------------------------------------------------

    def runtime_min(self, batch: str) -> int:
        """Return a scheduler's time limit for a batch: twice its cost, and the limit of one run."""
        cost_s = self.plan.batches[batch].cost_s
        return math.ceil((2 * cost_s + self.config.time_limit_s) / 60)

    @property
    def memory_mb(self) -> int:
        """A scheduler's memory limit for a batch, in MiB."""
        return math.ceil(self.config.memory_limit_bytes / 2**20) + _GATHER_MB

    # -- explorations and traces -------------------------------------------------------------------

    def explored_on(self, study: str) -> str:
        """Return the engine of a study's sensitivity analysis: the primary one if available."""
        primary = self.plan.studies[study].original_engine
        return primary if primary in self.engines else self.sensitivity.engine

    @property
    def explained(self) -> list[str]:
        """Studies with possible causes, whose best explanation is searched."""
        root = self.start.root
        return [study for study in self.studies if explanations_path(root, study).is_file()]

    @functools.cached_property
    def traced(self) -> list[str]:
        """Ids of the chosen studies with published traces."""
        return [name for name, study in self.plan.studies.items() if study.has_traces]

    @property
    def traces(self) -> str:
        """Hash of the raw traces; empty without any."""
        return traces_hash(self.start.root, self.traced)

    # -- notebooks and pages -----------------------------------------------------------------------

    def executed(self) -> list[Path]:
        """Return the paths of the report's executed notebooks."""
        names = lecture_names(self.studies)
        for study, planned in self.plan.studies.items():
            names += [f"{study}.{notebook}" for notebook in planned.notebooks]
        return [self.paths.executed / f"{name}.ipynb" for name in names]

    @functools.cached_property
    def runs_live(self) -> bool:
        """Whether notebooks run live experiments: the tier has them, on the pinned ns-3."""
        is_pinned = self.config.ns3_version == NS3_VERSION
        is_possible = "ns3" in self.engines and self.config.runtime == "native" and is_pinned
        return is_possible and load_tier(self.start.root, self.config.tier).live_experiments

    @property
    def live_program(self) -> list[Path]:
        """The program that notebooks run."""
        return self.start.program_of("ns3") if self.runs_live else []

    @property
    def shown(self) -> str:
        """Hash of optional results, which the report shows but does not wait for."""
        explored = [*self.paths.sensitivity.glob("*/*.csv"), *self.paths.regions.glob("*/*.json")]
        tables = [self.paths.data / REGIONS_TABLE, *Path("data").glob("*.csv")]
        return content_hash(*sorted([*explored, *tables]))

    # -- what a run says before it starts ----------------------------------------------------------

    @property
    def stores(self) -> dict[str, Path]:
        """Store of each engine."""
        return {engine: self.start.store_of(engine) for engine in self.engines}

    def summary(self) -> list[str]:
        """Return lines on the tier, the engines, the runs of each study, and the expected cost."""
        tier = load_tier(self.start.root, self.config.tier)
        engines = f"engines: {', '.join(self.engines)}"
        others = " and ".join(name for name in ENGINES if name not in self.engines)
        if others and self.config.engines == "available":
            engines += f" (not installed: {others}; `make engines` installs and builds them)"
        lines = [f"tier {tier.id}: {tier.title}", engines]
        for engine in self.engines:
            if warning := package_warning(self.start.package(engine)):
                lines.append(f"warning: {warning}")
        return [*lines, *self.plan.summary(self.stores), self._other_costs()]

    def _other_costs(self) -> str:
        study_s = _LIVE_STUDY_COST_S if self.runs_live else _STUDY_COST_S
        costs = {"judging, notebooks and pages": study_s * len(self.studies)}
        programs = self.start.program_of("ns3") if "ns3" in self.engines else []
        if any(not path.is_file() for path in programs):
            costs["compiling the program of ns3"] = _NS3_PROGRAM_COST_S
        if "linux" in self.engines and self.start.is_native:
            for hz in kernels_to_build(self.start.root, self.plan.timer_hz()):
                costs[f"building the kernel of {hz} Hz"] = _KERNEL_COST_S
        parts = ", ".join(f"{what} ({cost_s / 60:.1f})" for what, cost_s in costs.items())
        return f"other work: about {sum(costs.values()) / 60:.1f} CPU minutes: {parts}"
