"""The start of engines: programs, what is built of them, where runs are kept; and a single run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.design.config import Config, Paths, load_config
from replication.engines.catalogue import find_package
from replication.engines.lowering import write_inputs
from replication.simulate.gather import RunTables, check_run
from replication.simulate.process import Limits, Usage
from replication.simulate.runtime import (
    Launch,
    find_image,
    find_inside,
    make_runtime,
    program_in_image,
)
from replication.study.errors import InputError
from replication.study.scenario import Scenario


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

    @property
    def is_native(self) -> bool:
        """Return whether programs are built here, and run without a container."""
        return self.config.runtime == "native" and self.inside is None

    def program_of(self, engine: str) -> list[Path]:
        """Return what has to be built of an engine; none if images hold it."""
        return [self.program(engine)] if self.is_native else []

    def package(self, engine: str) -> dict[str, Any] | None:
        """Return Debian's package of this machine that decides an engine's results, if one does."""
        return find_package(self.root, engine) if self.is_native else None

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

    def store_of(self, engine: str) -> Path:
        """Return the store of an engine's runs: what ran elsewhere never stands in for them."""
        return self.paths.store(engine, self.fingerprint(engine) + self.place(engine))

    def place(self, engine: str) -> str:
        """Return what tells an engine's runs in an image from others; nothing for native ones."""
        if self.inside is not None:
            return f"@inside-{self.inside}"
        if self.is_native:
            return ""
        return f"@{self.config.runtime}-{self.image(engine)[7:19]}"


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
