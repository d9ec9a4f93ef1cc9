"""A page: the templates' environment, with what every page shows, and the file of its HTML."""

from __future__ import annotations

from pathlib import Path

import jinja2
import jinja2.ext

from replication.measure.metric_label import metric_label
from replication.report.drawing.data import unsaid_unit
from replication.report.parts.figure import script_json
from replication.report.parts.ledger import plausible
from replication.report.parts.ran import ran
from replication.report.parts.source import Source
from replication.report.parts.verdicts import number as numbers
from replication.report.parts.verdicts.verdict import BADGES, VACUOUS, badge
from replication.study.files import write_text
from replication.study.report_page import REPORT_PAGES, ReportPage
from replication.study.study import Study

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
        vacuous=VACUOUS,
        tallied=(*BADGES, VACUOUS),
        studies=list(source.studies.values()),
        ran=ran(source.provenance),
        several_engines=len(source.engines) > 1,
        further_pages=_further_pages(source),
        up="",
    )
    return made


def _further_pages(source: Source) -> dict[str, str]:
    """Return the pages that only some reports have, by their names in the order of the menu."""

    def is_there(page: ReportPage) -> bool:
        # What is made of no file of its own is made of runs.
        return (source.data / page.made_of).is_file() if page.made_of else bool(source.engines)

    return {page.name: page.title for page in REPORT_PAGES if page.title and is_there(page)}


def write_page(source: Source, folder: Path, name: str, **shown: object) -> None:
    """Fill the template `name` with `shown` and write the page of that name."""
    page = name.removesuffix(".html")
    text = environment(source).get_template(name).render(page=page, **shown)
    write_text(folder / name, text)
