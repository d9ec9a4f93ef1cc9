"""What notebooks show: charts in the report's theme, and tables of claims and numbers.

A chart is stored as Vega-Lite, which JupyterLab shows with hover and selection, and as a PNG for
GitHub and the report's pages, which run no scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
from IPython.display import HTML, Markdown

from replication.design.input_hashes import value_hash
from replication.report.charts import figure as draw
from replication.report.charts.data import over_replicates
from replication.report.charts.figure import Drawing
from replication.report.charts.run import topology_lines
from replication.study.verdict import Verdict
from replication.verdicts.self_consistency import FAILS

#: MIME type that JupyterLab draws.
VEGA_LITE = "application/vnd.vegalite.v5+json"
#: Replaces a conclusion that these results do not support.
NOT_CONCLUDED = "Not concluded from these results."
#: The column of verdicts under the textbook set-up.
TEXTBOOK = "Textbook set-up"
#: Symbols of verdicts, which are shown next to their words.
SYMBOLS = dict(zip(Verdict, ("●", "▲", "✕", "–", "■"), strict=True))
#: Width of a picture, which is that of a page's text, and what the axis of the first panel in a row
#: and those of further panels need of it.
WIDTH, _FIRST_AXIS, _FURTHER_AXIS = 960, 80, 55
#: Labels of an axis that would touch are left out; one as wide as a page has about a dozen.
_AXIS, _WIDE_AXIS = {"labelOverlap": "greedy", "labelSeparation": 6}, {"tickCount": 12}


@dataclass(frozen=True)
class Picture:
    """A chart for the last line of a cell; `alt` describes its axes and result."""

    chart: Drawing
    alt: str

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        specification = _lean(_wide(draw.themed(self.chart).to_dict(validate=False)))
        data = {
            VEGA_LITE: specification,
            # IPython encodes bytes itself.
            "image/png": draw.to_png(specification),
            "text/plain": f"({self.alt})",
        }
        return data, {"image/png": {"alt": self.alt}}


def look(frame: pd.DataFrame, column: str, line: bool = False) -> dict[str, Any]:
    """Return the encodings of a column: colours with symbols, or with dashes for a `line`."""
    return draw.look(column, levels(frame, column), line, WIDTH)


def levels(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the values in a column, ordered by its categories or by appearance."""
    values = frame[column].dropna()
    is_ordered = isinstance(values.dtype, pd.CategoricalDtype)
    known = values.cat.remove_unused_categories().cat.categories if is_ordered else values.unique()
    return [str(value) for value in known]


def line_name(
    x: float, y: float, words: str, encoded: Mapping[str, Any], above: bool = True
) -> Drawing:
    """Return words that end at a point of a line, above or below it, in the axes `encoded`."""
    place: dict[str, Any] = {"baseline": "top", "dy": 5}
    if above:
        place = {"baseline": "bottom", "dy": -4}
    named = {axis: channel["shorthand"].split(":")[0] for axis, channel in encoded.items()}
    row = {named["x"]: x, named["y"]: y, "words": words}
    name = alt.Chart(pd.DataFrame([row])).mark_text(align="right", dx=-2, color=draw.INK, **place)
    return name.encode(text="words:N", **encoded)


def mean_interval(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return mean, 95 % t interval (low, high; from three replicates) and n of a column."""
    means = over_replicates(frame, by, value=value, sort=True).rename(columns={"mean": value})
    for name in by:
        means[name] = means[name].astype(frame[name].dtype)
    return means


def _wide(specification: dict[str, Any]) -> dict[str, Any]:
    """Return the specification as wide as a page, with titles in as many lines as they need.

    Widths that the chart states are kept. Panels in a row state once what their axes measure.
    """
    wide = dict(specification)
    wide["config"] = {**wide.get("config", {}), "axisQuantitative": _AXIS}
    if isinstance(wide.get("title"), str):
        wide["title"] = draw.lines_of(wide["title"], WIDTH)
    key = next((name for name in ("concat", "hconcat", "vconcat") if name in wide), None)
    if key is None:
        is_faceted = "spec" in wide or "row" in wide.get("encoding", {})
        if not is_faceted and "width" not in wide:
            wide |= {"width": WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
            wide["config"]["axisXQuantitative"] = _WIDE_AXIS
        return wide
    panels = wide[key]
    columns = {"vconcat": 1, "hconcat": len(panels)}.get(key) or wide["columns"]
    if columns == 1:
        wide["config"]["axisXQuantitative"] = _WIDE_AXIS
    width = (WIDTH - _FIRST_AXIS - _FURTHER_AXIS * (columns - 1)) // columns
    drawn = []
    for place, panel in enumerate(panels):
        is_below = place + columns < len(panels)
        title = panel.get("title")
        shown = {**panel, "title": draw.lines_of(title, width)} if isinstance(title, str) else panel
        shown = {"width": width} | _untitled(shown, "y", panels[0], place % columns > 0)
        drawn.append(_untitled(shown, "x", panels[min(place + columns, len(panels) - 1)], is_below))
    return wide | {key: drawn}


def _untitled(
    panel: dict[str, Any], axis: str, neighbour: dict[str, Any], is_inner: bool
) -> dict[str, Any]:
    """Return an inner panel without the title of an axis that its neighbour has as well."""
    titles = _titles(panel, axis)
    if not is_inner or len(titles) != 1 or titles != _titles(neighbour, axis):
        return panel
    bare = dict(panel)
    if "encoding" in bare and axis in bare["encoding"]:
        bare["encoding"] = {**bare["encoding"], axis: {**bare["encoding"][axis], "title": None}}
    if "layer" in bare:
        bare["layer"] = [_untitled(layer, axis, layer, True) for layer in bare["layer"]]
    return bare


def _titles(panel: dict[str, Any], axis: str) -> set[str]:
    """Return what the titles of an axis say in a panel and its layers."""
    title = panel.get("encoding", {}).get(axis, {}).get("title")
    below = (_titles(layer, axis) for layer in panel.get("layer", []))
    return set().union({title} if title else set(), *below)


def _lean(specification: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with only the columns that it draws and six digits of each number.

    Altair names a data set by a hash of all digits, and the last ones differ between processors,
    so data sets get a new name.
    """
    said = json.dumps({name: part for name, part in specification.items() if name != "datasets"})
    drawn, datasets = said, {}
    for altair_name, rows in specification.get("datasets", {}).items():
        kept = [{name: _six(value) for name, value in row.items() if name in said} for row in rows]
        name = f"data-{value_hash(kept)}"
        drawn, datasets[name] = drawn.replace(json.dumps(altair_name), json.dumps(name)), kept
    return {**json.loads(drawn), "datasets": datasets}


def _six(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def topology(scenario: Mapping[str, Any]) -> Markdown:
    """Return a scenario's links and flows, one line each."""
    lines = "\n".join(topology_lines(scenario))
    return Markdown(f"```text\n{lines}\n```")


def verdicts(claims: pd.DataFrame) -> HTML | Markdown:
    """Return a table of claims: the paper's words, and the verdict on each engine."""
    if claims.empty:
        return Markdown("No claim is made about these experiments.")
    undecided, rows = f"{SYMBOLS[Verdict.NOT_TESTABLE]} {Verdict.NOT_TESTABLE}", []
    for _, of_claim in claims.groupby("claim", sort=False):
        first, *_ = records = of_claim.to_dict("records")
        marks = [_mark(row) for row in records if row["verdict"] != Verdict.NOT_TESTABLE]
        words = f"“{first['quote']}” ({first['place']})"
        rows.append((words, "; ".join(marks) or undecided, _textbook_marks(records)))
    counts = claims["verdict"].value_counts()
    said = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
    frame = pd.DataFrame(rows, columns=["The paper's words", "Verdict", TEXTBOOK])
    if "textbook" not in claims:
        frame = frame.drop(columns=TEXTBOOK)
    return _table(frame, f"Verdicts by claim and engine: {said}.")


def numbers(cells: pd.DataFrame) -> HTML | Markdown:
    """Return a table of published and measured numbers, one row for each engine."""
    shown = cells[cells["n"] > 0] if len(cells) else cells
    if shown.empty:
        return Markdown("The paper prints no number that these runs reach.")
    rows = {
        "Number": shown["table"] + ": " + shown["row_label"] + ", " + shown["column_label"],
        "Engine": shown["engine"],
        "Published": shown["display_factor"] * shown["published"],
        "Measured": shown["display_factor"] * shown["reproduced_mean"],
        "Unit": shown["display_unit"],
        "Deviation": (100 * shown["relative_deviation"]).map(
            "{:+.1f} %".format, na_action="ignore"
        ),
        "Verdict": shown["verdict"].map(_with_symbol),
    }
    if "textbook" in shown:
        rows[TEXTBOOK] = shown["textbook"].map(_with_symbol, na_action="ignore")
    return _table(pd.DataFrame(rows), "Published numbers.")


def _table(frame: pd.DataFrame, words: str) -> HTML:
    with pd.option_context("display.max_colwidth", None):
        shown = frame.to_html(index=False, border=0, na_rep="–", float_format=draw.three_digits)
    return HTML(f"<p>{words}</p>\n{shown}")


def _mark(row: Mapping[Any, Any]) -> str:
    verdict = Verdict(row["verdict"])
    notes = [row["reason_code"]] if row["reason_code"] else []
    notes += ["the paper's own numbers fail this test"] if row["result"] == FAILS else []
    words = f" ({', '.join(notes)})" if notes else ""
    return f"{row['engine']} {_with_symbol(verdict)}{words}"


def _textbook_marks(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return the verdict under the textbook set-up on each engine that ran it."""
    ran = [row for row in rows if isinstance(row.get("textbook"), str)]
    return "; ".join(f"{row['engine']} {_with_symbol(row['textbook'])}" for row in ran)


def _with_symbol(verdict: str) -> str:
    return f"{SYMBOLS[Verdict(verdict)]} {verdict}"
