"""The card: the first page in one picture, as a PNG to share and as a PDF of one page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from replication.judge.verdict_table import read_table
from replication.report.charts.cells import scatter_figure
from replication.report.drawing.figure import VERDICT_COLOURS, Figure
from replication.report.pages.overview import Overview, overview
from replication.report.parts.page import short_title
from replication.report.parts.source import Source
from replication.report.parts.verdicts.verdict import Tally
from replication.study.verdict import Verdict

WIDTH, HEIGHT, MARGIN = 1200, 630, 48
PNG, PDF = "card.png", "card.pdf"
#: Letters of a line at the card's text size.
_LINE = 104
_INK = "#1c2024"
_VACUOUS = "#d8d9d5"


def all_numbers(source: Source) -> list[Figure]:
    """Return the picture of all numbers; none where no number was printed.

    A number stands once: on the engine whose verdicts are its study's.
    """
    if not source.cells:
        return []
    cells = read_table(source.data / "cells.parquet").to_pandas()
    chosen = {name: found.engine for name, found in source.headlines.items()}
    titles = {name: short_title(study) for name, study in source.studies.items()}
    return [scatter_figure(cells[cells["engine"] == cells["study"].map(chosen)], titles)]


def write_card(source: Source, folder: Path) -> None:
    """Write the card into the report's folder; the PDF has the picture of all numbers too."""
    import vl_convert

    view = overview(source)
    card = _head(view) + _bars(view, 236)
    (folder / PNG).write_bytes(vl_convert.svg_to_png(_page(card, HEIGHT), scale=1.0))
    below = _picture(all_numbers(source), HEIGHT)
    page = _page(card + below, HEIGHT + (420 if below else 0))
    (folder / PDF).write_bytes(vl_convert.svg_to_pdf(page))


def _page(content: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" fill="{_INK}">'
        f'<rect width="{WIDTH}" height="{height}" fill="#fcfcfa"/>{content}</svg>'
    )


def _text(x: float, y: float, words: str, size: int, **style: str) -> str:
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x}" y="{y}" font-size="{size}"{more}>{escape(words)}</text>'


def _head(view: Overview) -> str:
    lines = textwrap.wrap(" ".join(view.answer), _LINE)
    title = _text(MARGIN, 84, "Do these papers\u2019 numbers hold?", 44, font_weight="bold")
    return title + "".join(
        _text(MARGIN, 128 + 28 * number, line, 20) for number, line in enumerate(lines)
    )


def _bars(view: Overview, top: int) -> str:
    """Return a bar a study, numbers and claims together, and what its colours mean."""
    rows = [row for row in view.rows if row.stands]
    step = min(58, (HEIGHT - top - 70) // max(1, len(rows)))
    drawn = ""
    for number, row in enumerate(rows):
        y = top + number * step
        drawn += _text(MARGIN, y + 22, textwrap.shorten(row.study.title, 46), 18)
        drawn += _bar((row.cells, row.claims), 500, y + 4, WIDTH - MARGIN - 500, min(26, step - 8))
    return drawn + _legend(HEIGHT - 36)


def _bar(tallies: tuple[Tally, Tally], x: float, y: float, width: float, height: float) -> str:
    counts = {str(verdict): sum(t.count(verdict) for t in tallies) for verdict in Verdict}
    counts["vacuous"] = sum(t.vacuous.count for t in tallies)
    total, drawn = sum(counts.values()), ""
    for word, count in counts.items():
        if count:
            size = width * count / total
            drawn += (
                f'<rect x="{x:.1f}" y="{y}" width="{size - 1:.1f}" height="{height}" '
                f'fill="{_colour(word)}"/>'
            )
            if size > 26:
                drawn += _text(
                    round(x + size / 2, 1), y + height / 2 + 5, str(count), 15, text_anchor="middle"
                )
            x += size
    return drawn


def _colour(word: str) -> str:
    return _VACUOUS if word == "vacuous" else VERDICT_COLOURS[Verdict(word)]


def _legend(y: float) -> str:
    x, drawn = float(MARGIN), ""
    for word in (*map(str, Verdict), "vacuous"):
        drawn += f'<rect x="{x}" y="{y - 13}" width="15" height="15" fill="{_colour(word)}"/>'
        drawn += _text(x + 22, y, word, 16)
        x += 60 + 8.6 * len(word)
    return drawn


def _picture(scatter: Sequence[Figure], top: float) -> str:
    if not scatter:
        return ""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(scatter[0].specification())
    drawn = drawn.replace("currentColor", _INK)
    size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', drawn)
    scale = min(1.25, (WIDTH - 2 * MARGIN) / float(size[1]), 400 / float(size[2])) if size else 1
    return f'<g transform="translate({MARGIN} {top}) scale({scale:.3f})">{drawn}</g>'
