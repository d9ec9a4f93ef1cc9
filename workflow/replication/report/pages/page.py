"""A page: the templates' environment, what ran by its provenance, and the file of its HTML."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext

from replication.engines.catalogue import package_warning
from replication.metrics.metric_model import metric_label
from replication.report.charts.data import unsaid_unit
from replication.report.pages import number as numbers
from replication.report.pages.figure import script_json, table_texts
from replication.report.pages.ledger import plausible
from replication.report.pages.source import Source
from replication.report.pages.verdict import BADGES, badge
from replication.study.files import write_text
from replication.study.study import MAPS_TABLE, REPORT_PAGES, Study


def ran(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier, config = provenance.get("tier", {}), provenance.get("config", {})
    name = str(tier.get("id") or config.get("tier") or "unknown")
    engines = [
        (engine, str(known.get("version", "unknown version")))
        for engine, known in provenance.get("engines", {}).items()
    ]
    written = _when(str(provenance.get("written", "")))
    studies = ", ".join(sorted(provenance.get("studies", {})))
    versions = ", ".join(f"{one} {version.partition('+')[0]}" for one, version in engines)
    whose = [
        f"Results{f' of {written}' if written else ''}: tier {name}",
        f"studies {studies}" if studies else "",
        f"engines {versions}" if versions else "",
    ]
    chosen = ",".join(engine for engine, _ in engines)
    return {
        "tier": name,
        "tier_title": str(tier.get("title", "")),
        "quick": name == "quick" or tier.get("levels") == "quick",
        "written": written,
        "engines": engines,
        "runtime": str(config.get("runtime", "")),
        "facts": _facts(provenance),
        # Stages of the workflow and what they took: jobs, wall_s, cpu_s.
        "stages": provenance.get("stages", {}),
        # The settings of make by which the same is run again.
        "settings": f"TIER={name}" + (f" ENGINES={chosen}" if chosen else ""),
        # Of when these results are, and of what: for the foot of every page.
        "whose": "; ".join(part for part in whose if part) + ".",
    }


def _when(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _facts(provenance: dict[str, Any]) -> list[tuple[str, str]]:
    simulate, platform = provenance.get("simulate", {}), provenance.get("platform", {})
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
    for engine in provenance.get("engines", {}).values():
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


TEMPLATES = Path(__file__).parents[1] / "templates"
ASSETS = TEMPLATES.with_name("assets")


class _Dense(jinja2.ext.Extension):
    """Takes the indentation out of templates: a thirtieth of a page's size."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return "\n".join(line.lstrip() for line in source.splitlines() if line.strip())


def short_title(study: Study) -> str:
    """Return the family names of a paper's authors: the first of more than two, and others."""
    names = [author.split()[-1] for author in study.bibliography.authors]
    return " & ".join(names) if len(names) < 3 else f"{names[0]} et al."


def plain_environment() -> jinja2.Environment:
    """Return the templates' environment for a page of no report."""
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
        number=numbers.number,
        percent=numbers.percent,
        plausible=plausible,
        published=numbers.published,
        table_texts=table_texts,
        unit=numbers.display_unit,
        verdict=badge,
    )
    return made


def environment(source: Source) -> jinja2.Environment:
    """Return the templates' environment for the pages of `source`."""
    made = plain_environment()
    made.filters["short_title"] = short_title
    made.filters["unsaid_unit"] = unsaid_unit
    made.filters["script_json"] = script_json
    made.globals.update(
        verdicts=BADGES,
        studies=list(source.studies.values()),
        ran=ran(source.provenance),
        several_engines=len(source.engines) > 1,
        further_pages=_further_pages(source),
        up="",
        results=source.downloads,
    )
    return made


def _further_pages(source: Source) -> dict[str, str]:
    """Return the pages that only some reports have, by their names in the order of the menu."""

    is_there = {"engines": bool(source.engines), "maps": (source.data / MAPS_TABLE).is_file()}
    return {name: title for name, title in REPORT_PAGES.items() if is_there.get(name)}


def write_page(source: Source, folder: Path, name: str, **shown: object) -> None:
    """Fill the template `name` with `shown` and write the page of that name."""
    page = name.removesuffix(".html")
    text = environment(source).get_template(name).render(page=page, **shown)
    write_text(folder / name, text)
