"""Paths: where the workflow's files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """Where things are, relative to the working folder; rules and commands share these names."""

    data: Path = Path("data/reproduced")
    published: Path = Path("data/published")
    notebooks: Path = Path("notebooks")
    executed: Path = Path("reports/notebooks")
    html: Path = Path("reports/html")

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
