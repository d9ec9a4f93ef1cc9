"""Stories: what the experiments say on each published table and claim, made of numbers.

No sentence says more than the rows it is made from: its words are fixed, its numbers, names and
verdicts are the evidence's.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from replication.forensics import EXPLAINS, HELPS, REJECTED, UNTESTABLE
from replication.robustness_rows import RobustnessRows
from replication.study import Study
from replication.table import Row
from replication.verdict_point import STATED

#: How many assumptions of a fit's setting a sentence names; the CSV has all.
SHOWN_VALUES = 6


@dataclass(frozen=True)
class Story:
    """A heading and its sentences."""

    id: str
    title: str
    sentences: list[str]


def table_stories(study: Study, rows: RobustnessRows) -> list[Story]:
    """Return the story of each published table that was tested."""
    stories = []
    for table in study.tables:
        sentences = [
            *_cells(rows, table.id),
            *_hypotheses(rows, table.id),
            *_fit(rows, table.id),
            *_left(rows, table.id),
        ]
        if sentences:
            stories.append(Story(table.id, table.title, sentences))
    return stories


def claim_sentence(row: Row) -> str:
    """Return what the designs say of one claim."""
    if row["word"] == "not testable":
        return "Not testable at the reduced scale: no design decides it."
    sentence = (
        f"Holds in {row['holds']} of {row['designs']} designs ({_percent(row['share'])}, interval "
        f"{_percent(row['low'])} to {_percent(row['high'])})."
    )
    if row["reduced_scale_differs"] == "true":
        sentence += (
            f" Reduced scale differs: {row['verdict_default']} there with the defaults, "
            f"{row['verdict_tier']} in full."
        )
    if row["flipped_by"]:
        sentence += f" Flipped alone by {row['flipped_by']}."
    else:
        sentence += " No single change flips it."
    if row["seeds_alike"] != row["seeds"]:
        sentence += (
            f" Chance alone moves it: {row['seeds_alike']} of {row['seeds']} seeds agree with the "
            "first."
        )
    if row["important"]:
        sentence += f" What decides over all designs: {row['important']} (R² {_two(row['r2'])})."
    return sentence


def _cells(rows: RobustnessRows, table: str) -> list[str]:
    cells = [row for row in rows.explained if row["table"] == table]
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
                f"Fit: none of {row['tried']} settings and readings does better than the defaults "
                f"on the half of the numbers that it may see ({row['inside_fitted']} of "
                f"{row['cells_fitted']} inside)."
            )
            continue
        shown = ", ".join(f"{k} = {json.dumps(v)}" for k, v in list(values.items())[:SHOWN_VALUES])
        more = len(values) - SHOWN_VALUES
        shown += f" and {more} more" if more > 0 else ""
        reading = "" if row["reading"] == STATED else f", reading {row['reading']}"
        better = int(row["inside_judged"]) > int(row["default_inside_judged"])
        carries = "it carries over" if better else "it does not carry over and explains nothing"
        sentences.append(
            f"Fit, best of {row['tried']} settings and readings ({shown or 'defaults'}{reading}): "
            f"{row['inside_fitted']} of {row['cells_fitted']} inside on the half that it may see "
            f"(defaults {row['default_inside_fitted']}), {row['inside_judged']} of "
            f"{row['cells_judged']} on the half that it has not seen (defaults "
            f"{row['default_inside_judged']}): {carries}. {row['equally_good']} others do as well "
            "on the half that it may see."
        )
    return sentences


def _left(rows: RobustnessRows, table: str) -> list[str]:
    outside = [row for row in _of(rows.explained, table) if row["inside_before"] == "false"]
    if not outside:
        return []
    causes = Counter(cause for row in outside for cause in row["explained_by"].split("; ") if cause)
    without = [row for row in outside if not row["explained_by"]]
    sentences = []
    if causes:
        named = ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())
        sentences.append(f"Of {len(outside)} numbers outside, brought inside by: {named}.")
    if without:
        fewest = min(int(row["tested"]) for row in without)
        sentences.append(
            f"{len(without)} numbers stay outside under every hypothesis tested ({fewest} or more)."
        )
    return sentences


def _lower(title: str) -> str:
    """Return a title for the middle of a sentence; acronyms stay as they are."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f} %"


def _two(text: str) -> str:
    return f"{float(text):.2f}"
