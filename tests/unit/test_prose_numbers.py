"""Numbers that prose keeps are those of their sources."""

import re

from replication.design.config import load_study, study_ids
from replication.metrics.cell_map import map_cells
from replication.metrics.trace_source import TABLE_PREFIX
from replication.study.published import published_path, read_published
from replication.study.verdict import ReasonCode

from tests.unit.conftest import ROOT

README = (ROOT / "README.md").read_text()


def published():
    """The printed numbers of each study, and the flows and statistics of its traces by trace."""
    printed, flows, statistics = {}, {}, {}
    for study in study_ids(ROOT):
        numbers = map_cells(load_study(ROOT, study), read_published(published_path(ROOT, study)))
        derived = [one for one in numbers if one.table.startswith(TABLE_PREFIX)]
        printed[study] = len(numbers) - len(derived)
        flows[study] = {(one.table, one.row) for one in derived}
        statistics[study] = len(derived)
    return printed, flows, statistics


def test_the_readme_counts_what_was_published():
    printed, flows, statistics = published()
    with_numbers = [study for study, count in printed.items() if count]
    traced = set().union(*flows.values())
    traces = len({table for table, _ in traced})
    words = " ".join(README.split())
    assert len(with_numbers) == 3
    assert f"{sum(printed.values())} printed numbers in three of them" in words
    assert f"{traces} traces of {len(traced)} flows in one" in words
    assert f"with {sum(statistics.values())} statistics" in words
    for study in study_ids(ROOT):
        (row,) = re.findall(rf"^\| `{study}` \|.*", README, re.MULTILINE)
        assert [int(n) for n in re.findall(r"(\d+) printed numbers", row)] == (
            [printed[study]] if printed[study] else []
        )
        assert load_study(ROOT, study).claims and "claims" in row


def test_the_table_of_reason_codes_has_each_code():
    text = (ROOT / "configs/README.md").read_text()
    table = text.partition("| reason code | when |\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE) == list(ReasonCode)
