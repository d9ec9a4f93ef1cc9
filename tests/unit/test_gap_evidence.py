"""Every gap is explained, or what was tested and rejected is listed: over real results.

The fixture's tables of sensitivity are those of a whole `make sensitivity`.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from replication.judge.claim import REPRODUCED
from replication.measure.cell_map import map_cells
from replication.plan.config import load_study
from replication.sensitivity.explanation import cell_gaps, claim_sentence
from replication.sensitivity.robustness_rows import RobustnessRows
from replication.study.claim_model import NotTestable
from replication.study.published import read_published
from replication.study.sensitivity_settings import load_sensitivity

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "notebooks" / "fixture" / "sensitivity"
#: The studies that the fixture has the sensitivity of.
EXPLORED = sorted(path.name for path in FIXTURE.iterdir())
#: What a sentence on a claim that is not reproduced may rest on.
CAUSES = ("Made to hold by one change alone", "Made to hold by the scale alone")
REJECTED = "Tested and rejected: none of"
UNEXPLORED = ("Not explored: experiment", "Not testable at the reduced scale")


def settled(sentence):
    return REJECTED in sentence or any(cause in sentence for cause in CAUSES)


def rows_of(name):
    return RobustnessRows.load(FIXTURE / name, name)


def sentences(name, rows):
    """Return the sentence on each testable claim that is not reproduced, by id."""
    study = load_study(ROOT, name)
    scale = load_sensitivity(ROOT).of(name).exploration
    claims = {claim.id: claim for claim in study.claims}
    assert {row["claim"] for row in rows.claims} == claims.keys()
    return {
        row["claim"]: claim_sentence(row, claims[row["claim"]], scale)
        for row in rows.claims
        if (row["verdict_tier"] or row["verdict_default"]) != REPRODUCED
        and not isinstance(claims[row["claim"]].test, NotTestable)
    }


@pytest.mark.parametrize("name", ["nishitha", "saxena"])
def test_every_number_outside_tolerance_has_a_cause_or_its_rejected_hypotheses(name):
    rows = rows_of(name)
    numbers = read_published(ROOT / "data" / "published" / f"{name}.csv")
    published = {cell.key for cell in map_cells(load_study(ROOT, name), numbers)}
    assert {(r["table"], r["row"], r["column"]) for r in rows.explained} == published
    gaps = {(gap.table, gap.row, gap.column): gap for gap in cell_gaps(rows)}
    outside = {
        (r["table"], r["row"], r["column"]) for r in rows.explained if r["inside_before"] != "true"
    }
    assert outside <= gaps.keys()
    for gap in gaps.values():
        assert gap.settled, gap
        assert not gap.evidence.startswith("0 hypotheses"), gap


@pytest.mark.parametrize("name", ["nishitha", "saxena"])
def test_every_claim_not_reproduced_has_a_cause_or_its_rejected_changes(name):
    found = sentences(name, rows_of(name))
    assert found
    for claim, sentence in found.items():
        assert settled(sentence), (claim, sentence)


@pytest.mark.parametrize("name", EXPLORED)
def test_where_nothing_was_explored_the_claim_says_so(name):
    for claim, sentence in sentences(name, rows_of(name)).items():
        assert settled(sentence) or sentence.startswith(UNEXPLORED), (claim, sentence)


def test_without_evidence_a_gap_is_not_settled():
    rows = rows_of("nishitha")
    bare = [
        row | {"explained_by": "", "rejected": "", "impossible": "false"} for row in rows.explained
    ]
    gaps = cell_gaps(replace(rows, explained=bare))
    assert gaps and not any(gap.settled for gap in gaps)
