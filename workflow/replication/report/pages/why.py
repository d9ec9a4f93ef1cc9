"""Why: the section of a study's page on its best explanation."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.report.charts.explanation import waterfall
from replication.report.parts.figure import FigureView, write_figures
from replication.report.parts.verdicts.explanation import Explanation, explanation_of, title_of
from replication.study.study import Study


@dataclass(frozen=True)
class BesideTraces:
    """How near runs come to the raw traces, by one metric.

    Attributes
    ----------
    metric, unit
        What is compared.
    flows, nearer
        How many published flows, and how many of them are nearer under the explanation.
    before, after, own
        Median Wasserstein distance at the defaults, under the explanation, and between the traces'
        own flows of one kind.
    """

    metric: str
    unit: str
    flows: int
    nearer: int
    before: float | None
    after: float | None
    own: float | None


@dataclass(frozen=True)
class WhyView:
    """The section.

    Attributes
    ----------
    explanation
        What is said.
    figure
        Its waterfall; None where nothing is found.
    equally_good, nearest
        Changes in words, and by how many bits they are worse.
    never_together
        Claims that no set-up has both of, in sentences.
    beside_traces
        Of each metric: how near runs come to the distributions of the raw traces.
    """

    explanation: Explanation
    figure: FigureView | None
    equally_good: list[tuple[str, float]]
    nearest: list[tuple[str, float]]
    never_together: list[str]
    beside_traces: list[BesideTraces]


def why_view(root: Path, data: Path, study: Study, out: Path) -> WhyView | None:
    """Return the section, its chart written below `out`; None where nothing was searched.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        Whose page it is.
    out
        The report's folder.
    """
    found = explanation_of(root, data, study)
    if found is None:
        return None
    document = found.document
    figures = []
    if found.is_found and document["leaving"]:
        titles = {(one["atom"], one["level"]): title_of(one) for one in document["atoms"]}
        named = [titles[one["atom"], one["level"]] for one in document["leaving"]]
        figures = write_figures([waterfall(study.id, document["leaving"], named)], out)
    return WhyView(
        found,
        figures[0] if figures else None,
        [_scored(one) for one in document["equally_good"][1:]],
        [_scored(one) for one in document["nearest"]],
        [_apart(pair) for pair in document["never_together"]],
        _beside_traces(document.get("distances", [])),
    )


def _beside_traces(rows: Sequence[Mapping[str, Any]]) -> list[BesideTraces]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append(row)
    return [
        BesideTraces(
            metric,
            own[0]["unit"],
            len(own),
            sum(row["after"] < row["before"] for row in own),
            *(_median_of(own, what) for what in ("before", "after", "own")),
        )
        for metric, own in found.items()
    ]


def _median_of(rows: Sequence[Mapping[str, Any]], what: str) -> float | None:
    known = [row[what] for row in rows if row[what] is not None]
    return statistics.median(known) if known else None


def _scored(one: Mapping[str, Any]) -> tuple[str, float]:
    named = ", ".join(f"{atom}={level}" for atom, level in one["atoms"])
    return named or "the documented defaults", float(one["worse_by_bits"])


def _apart(pair: Mapping[str, Any]) -> str:
    return (
        f"{pair['one']} holds in {pair['holds_one']} and {pair['other']} in "
        f"{pair['holds_other']} of {pair['set_ups']} set-ups, both in none "
        f"({pair['expected']:.1f} expected if they had nothing to do with one another)."
    )
