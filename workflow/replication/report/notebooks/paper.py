"""What a notebook says of a paper: its question, what it leaves open, and how its claims fared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from replication.report.notebooks.collection import Collection
from replication.report.notebooks.picture import Html, rounded, table, text
from replication.study.parameter import Parameter
from replication.study.study import parameters_of
from replication.study.verdict import Verdict
from replication.verdicts.self_consistency import FAILS

#: What is said of a claim whose test the paper's own data fail.
OWN_WORDS = "the paper's own data do not meet this claim"
#: A verdict at a glance; its word stands beside it.
SYMBOLS = dict(zip(Verdict, ("●", "▲", "✕", "–", "■"), strict=True))


def question(collection: Collection, study: str, kind: str) -> Html:
    """Return the paper, and what its experiments of a type ask."""
    document = collection.study(study)
    paper = document.bibliography
    year = f", {paper.year}" if paper.year else ""
    head = f"<p><cite>{text(paper.title)}</cite> ({text(', '.join(paper.authors))}{year})</p>"
    items = "".join(
        f"<li><b>{text(e.title)}</b>: {text(e.question)} ({text(e.place)})</li>"
        for e in document.experiments
        if e.type == kind
    )
    return Html(f"{head}<ul>{items}</ul>")


def unstated(collection: Collection, study: str, experiment: str) -> pd.DataFrame:
    """Return what the paper does not state of an experiment: value, plausible range, reason."""
    document = collection.study(study)
    parameters = parameters_of(document, collection.experiment(study, experiment))
    rows = [
        (name, _value(p), p.unit or "", _plausible(p), " ".join(p.assumed.reason.split()))
        for name, p in parameters.items()
        if p.assumed is not None
    ]
    return pd.DataFrame(rows, columns=["parameter", "value", "unit", "plausible", "reason"])


def verdicts(claims: pd.DataFrame) -> Html:
    """Return a line a claim: the paper's words, and the verdict on each engine that decided it."""
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
    return Html(
        table(["The paper's words", "Verdict"], rows, f"Verdicts by claim and engine: {said}")
    )


def numbers(cells: pd.DataFrame) -> Html:
    """Return the published numbers beside the measured ones, a line a number and engine."""
    rows = []
    for row in cells[cells["n"] > 0].to_dict("records") if len(cells) else []:
        factor = row["display_factor"]
        deviation = row["relative_deviation"]
        rows.append(
            (
                f"{row['table']}: {row['row_label']}, {row['column_label']}",
                row["engine"],
                rounded(factor * row["published"]),
                rounded(factor * row["reproduced_mean"]),
                row["display_unit"],
                "–" if deviation is None or deviation != deviation else f"{100 * deviation:+.1f} %",
                f"{SYMBOLS[Verdict(row['verdict'])]} {row['verdict']}",
            )
        )
    if not rows:
        return Html("<p>The paper prints no number that these runs reach.</p>")
    head = ["Number", "Engine", "Published", "Measured", "Unit", "Deviation", "Verdict"]
    return Html(table(head, rows, "Published numbers"))


def _mark(row: Mapping[Any, Any]) -> str:
    verdict = Verdict(row["verdict"])
    notes = [row["reason_code"]] if row["reason_code"] else []
    notes += [OWN_WORDS] if row["result"] == FAILS else []
    words = f" ({', '.join(notes)})" if notes else ""
    return f"{row['engine']} {SYMBOLS[verdict]} {verdict}{words}"


def _value(parameter: Parameter) -> str:
    value = parameter.value
    return value if isinstance(value, str) else json.dumps(value)


def _plausible(parameter: Parameter) -> str:
    assumed = parameter.assumed
    assert assumed is not None
    if assumed.range is not None:
        return f"{assumed.range[0]:g} to {assumed.range[1]:g}"
    return ", ".join("none" if c is None else str(c) for c in assumed.choices or [])
