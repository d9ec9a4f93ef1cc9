"""What the five papers do not have, and a further one may: said as its study says it."""

import pandas as pd
import pytest
from replication.metrics.cell_map import map_cells
from replication.report.charts.data import Display, levels_in_brief, unsaid_unit
from replication.report.charts.points import describe_lines
from replication.study.parameter import Factor
from replication.study.published import read_published
from replication.verdicts.audit import CONSISTENT, SUSPICIOUS, audit_study

from tests.unit.conftest import PUBLISHED, tolerance

RETRANSMISSIONS = {"metric": "retransmissions", "aggregate": "sum", "tolerance": tolerance(0.1)}


def factor(labels, unit="Mbit/s", **changes):
    levels = [
        {"key": f"l{n}", "label": label, "value": float(n), "set": {}}
        for n, label in enumerate(labels)
    ]
    tags = {"id": "rate", "label": "Rate", "unit": unit, "published": PUBLISHED}
    return Factor.model_validate(tags | {"levels": levels} | changes)


def test_a_unit_that_labels_have_is_not_said_again():
    assert unsaid_unit(factor(["1 Mbit/s", "2 Mbit/s"])) == ""
    assert unsaid_unit(factor(["1", "2 Mbit/s"])) == "Mbit/s"
    assert unsaid_unit(factor(["1", "2"], unit="1")) == ""


def test_many_numbers_are_named_by_their_ends():
    assert levels_in_brief(factor(["1", "2"])) == "1, 2"
    many = factor([str(n) for n in range(40)])
    assert levels_in_brief(many) == "0 to 39 (40 levels)"


def lines(count):
    rows = [
        {"engine": "ns2", "series": f"start {n}", "x": x, "mean": n + x}
        for n in range(count)
        for x in (1.0, 2.0)
    ]
    frame = pd.DataFrame(rows)
    order = list(dict.fromkeys(frame["series"]))
    return describe_lines(frame, order, "Rate", Display("Throughput", "Mbit/s", 1.0))


def test_a_caption_lists_a_few_series_and_sums_up_many():
    assert "start 1 on ns2: from 2 at 1 to 3 Mbit/s at 2." in lines(3)
    assert "36 series on ns2: 1 to 37 Mbit/s." in lines(36)
    assert "start 1 on" not in lines(36)


def test_rows_and_columns_have_labels_of_their_own(world):
    rows = {
        "first": {"where": {"access": "slow"}, "label": "The first hop"},
        "last_hop": {"where": {"access": "fast"}},
    }
    columns = {
        "x": {**RETRANSMISSIONS, "label": "Packets sent again"},
        "y": RETRANSMISSIONS,
    }
    study = world.table(columns, rows=rows, row_factor=None)
    numbers = [(row, column, "packets", 8.0, "8") for row in rows for column in columns]
    cells = map_cells(study, read_published(world.published(*numbers)))
    found = [(cell.row_label, cell.column_label) for cell in cells]
    assert found[0] == ("The first hop", "Packets sent again")
    assert found[3] == ("last hop", "y")


@pytest.mark.parametrize("said", [None, "Means over 51 runs; no spread is printed."])
def test_a_mean_over_runs_is_no_surprise_where_the_paper_says_so(world, said):
    study = world.table({"x": RETRANSMISSIONS})
    system = study.original_system.model_copy(update={"repetitions": said})
    study = study.model_copy(update={"original_system": system})
    path = world.published(("slow", "x", "packets", 8.25, "8.25"))
    findings = audit_study(study, map_cells(study, read_published(path)))
    (found,) = [one for one in findings if one.check == "whole_number"]
    assert found.finding == (CONSISTENT if said else SUSPICIOUS)
    assert (said or "which is not said") in found.reason
