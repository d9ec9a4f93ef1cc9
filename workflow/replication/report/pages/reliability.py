"""The page of reliability: what was tried against the project, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replication.report.parts.reliability import PARTS, Load, Trials, read_reliability
from replication.study.report_page import RELIABILITY_PAGE


@dataclass(frozen=True)
class Part:
    """Trials of one part, with their sums."""

    id: str
    title: str
    entries: list[Trials]

    @property
    def tried(self) -> int:
        """Return how many trials there were."""
        return sum(entry.tried for entry in self.entries)

    @property
    def wrong(self) -> int:
        """Return how many ended wrong."""
        return sum(entry.wrong for entry in self.entries)


@dataclass(frozen=True)
class ReliabilityView:
    """The page."""

    parts: list[Part]
    loads: list[Load]


def reliability_view(data: Path) -> ReliabilityView | None:
    """Return what the page shows; None where nothing was counted."""
    found = read_reliability(data / RELIABILITY_PAGE.made_of)
    if found is None:
        return None
    parts = [Part(name, title, found.of(name)) for name, title in PARTS.items()]
    return ReliabilityView([part for part in parts if part.entries], found.loads)
