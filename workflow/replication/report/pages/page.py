"""A page: the templates' environment, what ran by its provenance, and the file of its HTML."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext

from replication.engines.catalogue import package_warning
from replication.metrics.metric_model import metric_label
from replication.report.charts.data import unsaid_unit
from replication.report.pages import shown as numbers
from replication.report.pages.figure import picture
from replication.report.pages.ledger import plausible
from replication.report.pages.shown import BADGES, badge, named
from replication.report.pages.source import Source
from replication.study.study import REGIONS_TABLE, REPORT_PAGES, Study
from replication.verdicts.counts import WHAT


def ran(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier, config = provenance.get("tier", {}), provenance.get("config", {})
    name = str(tier.get("id") or config.get("tier") or "unknown")
    engines = [
        (engine, str(known.get("version", "unknown version")))
        for engine, known in provenance.get("engines", {}).items()
    ]
    written = _when(str(provenance.get("written", "")))
    versions = ", ".join(f"{one} {version.partition('+')[0]}" for one, version in engines)
    whose = [
        f"Results{f' of {written}' if written else ''}: tier {name}",
        f"engines {versions}" if versions else "",
    ]
    chosen = ",".join(engine for engine, _ in engines)
    settings = f"TIER={name}" + (f" ENGINES={chosen}" if chosen else "")
    selected = provenance.get("config", {}).get("studies", "all")
    return {
        "tier": name,
        "tier_title": str(tier.get("title", "")),
        "quick": name == "quick" or tier.get("levels") == "quick",
        "engines": engines,
        "facts": list(_facts(provenance, written)),
        # Stages of the workflow and what they took: jobs, wall_s, cpu_s.
        "stages": provenance.get("stages", {}),
        # The settings of make by which the same is run again, without and with the studies.
        "settings": settings,
        "again": settings + ("" if selected == "all" else f" STUDIES={','.join(selected)}"),
        # Of when these results are, and of what: for the foot of every page.
        "whose": "; ".join(part for part in whose if part) + ".",
    }


def _when(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _facts(provenance: dict[str, Any], written: str) -> Iterator[tuple[str, str]]:
    simulate, platform = provenance.get("simulate", {}), provenance.get("platform", {})
    engines = provenance.get("engines", {}).values()
    facts: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("Runtime", provenance.get("config", {}).get("runtime"), str),
        ("Written", written, str),
        ("Scenarios", simulate.get("scenarios"), numbers.count),
        ("Simulator CPU time", simulate.get("simulator_cpu_s"), numbers.duration),
        *(("Not as locked", package_warning(one.get("package")), str) for one in engines),
        ("Commit", provenance.get("commit"), str),
        ("System", platform.get("system"), str),
    ]
    return ((label, show(value)) for label, value, show in facts if value)


TEMPLATES = Path(__file__).parents[1] / "templates"


class _Dense(jinja2.ext.Extension):
    """Takes the indentation out of templates: a thirtieth of a page's size."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return "\n".join(line.lstrip() for line in source.splitlines() if line.strip())


def short_title(study: Study) -> str:
    """Return the family names of a paper's authors: the first of more than two, and others."""
    names = [author.split()[-1] for author in study.bibliography.authors]
    return " & ".join(names) if len(names) < 3 else f"{names[0]} et al."


def environment(source: Source | None = None) -> jinja2.Environment:
    """Return the templates' environment for the pages of `source`, or for a page of no report."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        extensions=[_Dense],
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # How fields of tables are shown, so that a page need not copy rows to have them in words.
    made.filters.update(
        count=numbers.count,
        duration=numbers.duration,
        interval=numbers.interval,
        metric_label=metric_label,
        named=named,
        number=numbers.number,
        percent=numbers.percent,
        picture=picture,
        plausible=plausible,
        published=numbers.published,
        short_title=short_title,
        unit=numbers.display_unit,
        unsaid_unit=unsaid_unit,
        verdict=badge,
    )
    made.globals.update(
        verdicts=BADGES, counted_words=WHAT, up="", studies=[], further_pages={}, ran=None
    )
    if source is not None:
        regions = (source.data / REGIONS_TABLE).is_file()
        is_there = {"engines": bool(source.engines), "regions": regions, "method": True}
        made.globals.update(
            studies=list(source.studies.values()),
            ran=ran(source.provenance),
            several_engines=len(source.engines) > 1,
            # Those that only some reports have.
            further_pages={
                name: title for name, title in REPORT_PAGES.items() if is_there.get(name)
            },
            results=source.downloads,
        )
    return made
