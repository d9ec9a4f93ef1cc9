"""What notebooks show: charts in the one theme, tables and text, the same on every machine.

A chart is there with Vega-Lite for readers that run it and as a PNG. JupyterLab shows the first,
with hover and selection; GitHub and the report's pages, which run no script, show the second.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.design.input_hashes import value_hash
from replication.metrics.statistic import estimate
from replication.report.charts.cells import verdict_colours, verdict_symbols
from replication.report.charts.figure import (
    Drawing,
    colours,
    dashes,
    symbols,
    themed,
    three_digits,
    to_png,
)
from replication.report.charts.topology import Json, topology_lines

#: What JupyterLab runs.
VEGA_LITE = "application/vnd.vegalite.v5+json"
#: Replaces what these results do not support.
NOT_CONCLUDED = "Not concluded from these results."


@dataclass(frozen=True)
class Picture:
    """A chart that a notebook shows; `alt` says in words what is seen."""

    chart: Drawing
    alt: str

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        specification = _lean(themed(self.chart).to_dict(validate=False))
        data = {
            VEGA_LITE: specification,
            # Bytes: IPython encodes them, as it does for its own images.
            "image/png": to_png(specification),
            "text/plain": f"({self.alt})",
        }
        return data, {"image/png": {"alt": self.alt}}


def show(chart: Drawing, alt: str) -> Picture:
    """Return a chart for a cell's last line; `alt` says what is on the axes and what is seen."""
    return Picture(chart, alt)


def look(frame: pd.DataFrame, column: str, line: bool = False) -> dict[str, Any]:
    """Return the encodings that tell the values of a column apart, the same in every chart.

    Colours that the colour-blind can tell apart, each with a symbol of its own (of a line: dashes).
    The order is that of the column's categories, else of appearance.
    """
    order = levels(frame, column)
    if line:
        return {"color": colours(column, order, lines=True), "strokeDash": dashes(column, order)}
    return {"color": colours(column, order), "shape": symbols(column, order)}


def verdict_look(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the encodings of the column `verdict`: colour and symbol as in the report."""
    return {"color": verdict_colours(frame["verdict"]), "shape": verdict_symbols(frame["verdict"])}


def levels(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the values of a column in their order, those that are there."""
    values = frame[column]
    if isinstance(values.dtype, pd.CategoricalDtype):
        present = set(values.dropna())
        return [str(value) for value in values.cat.categories if value in present]
    return [str(value) for value in values.dropna().unique()]


def mean_interval(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return mean, 95 % t interval (low, high) and n of a column, over replicates.

    There is no interval below three replicates.
    """
    rows = []
    for key, group in frame.groupby(list(by), observed=True, sort=True):
        found = estimate(group[value].to_numpy(dtype=float))
        rows.append((*key, found.mean, found.low, found.high, found.n))
    means = pd.DataFrame(rows, columns=[*by, value, "low", "high", "n"])
    for name in by:
        means[name] = means[name].astype(frame[name].dtype)
    return means


def _lean(specification: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with the columns that it draws, six digits of each number.

    A data set is named after what is kept of it: Altair's name has every digit in it, and the last
    ones are not the same on every processor.
    """
    drawn = json.dumps({name: part for name, part in specification.items() if name != "datasets"})
    kept = {
        altair_name: [
            {name: _six_digits(value) for name, value in row.items() if name in drawn}
            for row in rows
        ]
        for altair_name, rows in specification.get("datasets", {}).items()
    }
    names = {altair_name: f"data-{value_hash(rows)}" for altair_name, rows in kept.items()}
    for altair_name, name in names.items():
        drawn = drawn.replace(json.dumps(altair_name), json.dumps(name))
    return {**json.loads(drawn), "datasets": {names[key]: rows for key, rows in kept.items()}}


def _six_digits(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Html:
    """Markup that a notebook shows."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return "(a table or text)"


@dataclass(frozen=True)
class Text:
    """Markdown that a notebook shows, computed from its numbers."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


def topology(scenario: Json) -> Text:
    """Return a scenario's links and flows, a line each."""
    lines = "\n".join(topology_lines(scenario))
    return Text(f"```text\n{lines}\n```")


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
