"""Figures on the page, as scripts and as static pictures, and the tables to download.

A chart's specification is a script file of its own, loaded when the chart comes into view: a page
from the file system may not fetch JSON, and a page with all its charts would be slow to open. Its
static picture is SVG in the page, for printing and for browsers without scripts; symbols that are
drawn many times are drawn once and used, which makes it a third as large.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from replication.report.charts.figure import Figure, short
from replication.study.files import write_text

#: Results of a study that a reader can download: name for readers, file in the data, what they are.
_STUDY_DOWNLOADS = (
    ("design/{}.parquet", "design/{}.csv", "every point, replicate and scenario"),
    ("results/{}/flows.parquet", "results/{}/flows.parquet", "every flow of every run"),
    (
        "results/{}/features.parquet",
        "results/{}/features.parquet",
        "what was read off the series of every run",
    ),
    ("results/{}/series.parquet", "results/{}/series.parquet", "the series that charts draw"),
)


def study_downloads(data: Path, study: str) -> list[tuple[str, Path, str]]:
    """Return the downloads of a study whose files are in `data`: name, file and meaning."""
    every = (
        (name.format(study), data / file.format(study), meaning)
        for name, file, meaning in _STUDY_DOWNLOADS
    )
    return [found for found in every if found[1].is_file()]


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


def picture(figure: Figure) -> Markup:
    """Return a figure as SVG in the page's ink."""
    return svg_of(figure.specification(), figure.id)


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
