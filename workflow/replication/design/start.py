"""The start of a process: an engine's program, image and store in the chosen configuration."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.design.config import Config, Paths
from replication.engines.catalogue import find_package
from replication.simulate.runtime import Launch, find_image, program_in_image


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

    def settings(self, engines: Iterable[str]) -> dict[str, Any]:
        """Return the configuration and how engines are started, for the provenance of a run."""
        is_native = self.config.runtime == "native"
        used: dict[str, dict[str, Any]] = {}
        images: dict[str, str] = {}
        for name in engines:
            engine = self.config.engine(name)
            used[name] = {"version": engine.version, "fingerprint": self.fingerprint(name)}
            if package := self.package(name):
                used[name]["package"] = package
            # In an image the workflow runs the image's program.
            installed = engine.own_program(self.root) if self.is_native else None
            if installed:
                used[name]["installed"] = {
                    "build": installed.build,
                    "as_pinned": installed.as_pinned,
                }
            if not is_native:
                images[name] = self.image(name)
        return {"config": self.config.model_dump(mode="json"), "engines": used, "images": images}
