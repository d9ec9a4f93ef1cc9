"""What the five papers do not have, and a further one may: said as its study says it."""

import pytest
from replication.metrics.cell_map import map_cells
from replication.study.published import read_published
from replication.verdicts.audit import CONSISTENT, SUSPICIOUS, audit_study

from tests.unit.conftest import tolerance

RETRANSMISSIONS = {"metric": "retransmissions", "aggregate": "sum", "tolerance": tolerance(0.1)}


def test_rows_and_columns_have_labels_of_their_own(world):
    rows = {
        "first": {"where": {"access": "slow"}, "label": "The first hop"},
        "last_hop": {"where": {"access": "fast"}},
    }
    columns = {"x": RETRANSMISSIONS | {"label": "Packets sent again"}, "y": RETRANSMISSIONS}
    study = world.table(columns, rows=rows, row_factor=None)
    numbers = [(row, column, "packets", 8.0, "8") for row in rows for column in columns]
    cells = map_cells(study, read_published(world.published(*numbers)))
    found = [(cell.row_label, cell.column_label) for cell in cells]
    assert (found[0], found[3]) == (("The first hop", "Packets sent again"), ("last hop", "y"))


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
