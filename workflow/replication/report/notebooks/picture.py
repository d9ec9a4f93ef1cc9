"""What notebooks show: charts in the report's theme, and a paper's questions, gaps and claims.

A chart is stored as Vega-Lite, which JupyterLab shows with hover and selection, and as a PNG for
GitHub and the report's pages, which run no scripts.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from replication.design.input_hashes import value_hash
from replication.report.charts import figure as draw
from replication.report.charts.cells import verdict_look as look_of_verdicts
from replication.report.charts.data import over_replicates
from replication.report.charts.figure import Drawing
from replication.report.charts.run import topology_lines
from replication.report.pages.assumptions import plain, plausible
from replication.study.study import parameters_of
from replication.study.verdict import Verdict
from replication.verdicts.self_consistency import FAILS

if TYPE_CHECKING:
    from replication.report.notebooks.collection import Collection

#: MIME type that JupyterLab draws.
VEGA_LITE = "application/vnd.vegalite.v5+json"
#: Replaces a conclusion that these results do not support.
NOT_CONCLUDED = "Not concluded from these results."
#: Symbols of verdicts, which are shown next to their words.
SYMBOLS = dict(zip(Verdict, ("●", "▲", "✕", "–", "■"), strict=True))


@dataclass(frozen=True)
class Picture:
    """A chart for the last line of a cell; `alt` describes its axes and result."""

    chart: Drawing
    alt: str

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        specification = _lean(draw.themed(self.chart).to_dict(validate=False))
        data = {
            VEGA_LITE: specification,
            # IPython encodes bytes itself.
            "image/png": draw.to_png(specification),
            "text/plain": f"({self.alt})",
        }
        return data, {"image/png": {"alt": self.alt}}


def look(frame: pd.DataFrame, column: str, line: bool = False) -> dict[str, Any]:
    """Return the encodings of a column: colours with symbols, or with dashes for a `line`."""
    order = levels(frame, column)
    if line:
        return {
            "color": draw.colours(column, order, lines=True),
            "strokeDash": draw.dashes(column, order),
        }
    return {"color": draw.colours(column, order), "shape": draw.symbols(column, order)}


def verdict_look(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the encodings of the column `verdict`, as in the report."""
    found = look_of_verdicts(frame["verdict"])
    return {"color": found["color"], "shape": found["shape"]}


def levels(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the values in a column, ordered by its categories or by appearance."""
    values = frame[column].dropna()
    is_ordered = isinstance(values.dtype, pd.CategoricalDtype)
    known = values.cat.remove_unused_categories().cat.categories if is_ordered else values.unique()
    return [str(value) for value in known]


def mean_interval(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return mean, 95 % t interval (low, high; from three replicates) and n of a column."""
    means = over_replicates(frame, by, value=value, sort=True).rename(columns={"mean": value})
    for name in by:
        means[name] = means[name].astype(frame[name].dtype)
    return means


def _lean(specification: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with only the columns that it draws and six digits of each number.

    Altair names a data set by a hash of all digits, and the last ones differ between processors,
    so data sets get a new name.
    """
    drawn = json.dumps({name: part for name, part in specification.items() if name != "datasets"})
    kept = {
        altair_name: [
            {
                name: float(f"{value:.6g}") if isinstance(value, float) else value
                for name, value in row.items()
                if name in drawn
            }
            for row in rows
        ]
        for altair_name, rows in specification.get("datasets", {}).items()
    }
    names = {altair_name: f"data-{value_hash(rows)}" for altair_name, rows in kept.items()}
    for altair_name, name in names.items():
        drawn = drawn.replace(json.dumps(altair_name), json.dumps(name))
    return {**json.loads(drawn), "datasets": {names[key]: rows for key, rows in kept.items()}}


@dataclass(frozen=True)
class Html:
    """HTML that a notebook shows."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return "(a table or text)"


@dataclass(frozen=True)
class Text:
    """Markdown that a notebook shows."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


def topology(scenario: Mapping[str, Any]) -> Text:
    """Return a scenario's links and flows, one line each."""
    lines = "\n".join(topology_lines(scenario))
    return Text(f"```text\n{lines}\n```")


def _rounded(value: object) -> str:
    return draw.three_digits(float(value)) if isinstance(value, float | int) else "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> Html:
    titles = "".join(f"<th>{_text(title)}</th>" for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return Html(
        f"<table><caption>{_text(caption)}</caption><thead><tr>{titles}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>\n"
    )


def _text(value: object) -> str:
    return html.escape("–" if value is None or value != value else str(value))


def question(collection: Collection, study: str, kind: str) -> Html:
    """Return the paper and the questions of its experiments of a type."""
    document = collection.study(study)
    paper = document.bibliography
    year = f", {paper.year}" if paper.year else ""
    head = f"<p><cite>{_text(paper.title)}</cite> ({_text(', '.join(paper.authors))}{year})</p>"
    items = "".join(
        f"<li><b>{_text(e.title)}</b>: {_text(e.question)} ({_text(e.place)})</li>"
        for e in document.experiments
        if e.type == kind
    )
    return Html(f"{head}<ul>{items}</ul>")


def unstated(collection: Collection, study: str, experiment: str) -> pd.DataFrame:
    """Return the assumptions of an experiment: value, plausible range, reason."""
    document = collection.study(study)
    parameters = parameters_of(document, collection.experiment(study, experiment))
    rows = []
    for name, p in parameters.items():
        if p.assumed is not None:
            reason = " ".join(p.assumed.reason.split())
            rows.append((name, plain(p.value), p.unit or "", plausible(p.assumed), reason))
    return pd.DataFrame(rows, columns=["parameter", "value", "unit", "plausible", "reason"])


def verdicts(claims: pd.DataFrame) -> Html:
    """Return a table of claims: the paper's words, and the verdict on each engine."""
    if claims.empty:
        return Html("<p>No claim is made about these experiments.</p>")
    rows = []
    for _, group in claims.groupby("claim", sort=False):
        records = group.to_dict("records")
        marks = "; ".join(_mark(row) for row in records if row["verdict"] != Verdict.NOT_TESTABLE)
        undecided = f"{SYMBOLS[Verdict.NOT_TESTABLE]} {Verdict.NOT_TESTABLE}"
        first = records[0]
        rows.append((f"“{first['quote']}” ({first['place']})", marks or undecided))
    counts = claims["verdict"].value_counts()
    said = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
    return _table(["The paper's words", "Verdict"], rows, f"Verdicts by claim and engine: {said}")


def numbers(cells: pd.DataFrame) -> Html:
    """Return a table of published and measured numbers, one row for each engine."""
    rows = []
    for row in cells[cells["n"] > 0].to_dict("records") if len(cells) else []:
        factor = row["display_factor"]
        deviation = row["relative_deviation"]
        rows.append(
            (
                f"{row['table']}: {row['row_label']}, {row['column_label']}",
                row["engine"],
                _rounded(factor * row["published"]),
                _rounded(factor * row["reproduced_mean"]),
                row["display_unit"],
                "–" if deviation is None or deviation != deviation else f"{100 * deviation:+.1f} %",
                f"{SYMBOLS[Verdict(row['verdict'])]} {row['verdict']}",
            )
        )
    if not rows:
        return Html("<p>The paper prints no number that these runs reach.</p>")
    head = ["Number", "Engine", "Published", "Measured", "Unit", "Deviation", "Verdict"]
    return _table(head, rows, "Published numbers")


def _mark(row: Mapping[Any, Any]) -> str:
    verdict = Verdict(row["verdict"])
    notes = [row["reason_code"]] if row["reason_code"] else []
    notes += ["the paper's own numbers fail this test"] if row["result"] == FAILS else []
    words = f" ({', '.join(notes)})" if notes else ""
    return f"{row['engine']} {SYMBOLS[verdict]} {verdict}{words}"
