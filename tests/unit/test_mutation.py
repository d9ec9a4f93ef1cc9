"""Mutations of one study's real results, tolerances, tests and published numbers, from the release.

Each must flip exactly the verdicts that hang on what was changed, and no other.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from replication.design.config import load_study
from replication.metrics.cell_map import map_cells
from replication.metrics.results import Results
from replication.report.released import released_results
from replication.study.claim_model import NotTestable
from replication.study.published import read_published
from replication.study.table_model import Tolerance
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim

ROOT = Path(__file__).parents[2]
STUDY = load_study(ROOT, "nishitha")
NUMBERS = read_published(ROOT / "data" / "published" / "nishitha.csv")
ALL = Results.load(released_results(ROOT), "nishitha")
#: On one engine, which runs every point, three replicates of each.
RESULTS = replace(
    ALL,
    design=ALL.design.query("engine == 'ns3' and replicate < 3").reset_index(drop=True),
    flows=ALL.flows[ALL.flows["engine"] == "ns3"].reset_index(drop=True),
    memo={},
)
ENVIRONMENTS = ("ethernet_ethernet", "ethernet_fast", "fast_fast", "fast_ethernet")


def verdicts(study=STUDY, results=RESULTS, numbers=NUMBERS):
    """Return the verdict on each cell, by table, row and column, and on each claim, by id."""
    cells = map_cells(study, numbers)
    audit = audit_study(study, cells)
    broken = {
        (f.table, f.row, f.column): f.reason for f in audit if f.finding == Verdict.IMPOSSIBLE
    }
    found = {
        (row["table"], row["row"], row["column"]): row["verdict"]
        for row in evaluate_cells(cells, study, results, broken)
    }
    return found | {
        claim.id: evaluate_claim(study, claim, results)[0]["verdict"] for claim in study.claims
    }


BEFORE = verdicts()


def flipped(after):
    assert after.keys() == BEFORE.keys()
    return {key: word for key, word in after.items() if word != BEFORE[key]}


# --- results ---


def mutated(variant, environment, column, change, flows=("tcp1", "tcp2")):
    """Return the results with one column changed for some flows of one point."""
    runs = RESULTS.runs("homogeneous", {"variant": [variant], "environment": [environment]})
    table = RESULTS.flows.copy()
    chosen = table["scenario"].isin(runs["scenario"]) & table["flow"].isin(flows)
    assert chosen.sum() == len(runs) * len(flows)
    table[column] = table[column].where(~chosen, change(table[column]))
    return replace(RESULTS, flows=table, memo={})


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        # Half the throughput at one point: that cell.
        (
            ("newreno", "fast_fast", "throughput_bps", lambda x: x / 2),
            {("5.5", "fast_fast", "throughput"): Verdict.NOT_REPRODUCED},
        ),
        # A twentieth more delay: outside its cell's tolerance as before, but not its twin's.
        (
            ("reno", "fast_ethernet", "delay_mean_s", lambda x: 1.05 * x),
            {"c10": Verdict.NOT_REPRODUCED},
        ),
        # Fewer packets delivered: that cell, and Vegas no longer delivers most.
        (
            ("vegas", "fast_fast", "packets_received", lambda x: 0.9 * x),
            {
                ("5.2", "fast_fast", "delivery_ratio"): Verdict.NOT_REPRODUCED,
                "c03": "direction only",
            },
        ),
    ],
)
def test_a_perturbed_result_flips_the_verdicts_that_rest_on_it(mutation, expected):
    assert flipped(verdicts(results=mutated(*mutation))) == expected


def test_losses_to_come_make_a_claim_that_they_are_avoided():
    runs = RESULTS.runs("homogeneous", {"variant": ["reno", "sack1", "tahoe", "newreno"]})
    table = RESULTS.flows.copy()
    table.loc[table["scenario"].isin(runs["scenario"]), "packets_dropped"] += 50
    after = verdicts(results=replace(RESULTS, flows=table, memo={}))
    assert flipped(after) == {"c05": Verdict.REPRODUCED}


# --- tolerances ---


def tolerating(table, column, **tolerance):
    """Return the study with another tolerance of one column of one table."""
    tables = []
    for one in STUDY.tables:
        columns = dict(one.columns)
        if one.id == table:
            given = Tolerance.model_validate({"reason": "a test", **tolerance})
            columns[column] = columns[column].model_copy(update={"tolerance": given})
        tables.append(one.model_copy(update={"columns": columns}))
    return STUDY.model_copy(update={"tables": tables})


@pytest.mark.parametrize(
    ("table", "column", "tolerance", "word"),
    [
        ("5.1", "throughput", {"absolute": 1.0}, Verdict.NOT_REPRODUCED),
        ("5.3", "throughput", {"relative": 0.5}, Verdict.REPRODUCED),
        ("5.1", "delay", {"relative": 1e-6}, Verdict.NOT_REPRODUCED),
        ("5.2", "delay", {"absolute": 1.0}, Verdict.REPRODUCED),
        ("5.4", "delivery_ratio", {"absolute": 0.1}, Verdict.REPRODUCED),
    ],
)
def test_a_perturbed_tolerance_flips_its_own_column(table, column, tolerance, word):
    cells = {(table, environment, column) for environment in ENVIRONMENTS}
    # What is impossible stays so, however wide the tolerance.
    expected = {k: word for k in cells if BEFORE[k] not in (word, Verdict.IMPOSSIBLE)}
    assert flipped(verdicts(tolerating(table, column, **tolerance))) == expected


# --- tests of claims ---


@pytest.mark.parametrize(
    "claim", [c.id for c in STUDY.claims if BEFORE[c.id] != Verdict.NOT_TESTABLE]
)
def test_a_claim_that_is_no_longer_tested_loses_its_own_verdict(claim):
    test = NotTestable(kind="not_testable", reason="a test")
    claims = [c.model_copy(update={"test": test}) if c.id == claim else c for c in STUDY.claims]
    assert flipped(verdicts(STUDY.model_copy(update={"claims": claims}))) == {
        claim: Verdict.NOT_TESTABLE
    }


@pytest.mark.parametrize(
    ("claim", "change", "word"),
    [
        ("c01", {"expect": {"at_least": 0.0}}, Verdict.REPRODUCED),
        ("c02", {"relation": "above"}, Verdict.NOT_REPRODUCED),
        ("c11", {"margin": 0.9}, Verdict.REPRODUCED),
        ("c13", {"factor": 0.5}, Verdict.REPRODUCED),
    ],
)
def test_a_perturbed_claim_test_flips_that_claim(claim, change, word):
    claims = []
    for one in STUDY.claims:
        if one.id == claim:
            document = one.model_dump(mode="json", by_alias=True)
            document["test"] |= change
            one = type(one).model_validate(document)
        claims.append(one)
    assert flipped(verdicts(STUDY.model_copy(update={"claims": claims}))) == {claim: word}


# --- published numbers, which the audit reads ---


def printing(table, row, column, value, printed):
    """Return the published numbers with another one in one cell."""
    chosen = [(n.table, n.row, n.column) == (table, row, column) for n in NUMBERS]
    assert sum(chosen) == 1
    return [
        replace(number, value=value, printed=printed) if is_chosen else number
        for number, is_chosen in zip(NUMBERS, chosen, strict=True)
    ]


@pytest.mark.parametrize(
    ("key", "value", "printed", "word"),
    [
        # A delay above the path's propagation is possible again, and ours.
        (("5.2", "ethernet_ethernet", "delay"), 0.08, "80.0000", Verdict.REPRODUCED),
        # More than the link carries.
        (("5.1", "fast_fast", "throughput"), 2.4e6, "2400.00", Verdict.IMPOSSIBLE),
        # More than was sent.
        (("5.3", "ethernet_fast", "delivery_ratio"), 1.2, "1.2", Verdict.IMPOSSIBLE),
        # Less than propagation.
        (("5.5", "fast_fast", "delay"), 0.03, "30.000", Verdict.IMPOSSIBLE),
    ],
)
def test_a_planted_number_flips_its_own_cell(key, value, printed, word):
    assert flipped(verdicts(numbers=printing(*key, value, printed))) == {key: word}
