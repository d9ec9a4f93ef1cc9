"""A page: its templates, what ran by its provenance, its figures and its downloads.

A chart's specification is a script file of its own, loaded when the chart comes into view: a page
from the file system may not fetch JSON, and a page with all its charts would be slow to open. Its
static picture is SVG in the page, for printing and for browsers without scripts; symbols that are
drawn many times are drawn once and used, which makes it a third as large.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
from markupsafe import Markup

from replication.engines.catalogue import package_warning
from replication.metrics.metric_model import metric_label
from replication.report.charts.data import proper, unsaid_unit
from replication.report.charts.figure import Figure, short
from replication.report.pages import shown as numbers
from replication.report.pages.assumptions import plausible
from replication.report.pages.shown import BADGE_OF, BADGES
from replication.report.pages.source import Source
from replication.study.files import write_text
from replication.study.study import REGIONS_TABLE, REPORT_PAGES, Study
from replication.verdicts.counts import WHAT
from replication.verdicts.wording import lower


def ran(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier, config = provenance.get("tier", {}), provenance.get("config", {})
    name = str(tier.get("id") or config.get("tier") or "unknown")
    engines = [
        (engine, str(known.get("version", "unknown version")))
        for engine, known in provenance.get("engines", {}).items()
    ]
    written = str(provenance.get("written", ""))
    if written:
        moment = datetime.datetime.fromisoformat(written)
        written = f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()
    versions = ", ".join(f"{one} {version.partition('+')[0]}" for one, version in engines)
    whose = f"Results{f' of {written}' if written else ''}: tier {name}"
    chosen = ",".join(engine for engine, _ in engines)
    selected = config.get("studies", "all")
    again = [f"TIER={name}", f"ENGINES={chosen}" if chosen else ""]
    again += [] if selected == "all" else [f"STUDIES={','.join(selected)}"]
    return {
        "tier": name,
        "tier_title": str(tier.get("title", "")),
        "quick": name == "quick" or tier.get("levels") == "quick",
        "engines": engines,
        "facts": list(_facts(provenance, written)),
        # Stages of the workflow and what they took: jobs, wall_s, cpu_s.
        "stages": provenance.get("stages", {}),
        # The settings of make by which the same is run again.
        "again": " ".join(filter(None, again)),
        # Of when these results are, and of what: for the foot of every page.
        "whose": f"{whose}; engines {versions}." if versions else f"{whose}.",
    }


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
        number=numbers.number,
        percent=numbers.percent,
        picture=lambda figure: svg_of(figure.specification(), figure.id),
        phrase=lower,
        plausible=plausible,
        proper=proper,
        published=numbers.published,
        shade=numbers.shade,
        short_title=short_title,
        span=numbers.span,
        times=numbers.times,
        unit=numbers.display_unit,
        unsaid_unit=unsaid_unit,
        verdict=BADGE_OF.__getitem__,
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


#: Results of a study that a reader can download, as Parquet, and what they are.
_STUDY_DOWNLOADS = {
    "design/{}": "every point, replicate and scenario",
    "results/{}/flows": "every flow of every run",
    "results/{}/features": "what was read off the series of every run",
    "results/{}/series": "the series that charts draw",
}


def study_downloads(data: Path, study: str) -> list[tuple[str, Path, str]]:
    """Return the downloads of a study whose files are in `data`: name, file and meaning."""
    found = []
    for stem, meaning in _STUDY_DOWNLOADS.items():
        name = stem.format(study)
        files = (data / f"{name}.parquet", data / f"{name}.csv")
        found += [(f"{name}.parquet", path, meaning) for path in files if path.is_file()]
    return found


def write_figures(figures: Sequence[Figure], out: Path) -> list[Figure]:
    """Write the scripts of `figures` below the report's folder `out`; return them."""
    for figure in figures:
        write_text(out / figure.script, chart_script(figure.id, figure.specification()))
    return list(figures)


def chart_script(name: str, spec: dict[str, Any]) -> str:
    """Return the script that hands a specification to the page's chart loader."""
    spec = {key: value for key, value in spec.items() if key != "$schema"}
    datasets = spec.get("datasets", {})
    if datasets:
        spec["datasets"] = {key: _columns(records) for key, records in datasets.items()}
    document = json.dumps(spec, separators=(",", ":"), allow_nan=False, default=str)
    return f"(window.replicationCharts ??= {{}})[{json.dumps(name)}] = {document};\n"


def _columns(records: list[dict[str, Any]]) -> Any:
    """Return records as columns, repeated words as numbers of a list: half the size and less."""
    names = list(records[0]) if records else []
    if not records or any(list(record) != names for record in records):
        return records
    return {name: _column([record[name] for record in records]) for name in names}


def _column(values: list[Any]) -> Any:
    if not all(isinstance(value, str) for value in values):
        return [short(value) for value in values]
    words = {word: number for number, word in enumerate(dict.fromkeys(values))}
    runs = [(words[word], len(list(same))) for word, same in groupby(values)]
    if 2 * len(runs) < len(values):
        return {"of": list(words), "runs": runs}
    return {"of": list(words), "at": [words[value] for value in values]}


_MARK = re.compile(r"<(path|line)((?: [\w:-]+=\"[^\"]*\")*)(?:/>|></\1>)")
#: What nothing in a page that is read as one picture needs, or its style sheet says.
_NOISE = re.compile(
    r" (?:class|role|aria-[a-z-]+|pointer-events|stroke-miterlimit)=\"[^\"]*\""
    r"| font-(?:family=\"sans-serif\"|size=\"11px\")| (?:stroke-width|opacity)=\"1\""
    r"| font-weight=\"normal\""
)
#: A path without colours is not seen: all is in a group that fills nothing.
_UNSEEN = re.compile(r"<path d=\"[^\"]*\"(?: display=\"none\")?/>")
_INKED = re.compile(r"(<text[^>]*?) fill=\"currentColor\"")
_PLACE = re.compile(r" transform=\"translate\(([^,]*),([^)]*)\)\"")
_TAG = re.compile(r"<[^>]*>")
_FRACTION = re.compile(r"(\.\d)\d+")
_FRACTION_DIGIT = re.compile(r"-?\d+\.\d")
_LONG = re.compile(r" d=\"[^\"]{600,}\"")
_SIZE = re.compile(r"<svg[^>]*? width=\"([\d.]+)\" height=\"([\d.]+)\"[^>]*>")
#: Marks that look alike are shared from this number on.
_SHARED = 4


def svg_of(specification: dict[str, Any], name: str) -> Markup:
    """Return a Vega-Lite specification as SVG in the page's ink, the same bytes each time."""
    import vl_convert

    # One description of the figure replaces one of each mark, which would double the size.
    config = specification.get("config", {}) | {"aria": False}
    text = _NOISE.sub("", vl_convert.vegalite_to_svg(specification | {"config": config}))
    text = _INKED.sub(r"\1", _UNSEEN.sub("", text))
    name = hashlib.sha256(name.encode()).hexdigest()[:6]
    # Places need no more digits; words, such as ticks of 0.01 and 0.02, keep theirs.
    text = _TAG.sub(lambda tag: _FRACTION.sub(r"\1", tag[0]).replace(".0,", ","), text)
    # A line through hundreds of points needs no fractions of a pixel.
    text = _LONG.sub(lambda path: _FRACTION_DIGIT.sub(_whole, path[0]), text)
    # Ids of clips are unique in a picture, and have to be in the page.
    text = text.replace('id="clip', f'id="{name}clip').replace("url(#clip", f"url(#{name}clip")
    width, height = _SIZE.search(text).groups()  # type: ignore[union-attr]
    head = f'<svg class="static" viewBox="0 0 {width} {height}" width="{width}" aria-hidden="true">'
    return Markup(_with_shared(_SIZE.sub(head, text, count=1), name))


def _whole(number: re.Match[str]) -> str:
    return f"{round(float(number[0]))}"


def _with_shared(text: str, name: str) -> str:
    """Return an SVG whose repeated marks are drawn once."""

    def looks(mark: re.Match[str]) -> str:
        return mark[1] + _PLACE.sub("", mark[2])

    counted = Counter(looks(mark) for mark in _MARK.finditer(text) if _PLACE.search(mark[2]))
    shared = {
        look: f"{name}m{number}"
        for number, (look, count) in enumerate(counted.items())
        if count >= _SHARED
    }

    def used(mark: re.Match[str]) -> str:
        place = _PLACE.search(mark[2])
        if place is None or looks(mark) not in shared:
            return mark[0]
        return f'<use href="#{shared[looks(mark)]}" x="{place[1]}" y="{place[2]}"/>'

    definitions = "".join(f'<{look[:4]} id="{key}"{look[4:]}/>' for look, key in shared.items())
    text = _MARK.sub(used, text)
    return text.replace(">", f"><defs>{definitions}</defs>", 1) if shared else text
