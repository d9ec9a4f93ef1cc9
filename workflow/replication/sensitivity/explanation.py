"""Explanations: what the experiments say on each published table and claim, made of numbers.

No sentence says more than the rows it is made from: its words are fixed, its numbers, names and
verdicts are the evidence's.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from replication.judge.claim import REPRODUCED
from replication.sensitivity.forensics import EXPLAINS, HELPS, REJECTED, UNTESTABLE
from replication.sensitivity.robustness import TOO_FEW
from replication.sensitivity.robustness_rows import RobustnessRows
from replication.sensitivity.verdict_point import STATED
from replication.study.claim_model import Claim, NotTestable
from replication.study.sensitivity_settings import Scale
from replication.study.study import Study
from replication.study.table import Row

#: How many assumptions of a fit's setting a sentence names; the CSV has all.
SHOWN_VALUES = 6


@dataclass(frozen=True)
class TableExplanation:
    """A heading and its sentences."""

    id: str
    title: str
    sentences: list[str]


def table_explanations(study: Study, rows: RobustnessRows) -> list[TableExplanation]:
    """Return the explanation of each published table that was tested."""
    explanations = []
    for table in study.tables:
        sentences = [
            *_cells(rows, table.id),
            *_hypotheses(rows, table.id),
            *_fit(rows, table.id),
            *_left(rows, table.id),
        ]
        if sentences:
            explanations.append(TableExplanation(table.id, table.title, sentences))
    return explanations


def claim_sentence(row: Row, claim: Claim, scale: Scale) -> str:
    """Return what the designs say of one claim: what makes it hold or fail, or what was rejected.

    Parameters
    ----------
    row
        The claim's row of claims.csv.
    claim, scale
        The claim, and the scale of the exploration: they say why nothing decides it.
    """
    if row["designs"] == "0" and row["tested_alone"] == "0":
        return _undecided(claim, scale)
    sentences = []
    if row["designs"] != "0":
        sentences.append(
            f"Holds in {row['holds']} of {row['designs']} designs ({_percent(row['share'])}, "
            f"interval {_percent(row['low'])} to {_percent(row['high'])})."
        )
    if row["word"] == TOO_FEW:
        sentences.append("So few designs decide it that none of the words is given.")
    if row["reduced_scale_differs"] == "true":
        sentences.append(_scale_differs(row, scale))
    sentences.append(_alone(row))
    if row["seeds_alike"] != row["seeds"]:
        sentences.append(
            f"Chance alone moves it: {row['seeds_alike']} of {row['seeds']} seeds agree with the "
            "first."
        )
    if row["important"]:
        sentences.append(
            f"What decides over all designs: {row['important']} (R² {_two(row['r2'])})."
        )
    return " ".join(sentences)


def _scale_differs(row: Row, scale: Scale) -> str:
    """Say how the verdict changes with length, levels and replicates, all else being equal."""
    if row["verdict_default"] == REPRODUCED:
        return (
            f"Made to hold by the scale alone: {row['verdict_tier']} in full, reproduced with the "
            f"same settings in the design's runs. How these differ: {scale.reason.strip()}"
        )
    return (
        f"Reduced scale differs: {row['verdict_default']} there with the defaults, "
        f"{row['verdict_tier']} in full."
    )


def _alone(row: Row) -> str:
    """Return which single changes flip a claim, or how many were tested and rejected."""
    holds = row["verdict_default"] == REPRODUCED
    if row["flipped_by"]:
        return f"{'Fails' if holds else 'Made to hold'} by one change alone: {row['flipped_by']}."
    if holds:
        return f"None of {row['tested_alone']} single changes makes it fail."
    return (
        f"Tested and rejected: none of {row['tested_alone']} single changes, listed below, makes "
        "it hold."
    )


def _undecided(claim: Claim, scale: Scale) -> str:
    if isinstance(claim.test, NotTestable):
        return f"Not testable at any scale: {claim.test.reason}"
    needed = {wanted.experiment for wanted in claim.quantities()}
    absent = sorted(needed - set(scale.experiments or needed))
    if absent:
        return (
            f"Not explored: experiment {', '.join(absent)}, which it needs, costs too much at "
            "every design point and was left out. Nothing is known of its robustness."
        )
    return "Not testable at the reduced scale: no design runs the levels or the time that it needs."


@dataclass(frozen=True)
class CellGap:
    """A published number outside tolerance: its cause with evidence, or what was rejected.

    `settled` is false where no hypothesis decides the number, so that neither is known.
    """

    table: str
    row: str
    column: str
    cause: str
    evidence: str
    settled: bool


def cell_gaps(rows: RobustnessRows) -> list[CellGap]:
    """Return every number that is not inside tolerance at the defaults, in the tables' order."""
    titles = {row["hypothesis"]: row["title"] for row in rows.hypotheses}
    reached = {(row["table"], row["row"], row["column"]): row for row in rows.cells}
    gaps = []
    for row in rows.explained:
        if row["inside_before"] == "true" and row["impossible"] != "true":
            continue
        causes, rejected = (_names(row[name]) for name in ("explained_by", "rejected"))
        key = (row["table"], row["row"], row["column"])
        parts = []
        if row["impossible"] == "true":
            parts.append("impossible: it breaks a bound of the paper's own set-up (audit)")
        if causes:
            parts.append("brought inside by: " + "; ".join(_lower(titles[c]) for c in causes))
        if not parts and rejected:
            parts.append("none found")
        evidence = f"{len(causes) + len(rejected)} hypotheses tested, {len(rejected)} rejected"
        if rejected:
            evidence += f": {', '.join(rejected)}"
        gaps.append(
            CellGap(
                *key,
                cause="; ".join(parts) or "no hypothesis decides it",
                evidence=f"{evidence}. {_reach(reached.get(key))}".strip(),
                settled=bool(parts),
            )
        )
    return gaps


def _names(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]


def _reach(row: Row | None) -> str:
    """Return how near the explored settings come to a published number."""
    if row is None or not row["published_in_range"]:
        return "Its level is not among those explored."
    inside = f", {_percent(row['share_inside'])} of designs inside" if row["share_inside"] else ""
    lies = "in" if row["published_in_range"] == "true" else "outside"
    return (
        f"Published {_short(row['published'])}, {lies} the range of all designs "
        f"({_short(row['lowest'])} to {_short(row['highest'])} {row['unit']}{inside})."
    )


def _short(text: str) -> str:
    return f"{float(text):.4g}"


def _cells(rows: RobustnessRows, table: str) -> list[str]:
    cells = [row for row in _of(rows.explained, table) if row["inside_before"]]
    reached = _of(rows.cells, table)
    sentences = []
    if cells:
        inside = sum(row["inside_before"] == "true" for row in cells)
        sentences.append(
            f"With the defaults {inside} of {len(cells)} numbers lie inside tolerance (one run)."
        )
    known = [row for row in reached if row["published_in_range"]]
    if known:
        within = sum(row["published_in_range"] == "true" for row in known)
        sentences.append(
            f"Over all plausible settings that were run, the published value lies in the range "
            f"reached for {within} of {len(known)} numbers."
        )
    return sentences


def _of(rows: list[Row], table: str) -> list[Row]:
    return [row for row in rows if row["table"] == table]


def _hypotheses(rows: RobustnessRows, table: str) -> list[str]:
    found = _of(rows.hypotheses, table)
    sentences = []
    for row in found:
        if row["outcome"] in (EXPLAINS, HELPS):
            verb = "explains the table" if row["outcome"] == EXPLAINS else "helps only in part"
            sentences.append(
                f"{row['title']}: {verb} ({row['inside_after']} of {row['cells']} inside, "
                f"{row['inside_before']} without it; {row['brought_inside']} brought inside)."
            )
    for word, start in (
        (REJECTED, "Tested and rejected, no more numbers inside than without"),
        (UNTESTABLE, "Not testable here"),
    ):
        titles = [_lower(row["title"]) for row in found if row["outcome"] == word]
        if titles:
            sentences.append(f"{start} ({len(titles)}): {'; '.join(titles)}.")
    return sentences


def _fit(rows: RobustnessRows, table: str) -> list[str]:
    sentences = []
    for row in _of(rows.fits, table):
        values = json.loads(row["values"])
        if int(row["inside_fitted"]) <= int(row["default_inside_fitted"]):
            sentences.append(
                f"Fit: none of {_tried(row)} does better than the defaults on the half of the "
                f"numbers that it may see ({row['inside_fitted']} of {row['cells_fitted']} inside)."
            )
            continue
        shown = ", ".join(f"{k} = {json.dumps(v)}" for k, v in list(values.items())[:SHOWN_VALUES])
        more = len(values) - SHOWN_VALUES
        shown += f" and {more} more" if more > 0 else ""
        reading = "" if row["reading"] == STATED else f", reading {row['reading']}"
        better = int(row["inside_judged"]) > int(row["default_inside_judged"])
        carries = "it carries over" if better else "it does not carry over and explains nothing"
        sentences.append(
            f"Fit, best of {_tried(row)} ({shown or 'defaults'}{reading}): "
            f"{row['inside_fitted']} of {row['cells_fitted']} inside on the half that it may see "
            f"(defaults {row['default_inside_fitted']}), {row['inside_judged']} of "
            f"{row['cells_judged']} on the half that it has not seen (defaults "
            f"{row['default_inside_judged']}): {carries}. {_unique(row)}"
        )
    return sentences


def _tried(row: Row) -> str:
    return (
        f"{row['tried']} settings ({row['searched']} of them added by the search) under "
        f"{row['readings']} readings"
    )


def _unique(row: Row) -> str:
    others = int(row["equally_good"])
    if not others:
        return "No other setting does as well on the half that it may see."
    return (
        f"It is not unique: {others} other setting{'s' * (others > 1)} "
        f"do{'es' * (others == 1)} as well on the half that it may see."
    )


def _left(rows: RobustnessRows, table: str) -> list[str]:
    outside = [row for row in _of(rows.explained, table) if row["inside_before"] == "false"]
    if not outside:
        return []
    causes = Counter(cause for row in outside for cause in _names(row["explained_by"]))
    without = [row for row in outside if not row["explained_by"]]
    sentences = []
    if causes:
        named = ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())
        sentences.append(f"Of {len(outside)} numbers outside, brought inside by: {named}.")
    impossible = sum(row["impossible"] == "true" for row in without)
    if without:
        fewest = min(len(_names(row["rejected"])) for row in without)
        sentences.append(
            f"{len(without)} numbers stay outside under every hypothesis tested ({fewest} or more)"
            + (f"; {impossible} of them are impossible by the audit." if impossible else ".")
        )
    return sentences


def _lower(title: str) -> str:
    """Return a title for the middle of a sentence; acronyms stay as they are."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f} %"


def _two(text: str) -> str:
    return f"{float(text):.2f}"
