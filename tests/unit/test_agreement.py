"""Agreement of engines on a case small enough to count by hand, and results that moved."""

import csv
import json
import math
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.compare.agreement import (
    EngineDifferences,
    pairs_of,
    write_agreement,
)
from replication.compare.verdicts import (
    BEYOND,
    CELL,
    CLAIM,
    WITHIN,
    Compared,
    Judged,
    compare_results,
    write_differences,
)
from replication.report.manifest import RELEASED
from replication.report.release import results_in
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import read_cells, read_claims, write_verdicts

from tests.unit.conftest import ROOT, claim, missing_from, numbers_in, quantity, tolerance
from tests.unit.report_project import Project, example, faster_on_ns3


def value(at_least, **where):
    of = quantity(**where) | {"aggregate": "sum"}
    expect, direction = {"at_least": at_least}, {"at_least": 5e5}
    return {"kind": "value", "of": of, "expect": expect, "direction": direction}


#: Two flows: the statistic is twice what `flows` gives. ns3 has 8e5, ns2 6e5 at every point.
TESTS = {
    "same": value(5e5),
    "other": value(7e5),
    "unequal": value(5e5, variant=["reno", "vegas"]),
    "refused": value(5e5, variant="cubic"),
    "open": {"kind": "not_testable", "reason": "No loss is reported."},
}
#: Published: 0.8e6 is inside on ns3 only, 0.7e6 (15 %) on both, 0.1 on none (impossible is not).
PUBLISHED = [
    ("slow", "throughput", "bit/s", 8e5, "0.80"),
    ("mid", "throughput", "bit/s", 7e5, "0.70"),
    ("fast", "throughput", "bit/s", 1e5, "0.10"),
]
#: Refused by ns2: all of cubic, and vegas except at slow access.
ENGINES = ("ns3", "ns2", "linux")


def refusal(engine, levels):
    if engine == "linux":
        return "linux has no <b>tahoe</b>"
    if engine == "ns2" and levels["variant"] == "cubic":
        return "ns2 has no cubic"
    if engine == "ns2" and levels["variant"] == "vegas" and levels["access"] != "slow":
        return "ns2 has no vegas"
    return ""


def flows(engine, replicate, flow, **_):
    rate = {"ns3": 4e5, "ns2": 3e5}[engine] + 1000 * (replicate - 1)
    return {"throughput_bps": rate, "timeouts": 3 if engine == "ns2" else 0}


@pytest.fixture
def project(project):
    cell = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.15)}
    study = project.world.table({"throughput": cell}).model_dump(mode="json")
    study["claims"] = [claim(test, name) for name, test in TESTS.items()]
    # Not counted: it repeats another.
    study["claims"].append(claim(TESTS["same"], "again", repeats="same"))
    run = {"flows": flows, "engines": ENGINES, "refusal": refusal}
    project.add(Study.model_validate(study), PUBLISHED, **run)
    return project.root, project.data


def counts(pairs, kind):
    """Number of items of both, of those they decide, and of those on which they agree."""
    of_kind = [pair for pair in pairs if pair.kind == kind]
    agree = [pair.agrees for pair in of_kind if pair.agrees is not None]
    return len(of_kind), len(agree), sum(agree)


def test_agreement_of_engines_matches_a_count_by_hand(project):
    pairs = pairs_of(project[1], "synthetic")
    # An engine that refuses everything is left out.
    assert {pair.engines for pair in pairs} == {("ns3", "ns2")}
    # same and again: agree. other: reproduced on ns3 (8e5), direction only on ns2 (6e5). unequal:
    # agrees, on six and four points. refused and open: not testable on ns2.
    assert counts(pairs, CLAIM) == (6, 4, 3)
    # slow: inside on ns3, 25 % off on ns2. mid: 14 % off on both. fast: outside on both.
    assert counts(pairs, CELL) == (3, 3, 2)
    rows = read_claims(project[1] / "evaluation" / "synthetic")
    unequal = {row.engine: len(row.points) for row in rows if row.claim == "unequal"}
    assert unequal == {"ns3": 6, "ns2": 4, "linux": 0}


def test_impossible_numbers_are_left_out_of_the_agreement(project):
    _, data = project
    folder = data / "evaluation" / "synthetic"
    rows = [
        replace(row, verdict=Verdict.IMPOSSIBLE) if row.row == "fast" else row
        for row in read_cells(folder)
    ]
    write_verdicts(folder, rows, read_claims(folder))
    assert counts(pairs_of(data, "synthetic"), CELL) == (3, 2, 1)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    # Half-widths of 3 and 4 make 5 together, in quadrature.
    [(16.1, 24.1, "no"), (17.1, 25.1, "yes"), (math.nan, math.nan, "not known")],
)
def test_run_to_run_variation_adds_both_half_widths_in_quadrature(low, high, word):
    mean = 20.1 if math.isnan(low) else (low + high) / 2
    before = Judged(("1", "a", "b"), "reproduced", value=15.2, low=12.2, high=18.2)
    after = Judged(("1", "a", "b"), "reproduced", value=mean, low=low, high=high)
    compared = Compared(before, after)
    assert compared.beyond_noise == word
    assert compared.row()["relative_change"] == pytest.approx((mean - 15.2) / 15.2)


TIMER = {"id": "timer", "title": "Timer", "engines": {"ns3": "fine", "ns2": "coarse"}}
TIMER |= {"shows_in": ["timeouts"], "sources": ["RFC 6298"]}


def write(project, **difference):
    root, data = project
    known = EngineDifferences.model_validate(
        {"schema_version": 1, "differences": [TIMER | difference]}
    )
    write_text(root / "configs/engine_differences.yaml", known.model_dump_json())
    write_agreement(root, data, ["synthetic"])
    return {path.stem: list(csv.DictReader(path.open())) for path in data.glob("agreement*.csv")}


def test_each_disagreement_lists_the_difference_of_its_metrics(project):
    tables = write(project)
    assert len(tables["agreement_pairs"]) == 9
    rows = tables["agreement_contrasts"]
    by_metric = {row["metric"]: row for row in rows if row["group"] == "other"}
    # One flow's mean at the four points that both ran; three replicates, in pairs.
    rate = by_metric["throughput_bps"]
    assert (rate["left_mean"], rate["right_mean"], rate["n"]) == ("400000", "300000", "3")
    assert (rate["difference"], rate["low"], rate["high"]) == ("-100000", "-100000", "-100000")
    assert rate["differs"] == "true" and by_metric["retransmissions"]["differs"] == "false"
    assert {row["group"] for row in rows} == {"other", "1: throughput"}, "what agrees is left out"


@pytest.mark.parametrize(
    ("change", "is_offered"),
    [
        ({}, True),
        ({"concerns": {"congestion_controls": ["reno"]}}, True),
        ({"concerns": {"congestion_controls": ["cubic"]}}, False),
        ({"concerns": {"queues": ["droptail"]}}, True),
        ({"concerns": {"queues": ["red"]}}, False),
        ({"engines": {"ns3": "fine", "ns2": "fine", "linux": "finer"}}, False),
    ],
)
def test_a_known_difference_is_offered_only_for_its_algorithms_and_queues(
    project, change, is_offered
):
    rows = write(project, **change)["agreement_pairs"]
    assert {row["causes"] for row in rows} == ({"", "timer"} if is_offered else {""})
    assert all(row["agree"] == "false" for row in rows if row["causes"])


def test_known_differences_are_offered_despite_a_substituted_parameter(world, tmp_path):
    reason = "It merges no packets."
    substitution = {"engine": "ns2", "set": {"segment_bytes": 1000}, "reason": reason}
    document = example(world).model_dump(mode="json", exclude_none=True)
    study = Study.model_validate(document | {"substitutions": [substitution]})
    made = Project(world, tmp_path / "root")
    made.add(study, engines=("ns3", "ns2"), flows=faster_on_ns3)
    tables = write((made.root, made.data))
    assert {row["causes"] for row in tables["agreement_pairs"]} == {"", "timer"}


# -- two results side by side: what moved, beyond what noise, and where results are found ---------


@pytest.fixture
def results(tmp_path):
    """Two folders with the same cells and claims."""
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
        for name in ("cells.csv", "claims.csv", "provenance.json"):
            shutil.copy(ROOT / RELEASED / name, folder)
    return folders


def change(path, where, **fields):
    """Change fields of the first matching row by functions."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    index = next(index for index, row in rows.iterrows() if where(row))
    for name, new in fields.items():
        rows.loc[index, name] = new(rows.loc[index])
    rows.to_csv(path, index=False)
    return rows.loc[index]


def moved(results):
    return [item for item in compare_results(*results) if item.has_moved]


def test_identical_results_have_no_differences(results, tmp_path):
    assert compare_results(*results) and not moved(results)
    for sentence in write_differences(compare_results(*results), tmp_path / "out.csv"):
        compared, *changed = numbers_in(sentence)
        assert compared > 0 and not any(changed)
    assert not list(csv.DictReader((tmp_path / "out.csv").open()))


@pytest.mark.parametrize(("share", "word"), [(0.1, WITHIN), (5, BEYOND)])
def test_a_change_is_compared_with_both_confidence_intervals(results, share, word):
    low, mean, high = names = ("reproduced_low", "reproduced_mean", "reproduced_high")
    first = change(results[1] / "cells.csv", lambda row: row[low] and row[low] != row[mean])
    shift = share * (float(first[high]) - float(first[low]))
    moves = {name: lambda row, name=name: str(float(row[name]) + shift) for name in names}
    change(results[1] / "cells.csv", lambda row: row.equals(first), **moves)
    (item,) = moved(results)
    assert item.beyond_noise == word and item.row()["change"] == pytest.approx(shift, rel=1e-6)
    assert not item.verdict_moved


def test_a_changed_verdict_is_in_the_table_of_differences(results, tmp_path):
    reproduced = lambda row: row["verdict"] == "reproduced"  # noqa: E731
    was = change(results[1] / "claims.csv", reproduced, verdict=lambda row: "not reproduced")
    (item,) = moved(results)
    assert item.verdict_moved and item.beyond_noise == ""
    write_differences(compare_results(*results), tmp_path / "out.csv")
    (row,) = csv.DictReader((tmp_path / "out.csv").open())
    assert row["item"] == was["claim"] and (row["study"], row["kind"]) == (was["study"], "claim")
    assert (row["verdict_before"], row["verdict_after"]) == ("reproduced", "not reproduced")


def test_numbers_in_one_of_the_results_alone_are_not_counted_as_changed(results, tmp_path):
    table = pd.read_csv(results[1] / "cells.csv", dtype=str, keep_default_na=False)
    table.iloc[3:].to_csv(results[1] / "cells.csv", index=False)
    numbers, _ = write_differences(compare_results(*results), tmp_path / "out.csv")
    # Compared; changed, beyond noise, within it, without intervals; verdicts; in one alone.
    assert numbers_in(numbers) == [len(table) - 3, 0, 0, 0, 0, 0, 3]


def test_a_comparison_of_two_tiers_names_both(results, tmp_path):
    quick = json.loads((results[1] / "provenance.json").read_text())
    quick["tier"]["id"] = "quick"
    write_text(results[1] / "provenance.json", json.dumps(quick))
    tiers = [results_in(folder)[1] for folder in results]
    warning, *_ = write_differences(compare_results(*results), tmp_path / "out.csv", tiers)
    assert not missing_from(warning, *tiers) and set(tiers) == {"paper", "quick"}


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: .*cells\.csv"):
        results_in(tmp_path / "nowhere")
