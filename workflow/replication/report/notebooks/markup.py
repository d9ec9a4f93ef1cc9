"""Markup that notebooks show: tables and text, escaped and the same on every machine."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replication.report.drawing.figure import three_digits


@dataclass(frozen=True)
class Html:
    """Markup that a notebook shows."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return "(a table or text)"


def rounded(value: object) -> str:
    """Return a number with three significant digits; a dash where there is none."""
    return three_digits(float(value)) if isinstance(value, float | int) else "–"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> str:
    """Return a table, its cells escaped."""
    titles = "".join(f"<th>{text(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return (
        f"<table><caption>{text(caption)}</caption><thead><tr>{titles}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>\n"
    )


def text(value: object) -> str:
    """Return a value as escaped text; a dash where there is none."""
    return html.escape("–" if value is None or value != value else str(value))
