"""What ran, as the provenance tells it: at the foot of every page, and in full on the first."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from replication.engines.debian import package_warning
from replication.report.parts.verdicts import number as numbers


@dataclass(frozen=True)
class RunSummary:
    """What was run, from provenance.json."""

    tier: str
    tier_title: str
    quick: bool
    written: str
    studies: list[str]
    engines: list[tuple[str, str]]
    runtime: str
    facts: list[tuple[str, str]]
    #: Stages of the workflow and what they took: jobs, wall_s, cpu_s.
    stages: dict[str, dict[str, Any]]

    @property
    def settings(self) -> str:
        """Return the settings of make by which the same is run again."""
        engines = ",".join(name for name, _ in self.engines)
        return f"TIER={self.tier}" + (f" ENGINES={engines}" if engines else "")

    @property
    def whose(self) -> str:
        """Return of when these results are, and of what: for the foot of every page."""
        engines = [f"{name} {version.partition('+')[0]}" for name, version in self.engines]
        parts = [
            "Results",
            f" of {self.written}" if self.written else "",
            f": tier {self.tier}",
            f"; studies {', '.join(self.studies)}" if self.studies else "",
            f"; engines {', '.join(engines)}" if engines else "",
        ]
        return f"{''.join(parts)}."


def ran(provenance: dict[str, Any]) -> RunSummary:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier = _mapping(provenance, "tier")
    config = _mapping(provenance, "config")
    engines = _mappings(_mapping(provenance, "engines"))
    name = str(tier.get("id") or config.get("tier") or "unknown")
    return RunSummary(
        tier=name,
        tier_title=str(tier.get("title", "")),
        quick=name == "quick" or tier.get("levels") == "quick",
        written=_when(str(provenance.get("written", ""))),
        studies=sorted(_mapping(provenance, "studies")),
        engines=[(k, str(v.get("version", "unknown version"))) for k, v in engines.items()],
        runtime=str(config.get("runtime", "")),
        facts=_facts(provenance),
        stages=_mappings(_mapping(provenance, "stages")),
    )


def _mapping(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _mappings(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: value for name, value in document.items() if isinstance(value, dict)}


def _when(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _facts(provenance: dict[str, Any]) -> list[tuple[str, str]]:
    simulate, platform = _mapping(provenance, "simulate"), _mapping(provenance, "platform")
    facts: list[tuple[str, str]] = []
    for label, document, key, show in (
        ("Scenarios", simulate, "scenarios", numbers.count),
        ("Simulator CPU time", simulate, "simulator_cpu_s", numbers.duration),
        ("Wall time of the simulations", simulate, "wall_s", numbers.duration),
        ("Efficiency", simulate, "efficiency", _share),
        ("Peak memory of a run", simulate, "peak_memory_bytes", _memory),
        ("Cores", platform, "cores", numbers.count),
    ):
        value = document.get(key)
        if isinstance(value, int | float):
            facts.append((label, show(value)))
    for engine in _mappings(_mapping(provenance, "engines")).values():
        if warning := package_warning(engine.get("package") or {}):
            facts.append(("Not as locked", warning))
    for label, document, key in (
        ("Commit", provenance, "commit"),
        ("System", platform, "system"),
        ("Python", platform, "python"),
    ):
        if document.get(key):
            facts.append((label, str(document[key])))
    return facts


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _memory(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"
