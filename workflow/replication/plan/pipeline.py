"""The pipeline as the Snakefile sees it: validated configuration, plan, file names, code hashes."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.engines.debian import FoundPackage, find_package
from replication.engines.image import Image, find_image
from replication.engines.ns3_source import COMPILER, built_ns3, takes_source
from replication.engines.ns3_version import NS3_VERSION, SYSTEM_VERSION
from replication.measure.trace_folder import find_folder, has_traces, traces_hash
from replication.plan.code import PACKAGE, code_hash, page_hash
from replication.plan.config import Config, chosen_engines, load_config
from replication.plan.design import Batch, Plan, make_plan
from replication.plan.leave import leave
from replication.plan.notebook_kind import LAB, further, notebook_names
from replication.plan.repeat import repeat_warnings
from replication.plan.study_check import check_study
from replication.run.folder import require_home, require_plain_name, require_writable
from replication.run.inside import Inside, find_inside
from replication.run.progress import count, write_goal
from replication.study.errors import InputError
from replication.study.files import sha256_of
from replication.study.report_page import MADE_OF, REPORT_PAGES
from replication.study.sensitivity_settings import (
    Sensitivity,
    explanations_path,
    load_sensitivity,
)

#: The parts of the report beside the studies, by their modules in `report.writers`.
PAGES = tuple(page.name for page in REPORT_PAGES)
#: What gathering the tables of a batch may take beside a simulator, in units of 2^20 bytes.
WORKER_MB = 1024


@dataclass(frozen=True)
class Paths:
    """Where things are, relative to the working folder; rules and commands share these names."""

    data: Path = Path("data/reproduced")
    published: Path = Path("data/published")
    notebooks: Path = Path("notebooks")
    executed: Path = Path("reports/notebooks")
    html: Path = Path("reports/html")

    @property
    def pages(self) -> Path:
        """Return the folder of the report's parts, a folder each, before they are put together."""
        return self.data / "pages"

    @property
    def goal(self) -> Path:
        """Return the file that tells the jobs of a run what there is to do."""
        return self.data / "goal.json"

    @property
    def sensitivity(self) -> Path:
        """Return the folder of the sensitivity analysis."""
        return self.data / "sensitivity"

    @property
    def maps(self) -> Path:
        """Return the folder of the maps, a folder each."""
        return self.data / "maps"

    def engine(self, name: str, fingerprint: str) -> Path:
        """Return the folder of an engine's program."""
        return self.data / "engines" / f"{name}-{fingerprint}"

    def program(self, name: str, fingerprint: str) -> Path:
        """Return an engine's program."""
        return self.engine(name, fingerprint) / f"replicate-{name}"

    def explanation_kernels(self, fingerprint: str) -> Path:
        """Return the launcher of the kernels that explanations ask for.

        They have a folder of their own: what is built for a report does not depend on whether
        explanations are searched.
        """
        own = self.program("linux", fingerprint)
        return own.parent.with_name(f"{own.parent.name}+timers") / own.name

    def ns3_wheel(self, version: str) -> Path:
        """Return the folder of the headers and libraries of an unpacked wheel."""
        return self.data / f"engines/ns3-wheel-{version}" / "ns3"

    def store(self, name: str, fingerprint: str) -> Path:
        """Return the folder of an engine's finished runs."""
        return self.data / "store" / f"{name}-{fingerprint}"


@dataclass(frozen=True)
class Pipeline:
    """Everything the rules ask for."""

    root: Path
    config: Config
    engines: list[str]
    plan: Plan
    sensitivity: Sensitivity
    paths: Paths = Paths()
    inside: Inside | None = None

    @classmethod
    def load(
        cls, root: Path, overrides: dict[str, Any], deployment: Iterable[Enum] = ()
    ) -> Pipeline:
        """Validate the configuration, every chosen study and its numbers, and plan the run.

        `deployment` is how Snakemake deploys software (`--sdm`): by Apptainer, or not at all.

        Raises
        ------
        InputError
            Something in the configuration, a study or its published numbers is wrong, or the
            runtime or an image is not there.
        """
        config = load_config(root / "configs" / "config.yaml", overrides)
        find_folder(root)  # a wrong one is an error before anything runs
        inside = find_inside(root, deployment)
        if inside is not None:
            inside.require(config.runtime)
        engines = chosen_engines(root, config, inside is not None)
        # What gathers a batch's tables is in its name: Snakemake looks at no rule's parameters
        # where it remakes an `ancient` input, the design.
        gathered = f"+{code_hash('replication.run.gather', 'engines/model.py')}"
        places = {engine: gathered + _place(root, config, inside, engine) for engine in engines}
        plan = make_plan(root, config, engines, places)
        for name, study in plan.studies.items():
            check_study(study, root / cls.paths.published / f"{name}.csv")
        return cls(
            root=root,
            config=config,
            engines=engines,
            plan=plan,
            sensitivity=load_sensitivity(root),
            inside=inside,
        )

    @functools.cached_property
    def images(self) -> dict[str, Image]:
        """Return the image of each engine; none where programs run natively."""
        if self.config.runtime == "native":
            return {}
        return {engine: self.image(engine) for engine in self.engines}

    def image(self, engine: str) -> Image:
        """Return the image of an engine, for a runtime that is not native."""
        return find_image(self.root, self.config.runtime, engine)

    @property
    def studies(self) -> list[str]:
        """Return the ids of the chosen studies."""
        return list(self.plan.runs)

    @functools.cached_property
    def batches(self) -> dict[str, Batch]:
        """Return every batch by its id."""
        return {b.id: b for batches in self.plan.batches.values() for b in batches}

    def batch_ids(self, study: str) -> list[str]:
        """Return the ids of a study's batches."""
        return [batch.id for batch in self.plan.batches[study]]

    def fingerprint(self, engine: str) -> str:
        """Return the fingerprint of an engine's version and sources."""
        return self.config.engine(engine).fingerprint(self.root)

    def program(self, engine: str) -> Path:
        """Return the path of an engine's program."""
        if self.inside is not None:
            return self.inside.program(engine)
        return self.paths.program(engine, self.fingerprint(engine))

    @property
    def native_programs(self) -> list[Path]:
        """Return the programs that have to be built."""
        return [path for engine in self.engines for path in self.program_of(engine)]

    def program_of(self, engine: str) -> list[Path]:
        """Return what has to be built of an engine; none if images hold it."""
        if self.config.runtime != "native" or self.inside is not None:
            return []
        return [self.program(engine)]

    def package(self, engine: str) -> FoundPackage | None:
        """Return Debian's package of this machine that decides an engine's results, if one does."""
        if self.config.runtime != "native" or self.inside is not None:
            return None
        return find_package(self.root, engine)

    def launch(self, batch: str) -> str:
        """Return the options that say how a batch's runs are started; a change runs it again."""
        return self.launch_of(self.batches[batch].engine)

    def launch_of(self, engine: str) -> str:
        """Return the options that say how an engine is started."""
        if self.config.runtime != "native":
            return f"--runtime {self.config.runtime} --image {self.image(engine).id}"
        image = f" --image {self.inside.image}" if self.inside else ""
        return f"--runtime native --program {self.program(engine)}{image}"

    def store(self, batch: str) -> Path:
        """Return the store that a batch's runs go to."""
        return self.store_of(self.batches[batch].engine)

    def store_of(self, engine: str) -> Path:
        """Return the store of an engine's runs: what ran elsewhere never stands in for them."""
        place = _place(self.root, self.config, self.inside, engine)
        return self.paths.store(engine, self.fingerprint(engine) + place)

    def explored_on(self, study: str) -> str:
        """Return the engine that a study's sensitivity runs on: its paper's own, if it is there."""
        return self.sensitivity.engine_of(self.plan.studies[study], self.engines)

    @property
    def explained(self) -> list[str]:
        """Return the studies whose best explanation is searched: those with atoms."""
        return [study for study in self.studies if explanations_path(self.root, study).is_file()]

    def atoms_of(self, study: str) -> list[str]:
        """Return the file of a study's atoms, if it has one."""
        path = explanations_path(Path(), study)
        return [path.as_posix()] if (self.root / path).is_file() else []

    def explained_on(self, study: str) -> str:
        """Return the engine of a study's explanation: its paper's own, if it is there."""
        own = self.plan.studies[study].original_system.engine
        return own if own in self.engines else self.sensitivity.engine

    def explaining(self, study: str) -> tuple[list[Path], str]:
        """Return what has to be built for a study's explanation, and how its runs are started."""
        engine = self.explained_on(study)
        if engine != "linux" or not self.program_of(engine):
            timers = " --timers 250" if engine == "linux" else ""
            return self.program_of(engine), self.launch_of(engine) + timers
        timers = ",".join(map(str, self.sensitivity.explanation.timer_hz))
        program = self.paths.explanation_kernels(self.fingerprint("linux"))
        launch = f"--runtime native --program {program} --timers {timers}"
        return [program], launch

    def explored_store(self, study: str) -> Path:
        """Return the store of a study's sensitivity."""
        return self.store_of(self.explored_on(study))

    @property
    def selection(self) -> str:
        """Return the options by which a study's design comes out as planned here."""
        named = ",".join(f"{engine}={name}" for engine, name in self.plan.named.items())
        return (
            f"--tier {self.config.tier} --engines {named} --ns3-version {self.config.ns3_version}"
            f" --batch-cost-s {self.plan.batch_cost_s!r}"
        )

    @property
    def ns3_built(self) -> Path:
        """Return the folder of the ns-3 that is built from its release's sources."""
        return built_ns3(self.root).relative_to(self.root)

    def ns3_prefix(self, version: str) -> list[Path]:
        """Return the folder of headers and libraries; what is built here goes before the wheel."""
        if version == SYSTEM_VERSION:
            return []
        return [self.ns3_built if self._from_source(version) else self.paths.ns3_wheel(version)]

    def ns3_compiler(self, version: str) -> str:
        """Return what compiles and links our program against a version."""
        return COMPILER if self._from_source(version) else "g++"

    def _from_source(self, version: str) -> bool:
        return version == NS3_VERSION and takes_source(self.root)

    @property
    def settings(self) -> str:
        """Return as JSON what a run's provenance tells of its configuration and engines."""
        packages = {engine: self.package(engine) for engine in self.engines}
        document = {
            "config": self.config.model_dump(mode="json"),
            "engines": {
                engine: {
                    "version": self.config.engine(engine).version,
                    "fingerprint": self.fingerprint(engine),
                }
                | ({"package": found.as_dict()} if (found := packages[engine]) else {})
                | ({"from_source": True} if engine == "ns3" and self._ns3_is_built else {})
                for engine in self.engines
            },
            "images": {engine: image.id for engine, image in self.images.items()},
            "studies": self.studies,
        }
        return json.dumps(document, sort_keys=True)

    @property
    def _ns3_is_built(self) -> bool:
        # A whole workflow in an image runs the program of that image, which its id tells of.
        return self.inside is None and self._from_source(self.config.ns3_version)

    def runtime_min(self, batch: str) -> int:
        """Return the minutes of wall time that a scheduler should grant a batch.

        Twice what it is expected to cost, for a slower machine, and one run up to its own limit.
        """
        return math.ceil((2 * self.batches[batch].cost_s + self.config.time_limit_s) / 60)

    @property
    def memory_mb(self) -> int:
        """Return the memory that a scheduler should grant a batch: one run's limit, and ours."""
        return math.ceil(self.config.memory_limit_bytes / 2**20) + WORKER_MB

    def notebooks(self) -> list[tuple[str, str]]:
        """Return (study, notebook) for each notebook of the report."""
        return [
            (name, notebook)
            for name, study in self.plan.studies.items()
            for notebook in notebook_names(study, self.engines)
        ]

    def executed(self, study: str | None = None) -> list[Path]:
        """Return the executed notebooks of the report, or of one study."""
        return [
            self.paths.executed / f"{name}.{notebook}.ipynb"
            for name, notebook in self.notebooks()
            if study in (None, name)
        ]

    @functools.cached_property
    def traced(self) -> list[str]:
        """Return the ids of the chosen studies with published traces."""
        return [name for name, study in self.plan.studies.items() if has_traces(study)]

    @property
    def traces(self) -> str:
        """Return a hash over the raw traces; empty where there are none."""
        return traces_hash(find_folder(self.root), self.traced)

    def notebook_inputs(self, study: str, notebook: str) -> list[Path]:
        """Return what a notebook reads beside the study's results and evaluation."""
        entry = further(notebook)
        names = entry.inputs if entry else ()
        return [self.paths.data / name.format(study=study) for name in names]

    @property
    def notebook_code(self) -> str:
        """Return a hash over what executes a notebook and what it imports."""
        return self.code("report.notebooks.notebook") + self.code(LAB)

    @property
    def runs_live(self) -> bool:
        """Return whether notebooks can run the engine ns3 themselves, as this run has it."""
        is_here = self.config.runtime == "native" or self.inside is not None
        return "ns3" in self.engines and is_here and self.config.ns3_version == NS3_VERSION

    @property
    def live_program(self) -> list[Path]:
        """Return what has to be built for notebooks that run the engine ns3."""
        return self.program_of("ns3") if self.runs_live else []

    def code(self, module: str, *patterns: str) -> str:
        """Return a hash over a module and all it imports: a rule's `code` parameter.

        A change there reruns the rule and what depends on it. `patterns` name other files of the
        package that decide what the module does (`templates/**/*`).
        """
        return code_hash(f"{PACKAGE}.{module}", *patterns)

    @property
    def pages(self) -> list[str]:
        """Return the parts of the report that are made by themselves: the studies and `PAGES`."""
        return [*PAGES, *self.studies]

    def page_code(self, page: str) -> str:
        """Return a hash over what makes a part of the report: its modules and templates."""
        return self._page_code[page if page in PAGES else "study"]

    @functools.cached_property
    def _page_code(self) -> dict[str, str]:
        names = (*PAGES, "study")
        return {name: page_hash(f"{PACKAGE}.report.writers.{name}") for name in names}

    @property
    def shown(self) -> str:
        """Return a hash over what the report shows if it is there, and never waits for."""
        further = [self.paths.data / name for name in MADE_OF]
        further += sorted(self.paths.maps.glob("*/*.json"))
        return self.content(*sorted(self.paths.sensitivity.glob("*/*.csv")), *further)

    def content(self, *paths: Path | str) -> str:
        """Return a hash over those of the files that exist.

        For what is used if it is there, and for sources: by their times alone Snakemake would take
        one for old that was edited after the clock was set back, or copied with its time.
        """
        found = [path for path in map(Path, paths) if path.is_file()]
        return sha256_of(*found)[:16] if found else ""

    def sources(self, study: str, *more: str) -> str:
        """Return a hash over a study's file and `more`: a rule's parameter beside its inputs.

        Snakemake leaves out parameters that follow from a rule's own inputs, so these are named.
        """
        return self.content(f"configs/studies/{study}.yaml", *more)

    @property
    def tier_file(self) -> str:
        """Return where the tier is described, below the project's folder."""
        return f"configs/tiers/{self.config.tier}.yaml"

    @functools.cached_property
    def goal(self) -> dict[Path, dict[str, float]]:
        """Return the expected CPU seconds of each scenario, by the store it goes to."""
        costs = self.plan.scenario_costs()
        return {self.store_of(engine): own for engine, own in costs.items()}

    def write_goal(self) -> None:
        """Tell the jobs what there is to do, for their progress lines."""
        write_goal(self.paths.goal, self.goal)

    def summary(self) -> list[str]:
        """Return what would run, a line a study, and the expected cost."""
        stores = {e: self.store_of(e) for e in self.engines}
        lines = [f"tier {self.plan.tier.id}: {self.plan.tier.title}", self._engines_line()]
        packages = [self.package(engine) for engine in self.engines]
        lines += [f"warning: {found.warning()}" for found in packages if found and found.warning()]
        for study in self.studies:
            runs = self.plan.runs[study]
            costs: dict[Path, dict[str, float]] = {}
            for run in runs:
                if not run.refusal:
                    costs.setdefault(stores[run.engine], {})[run.scenario_id] = run.cost_s
            done, total, cost_done, cost_total = count(costs)
            points = len({(run.experiment, run.point) for run in runs})
            refused = len({(run.experiment, run.point, run.engine) for run in runs if run.refusal})
            lines.append(
                f"{study}: {points} points, {total} scenarios in "
                f"{len(self.plan.batches[study])} batches, {done} done; "
                f"about {cost_total - cost_done:.0f} s of CPU to go"
                + (f"; {refused} point-engine pairs refused" if refused else "")
            )
            lines += [f"warning: {study}, {warning}" for warning in repeat_warnings(runs)]
        done, total, cost_done, cost_total = count(self.goal)
        lines.append(
            f"in all {total} scenarios, {done} done; "
            f"about {(cost_total - cost_done) / 60:.1f} CPU minutes to go"
        )
        return lines

    def _engines_line(self) -> str:
        """Return which engines run, and how to get the others."""
        line = f"engines: {', '.join(self.engines)}"
        others = [name for name in ENGINES if name not in self.engines]
        if others and self.config.engines == "available":
            line += f" ({' and '.join(others)} not there; `make engines` installs and builds them)"
        return line


def _place(root: Path, config: Config, inside: Inside | None, engine: str) -> str:
    """Return what tells an engine's runs in an image from others; nothing for native ones."""
    if inside is not None:
        return f"@inside-{inside.sources}"
    if config.runtime == "native":
        return ""
    return f"@{config.runtime}-{find_image(root, config.runtime, engine).id[7:19]}"


def load_or_exit(root: Path, overrides: dict[str, Any], deployment: Iterable[Enum]) -> Pipeline:
    """Load the pipeline; print bad input as one line and leave with exit code 2."""
    try:
        require_home(root)
        require_plain_name(root)
        require_writable(root)
        return Pipeline.load(root, overrides, deployment)
    except InputError as error:
        leave(error)
