"""What the exploration says of a claim, in a sentence made of numbers.

No sentence says more than the rows it is made from: its words are fixed, its numbers, names and
verdicts are the evidence's.
"""

from __future__ import annotations

from replication.sensitivity.robustness import TOO_FEW
from replication.study.claim_model import Claim, NotTestable
from replication.study.sensitivity_settings import Scale
from replication.study.storage.table import Row
from replication.study.verdict import Verdict


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
    if row["verdict_default"] == Verdict.REPRODUCED:
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
    holds = row["verdict_default"] == Verdict.REPRODUCED
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


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f} %"


def _two(text: str) -> str:
    return f"{float(text):.2f}"
