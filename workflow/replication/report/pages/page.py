"""Parts of all pages: templates, provenance, figures and downloads.

Each chart is static SVG in its page, for printing and for browsers without scripts, and a script
file that is loaded when the chart comes into view. It is a script because a page opened from the
file system may not fetch JSON.
"""

import datetime
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import jinja2
import jinja2.ext
from markupsafe import Markup

from replication.base.files import digest_of, write_text
from replication.base.table import REGIONS_TABLE
from replication.engines.catalogue import package_warning
from replication.metrics.metric_model import capitalised, metric_label
from replication.report.charts.data import levels_in_brief, proper, unsaid_unit
from replication.report.charts.figure import Figure
from replication.report.pages import shown
from replication.report.pages.assumptions import plausible
from replication.report.pages.causes import Causes
from replication.report.pages.formulas import with_formulas
from replication.report.pages.source import Source
from replication.study.study import Bibliography, Study
from replication.verdicts.verdict_table import WHAT
from replication.verdicts.wording import lower

#: The report's other pages in the menu, and their titles.
FURTHER_PAGES = {"regions": "Where it holds", "engines": "Engines", "method": "Method"}


@dataclass(frozen=True)
class Ran:
    """What provenance.json says was run.

    `warnings` are of engines whose packages differ from the locked ones, `again` has the arguments
    of make that repeat the run, and `whose` is the footer of every page.
    """

    tier: str
    quick: bool
    written: str
    provenance: dict[str, Any]
    warnings: list[str]
    again: str
    whose: str


def ran(provenance: dict[str, Any]) -> Ran:
    """Return what provenance.json says was run."""
    tier, engines = provenance["tier"], provenance["engines"]
    moment = datetime.datetime.fromisoformat(provenance["written"])
    written = f"{moment:%Y-%m-%d %H:%M %Z}"
    versions = [f"{name} {engine['version'].partition('+')[0]}" for name, engine in engines.items()]
    warnings = [package_warning(engine.get("package")) for engine in engines.values()]
    studies = provenance["config"].get("studies", "all")
    chosen = "" if studies == "all" else f" STUDIES={','.join(studies)}"
    return Ran(
        tier=tier["id"],
        quick="quick" in (tier["id"], tier["levels"]),
        written=written,
        provenance=provenance,
        warnings=[warning for warning in warnings if warning],
        again=f"TIER={tier['id']} ENGINES={','.join(engines)}{chosen}",
        whose=f"Results of {written}: tier {tier['id']}; engines {', '.join(versions)}.",
    )


class _Dense(jinja2.ext.Extension):
    """Removes the indentation of templates, which is a thirtieth of a page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return "\n".join(line.lstrip() for line in source.splitlines() if line.strip())


def short_titles(studies: Mapping[str, Study]) -> dict[str, str]:
    """Return the short citation of each study.

    Studies of the same citation have their year, and their id where that does not suffice.
    """
    titles = {name: _short_title(study.bibliography) for name, study in studies.items()}
    years = {name: study.bibliography.year for name, study in studies.items()}
    for more in (years, {name: f"({name})" for name in studies}):
        counts = Counter(titles.values())
        for name, title in titles.items():
            if counts[title] > 1 and more[name]:
                titles[name] = f"{title} {more[name]}"
    return titles


def _short_title(paper: Bibliography) -> str:
    """Return how to cite a paper: as it says, or by its authors, "et al." for more than two."""
    if paper.short:
        return paper.short
    names = [_family_name(author) for author in paper.authors]
    return " & ".join(names) if len(names) < 3 else f"{names[0]} et al."


def _family_name(author: str) -> str:
    """Return the family name of "Given Family", "Given van Family" or "Family, Given"."""
    family, comma, _ = author.partition(",")
    if comma:
        return family
    *given, name = author.split()
    # Particles, such as "van der", belong to the family name.
    particles = list(itertools.takewhile(str.islower, reversed(given)))
    return " ".join([*reversed(particles), name])


def plain_environment() -> jinja2.Environment:
    """Return the environment of templates, without what pages of a report add."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parents[1] / "templates"),
        extensions=[_Dense],
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=with_formulas,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def environment(source: Source) -> jinja2.Environment:
    """Return the environment of templates for the pages of a report."""
    made = plain_environment()
    # Templates format the fields of rows by these, so that views need no copies.
    functions: list[Callable[..., Any]] = [levels_in_brief, metric_label, plausible, proper]
    functions += [capitalised, unsaid_unit, shown.amount, shown.interval, shown.number]
    functions += [shown.percent, shown.published, shown.shade]
    titles = short_titles(source.studies)
    made.filters.update({function.__name__: function for function in functions})
    made.filters.update(
        causes=Causes(source.root).shown,
        count="{:,}".format,
        duration=lambda seconds: str(datetime.timedelta(seconds=round(seconds))),
        picture=lambda figure: svg_of(figure.specification, figure.id),
        phrase=lower,
        short_title=lambda study: titles[study.id],
        unit=shown.display_unit,
        verdict=shown.BADGE_OF.__getitem__,
    )
    regions = (source.data / REGIONS_TABLE).is_file()
    is_there = {"engines": bool(source.engines), "regions": regions, "method": True}
    made.globals.update(
        verdicts=shown.BADGES,
        counted_words=WHAT,
        setups=shown.SETUPS,
        up="",
        studies=list(source.studies.values()),
        ran=ran(source.provenance),
        several_engines=len(source.engines) > 1,
        further_pages={n: title for n, title in FURTHER_PAGES.items() if is_there.get(n)},
        results=source.downloads,
    )
    return made


#: Results of a study that a reader can download as Parquet, with their meaning.
_STUDY_DOWNLOADS = {
    "design/{}.csv": "every point, replicate and scenario",
    "results/{}/flows.parquet": "every flow of every run",
    "results/{}/features.parquet": "metrics of every run that need its series",
    "results/{}/series.parquet": "the series that charts draw",
}


class Download(NamedTuple):
    """A file that a reader can download: its name in the report, where it is, and its meaning."""

    name: str
    path: Path
    meaning: str


def study_downloads(data: Path, study: str) -> list[Download]:
    """Return a study's downloads that exist in `data`."""
    downloads = []
    for pattern, meaning in _STUDY_DOWNLOADS.items():
        path = Path(pattern.format(study))
        if (data / path).is_file():
            name = path.with_suffix(".parquet").as_posix()
            downloads.append(Download(name, data / path, meaning))
    return downloads


def write_figures(figures: Sequence[Figure], out: Path) -> list[Figure]:
    """Write the scripts of figures below the report's folder `out`; return the figures."""
    for figure in figures:
        spec = {key: part for key, part in figure.specification.items() if key != "$schema"}
        spec["datasets"] = {key: _by_column(rows) for key, rows in spec["datasets"].items()}
        document = json.dumps(spec, separators=(",", ":"), allow_nan=False, default=str)
        chart = f"(window.replicationCharts ??= {{}})[{json.dumps(figure.id)}]"
        write_text(out / figure.script, f"{chart} = {document};\n")
    return list(figures)


def _by_column(records: Sequence[Mapping[str, Any]]) -> Any:
    """Return records as columns with each text stored once, which is at most half as large."""
    names = records[0] if records else {}
    return {name: _column([record[name] for record in records]) for name in names} or records


def _column(values: list[Any]) -> Any:
    if not all(isinstance(value, str) for value in values):
        return [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    words = {word: number for number, word in enumerate(dict.fromkeys(values))}
    runs = [(words[word], len(list(same))) for word, same in groupby(values)]
    if 2 * len(runs) < len(values):
        return {"of": list(words), "runs": runs}
    return {"of": list(words), "at": [words[value] for value in values]}


#: What a picture without scripts needs of the theme: no descriptions of single marks, which double
#: the size, and whole pixels.
_STATIC = {"aria": False, "scale": {"round": True}}
#: Fonts of readers may be a fifth wider than the one in which legends are laid out.
_LEGEND = {"columnPadding": 18, "layout": {"top": {"margin": 36}}}
#: Attributes that a static picture does not need, and values that are the default, or that of the
#: style sheet.
_UNUSED = {"class", "role", "aria-roledescription", "aria-hidden", "pointer-events"}
_UNUSED |= {"stroke-miterlimit"}
_DEFAULTS = {"stroke-width": "1", "opacity": "1", "font-weight": "normal"}
_DEFAULTS |= {"font-size": "11px", "font-family": "sans-serif"}
#: Wider static pictures, in pixels, scroll on a phone: narrowed to its screen they are illegible.
_WIDE = 700
#: So many marks of one look are worth a definition.
_OFTEN = 4
_MOVED = "translate("
_UNMOVED = {("transform", "translate(0,0)")}
#: The style sheets give text the colour of the page.
_TEXT_COLOUR = ("text", "fill")


def svg_of(specification: Mapping[str, Any], name: str) -> Markup:
    """Return a Vega-Lite specification as SVG in the page's text colour, reproducible by byte."""
    import vl_convert

    config = specification.get("config", {}) | _STATIC
    config["legend"] = config.get("legend", {}) | _LEGEND
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg({**specification, "config": config}))
    for element in root.iter():
        # A page needs no name spaces.
        element.tag = element.tag.rpartition("}")[2]
        for key, value in list(element.items()):
            if key in _UNUSED or _DEFAULTS.get(key) == value or (element.tag, key) == _TEXT_COLOUR:
                del element.attrib[key]
    _prune(root)
    name = digest_of(name.encode())[:6]
    _share_marks(root, name)
    size = {"viewBox": root.attrib["viewBox"], "width": root.attrib["width"]}
    look = "static wide" if float(size["width"]) >= _WIDE else "static"
    root.attrib = {"class": look, **size, "aria-hidden": "true"}
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    # Ids of clips must be unique in the page.
    return Markup(text.replace('id="clip', f'id="{name}clip').replace("(#clip", f"(#{name}clip"))


def _prune(element: ElementTree.Element) -> None:
    """Remove what nobody sees: empty outlines, hidden labels, and groups that only nest."""
    if element.tag == "clipPath":
        return
    kept: list[ElementTree.Element] = []
    for child in element:
        _prune(child)
        is_outline = child.tag == "path" and not child.attrib.keys() & {"stroke", "fill"}
        if is_outline or child.get("opacity") == "0" or (child.tag == "g" and not len(child)):
            continue
        is_bare = child.tag == "g" and set(child.items()) <= _UNMOVED
        kept.extend(child if is_bare else [child])
    element[:] = kept


def _share_marks(root: ElementTree.Element, name: str) -> None:
    """Define marks that are drawn often once, which makes a picture half as large."""
    moved: dict[str, list[ElementTree.Element]] = {}
    for mark in root.iter():
        if mark.tag in ("path", "line") and mark.get("transform", "").startswith(_MOVED):
            look = [mark.tag, *(item for item in mark.items() if item[0] != "transform")]
            moved.setdefault(repr(look), []).append(mark)
    shared = [marks for marks in moved.values() if len(marks) >= _OFTEN]
    definitions = ElementTree.Element("defs")
    for number, marks in enumerate(shared):
        first = ElementTree.SubElement(definitions, marks[0].tag, {"id": f"{name}m{number}"})
        for mark in marks:
            x, y = mark.attrib.pop("transform").removeprefix(_MOVED).rstrip(")").split(",")
            first.attrib |= mark.attrib
            mark.tag, mark.attrib = "use", {"href": f"#{name}m{number}"}
            if x != "0":
                mark.set("x", x)
            if y != "0":
                mark.set("y", y)
    if shared:
        root.insert(0, definitions)
