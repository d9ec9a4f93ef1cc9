"""Why: the section of a study's page on its best explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.report.charts.explanation import waterfall
from replication.report.parts.figure import FigureView, write_figures
from replication.report.parts.verdicts.explanation import Explanation, explanation_of, title_of
from replication.study.study import Study


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
    """

    explanation: Explanation
    figure: FigureView | None
    equally_good: list[tuple[str, float]]
    nearest: list[tuple[str, float]]
    never_together: list[str]


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
    )


def _scored(one: Mapping[str, Any]) -> tuple[str, float]:
    named = ", ".join(f"{atom}={level}" for atom, level in one["atoms"])
    return named or "the documented defaults", float(one["worse_by_bits"])


def _apart(pair: Mapping[str, Any]) -> str:
    return (
        f"{pair['one']} holds in {pair['holds_one']} and {pair['other']} in "
        f"{pair['holds_other']} of {pair['set_ups']} set-ups, both in none "
        f"({pair['expected']:.1f} expected if they had nothing to do with one another)."
    )
