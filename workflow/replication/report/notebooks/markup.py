"""Markup that notebooks show: tables, text and pictures, escaped and the same on every machine."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from replication.report.drawing.figure import Figure, three_digits


@dataclass(frozen=True)
class Html:
    """Markup that a notebook shows."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return "(a table or text)"


def show(figures: Iterable[Figure]) -> None:
    """Display each figure under its title; its description is the image's alternative text."""
    from IPython.display import display

    for figure in figures:
        display(Html(f"<h4>{text(figure.title)}</h4>"))  # type: ignore[no-untyped-call]
        display(Picture(figure))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Picture:
    """A figure that a notebook shows as an image with alternative text."""

    figure: Figure

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # Bytes: IPython encodes them, as it does for its own images.
        data = {"image/png": self.figure.png(), "text/plain": f"({self.figure.title})"}
        return data, {"image/png": {"alt": self.figure.description}}


def rounded(value: object) -> str:
    """Return a number with three significant digits; a dash where there is none."""
    return three_digits(float(value)) if isinstance(value, float | int) else "–"


def interval(low: Any, high: Any) -> str:
    """Return "low to high"; a dash where there is no interval."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "–"
    return f"{three_digits(low)} to {three_digits(high)}"


def percent(share: Any) -> str:
    """Return a share as a signed percentage; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:+.1f} %"


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
