"""Mutations of one study's real results, tolerances, tests and published numbers, from the release.

Each must flip exactly the verdicts that depend on the change, and no other.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from replication.base.files import read_yaml
from replication.design.config import load_study
from replication.metrics.cell_map import map_cells
from replication.metrics.results import Results
from replication.report.release import released_results
from replication.study.claim_model import Claim, Condition, NotTestable
from replication.study.published import read_published
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

from tests.unit.conftest import ROOT

#: Claims of other kinds on the same runs.
PLANTED = read_yaml(Path(__file__).parent / "planted_claims.yaml")["claims"]
PAPER = load_study(ROOT, "nishitha")
STUDY = PAPER.model_copy(
    update={"claims": [*PAPER.claims, *(Claim.model_validate(claim) for claim in PLANTED)]}
)
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
    audit = [f for f in audit_study(study, cells) if f.finding == Verdict.IMPOSSIBLE]
    broken = {(f.table, f.row, f.column): f.reason for f in audit}
    engines = Coverage.of_all(study, results)
    rows = evaluate_cells(cells, engines, broken)
    cells = {(row.table, row.row, row.column): row.verdict for row in rows}
    claims = {c.id: evaluate_claim(c, engines)[0].verdict for c in study.claims}
    return cells | claims


BEFORE = verdicts()


def flipped(after):
    assert after.keys() == BEFORE.keys()
    return {key: word for key, word in after.items() if word != BEFORE[key]}


def mutated(variants, environments, column, factor, more):
    """Return the results with one column changed for the flows of some points."""
    levels = {"variant": variants, "environment": environments}
    runs = RESULTS.runs("homogeneous", levels)
    table = RESULTS.flows.copy()
    chosen = table["scenario"].isin(runs["scenario"]) & table["flow"].isin(["tcp1", "tcp2"])
    assert chosen.sum() == 2 * len(runs) > 0
    table[column] = table[column].where(~chosen, factor * table[column] + more)
    return replace(RESULTS, flows=table, memo={})


HOLDS, FAILS = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
LOSSY = ["reno", "sack1", "tahoe", "newreno"]
FAST = ["fast_fast"]


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        # Half the throughput at one point: that cell.
        ((["newreno"], FAST, "throughput_bps", 0.5, 0), {("5.5", *FAST, "throughput"): FAILS}),
        # 5 % more delay: outside its cell's tolerance as before, but not its twin's.
        ((["reno"], ["fast_ethernet"], "delay_mean_s", 1.05, 0), {"twins": FAILS}),
        # Fewer packets delivered: that cell; nothing can be lost, so the claim is forced as before.
        (
            (["vegas"], FAST, "packets_received", 0.9, 0),
            {("5.2", *FAST, "delivery_ratio"): FAILS},
        ),
        # With losses, which no bound allows: Vegas avoids them and delivers most, and variants that
        # could not differ can now be compared.
        (
            (LOSSY, ENVIRONMENTS, "packets_dropped", 1, 50),
            {"avoided": HOLDS, "more": FAILS, "c03": HOLDS},
        ),
    ],
)
def test_a_perturbed_result_flips_the_verdicts_that_rest_on_it(mutation, expected):
    assert flipped(verdicts(results=mutated(*mutation))) == expected


def tolerating(table, column, **tolerance):
    """Return the study with a different tolerance for one column of one table."""
    document = STUDY.model_dump(mode="json", by_alias=True)
    (changed,) = (candidate for candidate in document["tables"] if candidate["id"] == table)
    changed["columns"][column]["tolerance"] = {"reason": "a test", **tolerance}
    return Study.model_validate(document)


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


def changed(claim, **change):
    """Return the study with one claim's test replaced or changed in parts."""
    claims = {known.id: known for known in STUDY.claims}
    test = change.get("test") or claims[claim].test.model_copy(update=change)
    claims[claim] = claims[claim].model_copy(update={"test": test})
    return STUDY.model_copy(update={"claims": [*claims.values()]})


@pytest.mark.parametrize(
    "claim", [c.id for c in STUDY.claims if BEFORE[c.id] != Verdict.NOT_TESTABLE]
)
def test_a_claim_that_is_no_longer_tested_loses_its_own_verdict(claim):
    test = NotTestable(kind="not_testable", reason="a test")
    assert flipped(verdicts(changed(claim, test=test))) == {claim: Verdict.NOT_TESTABLE}


@pytest.mark.parametrize(
    ("claim", "change", "word"),
    [
        # What any result meets is no test.
        ("c01", {"expect": Condition(at_least=0.0)}, Verdict.NOT_TESTABLE),
        ("c02", {"relation": "above"}, Verdict.NOT_REPRODUCED),
        ("delays", {"margin": 0.9}, Verdict.NOT_TESTABLE),
        ("c02", {"factor": 0.5}, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_perturbed_claim_test_flips_that_claim(claim, change, word):
    assert flipped(verdicts(changed(claim, **change))) == {claim: word}


def printing(key, **change):
    """Return the published numbers with one cell changed."""
    changes = {key: change}
    numbers = [replace(n, **changes.pop((n.table, n.row, n.column), {})) for n in NUMBERS]
    assert not changes
    return numbers


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
    after = verdicts(numbers=printing(key, value=value, printed=printed))
    assert flipped(after) == {key: word}
