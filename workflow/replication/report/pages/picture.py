"""Static pictures: each chart as SVG in the page, for printing and for browsers without scripts.

Symbols that are drawn many times are drawn once and used, which makes the picture a third as large.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from markupsafe import Markup

from replication.report.charts.figure import Figure

_MARK = re.compile(r"<(path|line)((?: [\w:-]+=\"[^\"]*\")*)(?:/>|></\1>)")
#: What nothing in a page that is read as one picture needs, or its style sheet says.
_NOISE = re.compile(
    r" (?:class|role|aria-[a-z-]+|pointer-events|stroke-miterlimit)=\"[^\"]*\""
    r"| font-(?:family=\"sans-serif\"|size=\"11px\")"
)
_PLACE = re.compile(r" transform=\"([^\"]*)\"")
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
    name = hashlib.sha256(name.encode()).hexdigest()[:6]
    text = _FRACTION.sub(r"\1", text).replace(".0,", ",").replace(' opacity="1"', "")
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
        return f'<use href="#{shared[looks(mark)]}"{place[0]}/>'

    definitions = "".join(f'<{look[:4]} id="{key}"{look[4:]}/>' for look, key in shared.items())
    text = _MARK.sub(used, text)
    return text.replace(">", f"><defs>{definitions}</defs>", 1) if shared else text
