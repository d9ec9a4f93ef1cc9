"""Evaluation: files with fixed columns, and the same bytes twice."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.table import (
    CELL_COLUMNS,
    CLAIM_COLUMNS,
    SELF_CONSISTENCY_COLUMNS,
    read_rows,
    write_table,
    written,
)
from replication.study.setup import Setup
from replication.verdicts.evaluate import evaluate_study, merge
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import (
    COLUMNS,
    engine_coverage,
    primary_engine,
    read_cells,
    read_claims,
    read_table,
    write_verdicts,
)

from tests.unit.conftest import missing_from

FILES = ("audit.csv", "verdicts.parquet")

#: The primary engine of the studies.
ON_NS3 = {"synthetic": "ns3"}


def complete(world):
    """A study with a claim and a table, of which one published delay is impossible."""
    delay = {"metric": "delay_mean_s", "tolerance": {"relative": 0.1, "reason": "r"}}
    table = world.table({"delay": delay}).model_dump()["tables"]
    of = {"experiment": "sweep", "metric": "throughput_bps", "where": {"variant": "reno"}}
    study = world.claim({"kind": "value", "of": of, "expect": {"at_least": 1e5}}, tables=table)
    published = world.published(
        ("slow", "delay", "s", 0.1, "100"),
        ("mid", "delay", "s", 0.021, "21"),
        ("fast", "delay", "s", 0.1, "100"),
    )
    return study, published


def evaluate(world):
    study, published = complete(world)
    results = world.results(
        study, flows=lambda replicate, **_: {"throughput_bps": 4e5 + replicate / 3}
    )
    evaluate_study(study, published, [results], world.folder / "out")
    return world.folder / "out"


@pytest.fixture
def evaluated(world):
    return evaluate(world)


@pytest.fixture
def self_consistency(evaluated):
    """Write the further input of merging: self-consistency, which has no data on the claim."""
    row = {"study": "synthetic", "claim": "c1", "result": "none", "reason": ""}
    write_table(evaluated / SELF_CONSISTENCY, [row], SELF_CONSISTENCY_COLUMNS)


@pytest.mark.parametrize(("name", "columns"), [("cells", CELL_COLUMNS), ("claims", CLAIM_COLUMNS)])
@pytest.mark.usefixtures("self_consistency")
def test_the_csv_file_equals_the_typed_table(world, evaluated, name, columns):
    merge([evaluated], ON_NS3, world.folder / "all")
    rows = read_table(evaluated, name).to_pylist()
    texts = read_rows(world.folder / "all" / f"{name}.csv", columns)
    assert [{c: written(row[c]) for c in columns} for row in rows] == texts
    assert all(row["reason"] == " ".join(row["reasons"]) for row in rows)


def test_a_finding_of_the_audit_makes_a_cell_impossible(evaluated):
    slow, mid, _ = read_cells(evaluated)
    assert (slow.verdict, mid.verdict) == ("reproduced", "impossible")
    assert "propagation delay" in mid.reasons[0]


def test_verdict_rows_are_unchanged_after_writing_and_reading(world, evaluated):
    cells, claims = read_cells(evaluated), read_claims(evaluated)
    undefined = replace(cells[0], reproduced_low=math.nan, compatible=None)
    write_verdicts(world.folder / "again", [undefined, *cells[1:]], claims)
    again = read_cells(world.folder / "again")
    assert math.isnan(again[0].reproduced_low) and again[0].compatible is None
    assert (again[1:], read_claims(world.folder / "again")) == (cells[1:], claims)
    assert all(row.setup is Setup.DEFAULTS for row in (*again, *claims))


def test_evaluating_the_same_results_gives_the_same_bytes(world, evaluated):
    before = {name: (evaluated / name).read_bytes() for name in FILES}
    evaluate(world)
    assert before == {name: (evaluated / name).read_bytes() for name in FILES}


@pytest.mark.usefixtures("self_consistency")
def test_merged_files_contain_the_rows_of_all_studies_in_order(world, evaluated):
    merge([evaluated, evaluated], ON_NS3, world.folder / "all")
    rows = pd.read_csv(world.folder / "all" / SELF_CONSISTENCY)
    assert list(rows.columns) == list(SELF_CONSISTENCY_COLUMNS) and len(rows) == 2
    single, both = (pd.read_csv(f / "audit.csv") for f in (evaluated, world.folder / "all"))
    pd.testing.assert_frame_equal(both, pd.concat([single, single], ignore_index=True))
    for name in COLUMNS:
        typed_rows = read_table(evaluated, name).to_pylist()
        assert read_table(world.folder / "all", name).to_pylist() == typed_rows + typed_rows
    with pytest.raises(InputError, match=r"none/self_consistency\.csv"):
        merge([evaluated, world.folder / "none"], ON_NS3, world.folder / "all")


def design(**engines):
    """Rows of a design: engine to the points' refusals, empty where it runs the point."""
    rows = []
    for engine, refusals in engines.items():
        for number, refusal in enumerate(refusals):
            row = {"experiment": "e", "point": str(number), "engine": engine}
            rows.append(row | {"supported": str(not refusal), "reason": refusal})
    return rows


RAN, REFUSED = ["", ""], ["no queue 'codel'", "no queue 'codel'"]
ABSENT, REFUSES = "did not run", ("all 2 points", "codel")


@pytest.mark.parametrize(
    ("original", "engines", "expected", "facts"),
    [
        ("ns2", {"ns3": RAN, "ns2": RAN}, "ns2", ()),
        ("ns2", {"ns3": RAN, "ns2": ["no bbr", ""]}, "ns2", ()),
        ("linux", {"ns2": RAN, "ns3": RAN}, "ns3", ("ns3", "Linux", ABSENT)),
        ("ns2", {"ns2": REFUSED, "ns3": RAN}, "ns3", ("ns-2", *REFUSES)),
        ("ns3", {"ns2": RAN, "linux": RAN}, "ns2", ("ns2", "ns-3", ABSENT)),
        ("linux", {"ns2": REFUSED, "ns3": REFUSED}, "ns2", ("No engine", "ns2", *REFUSES)),
        ("ns3", {}, "", ("No engine",)),
    ],
)
def test_the_primary_engine_is_that_of_the_paper_if_it_ran(original, engines, expected, facts):
    chosen = primary_engine(original, engine_coverage(design(**engines)))
    assert chosen.engine == expected
    assert not missing_from(chosen.mark, *facts) and bool(facts) == bool(chosen.mark)


def test_coverage_counts_points_not_replicates():
    part = engine_coverage(design(ns2=["", "no bbr", "no prr", "no bbr"]) * 3)["ns2"]
    assert (part.ran, part.points) == (1, 4)
    assert part.reasons == ("no bbr", "no prr")
