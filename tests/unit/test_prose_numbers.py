"""Numbers that prose keeps are those of their sources."""

import csv
import re

import pytest
from replication.design.config import load_study, study_ids
from replication.metrics.cell_map import map_cells
from replication.metrics.trace_source import TABLE_PREFIX
from replication.report.pages.rules import Rules
from replication.study.published import published_path, read_published
from replication.study.study import PAPERS
from replication.study.verdict import ReasonCode

from tests.unit.conftest import ROOT, missing_from

README = (ROOT / "README.md").read_text()


def published():
    """The printed numbers of each study, and the flows and statistics of its traces by trace."""
    printed, flows, statistics = {}, {}, {}
    for study in study_ids(ROOT):
        numbers = map_cells(load_study(ROOT, study), read_published(published_path(ROOT, study)))
        derived = [number for number in numbers if number.table.startswith(TABLE_PREFIX)]
        printed[study] = len(numbers) - len(derived)
        flows[study] = {(number.table, number.row) for number in derived}
        statistics[study] = len(derived)
    return printed, flows, statistics


def test_the_readme_states_the_counts_of_published_numbers():
    printed, flows, statistics = published()
    further = [name for name in printed if load_study(ROOT, name).group != PAPERS]
    added = sum(printed[name] for name in further)
    papers = {name: count for name, count in printed.items() if name not in further}
    with_numbers = [study for study, count in papers.items() if count]
    traced = set().union(*flows.values())
    traces = len({table for table, _ in traced})
    words = " ".join(README.split())
    assert len(with_numbers) == 3
    facts = (
        f"{sum(papers.values())} printed numbers",
        f"{added} printed numbers",
        f"{traces} traces of {len(traced)} flows",
        f"{sum(statistics.values())} statistics",
    )
    assert len(further) == 2 and not missing_from(words, *facts)
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


def test_the_dictionary_of_downloads_has_each_reason_code():
    with (ROOT / "workflow/replication/report/dictionary.csv").open(encoding="utf-8") as file:
        columns = [row for row in csv.DictReader(file) if row["column"] == "reason_code"]
    assert len(columns) == 2
    for column in columns:
        assert not [code for code in ReasonCode if code not in column["meaning"]], column["file"]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", f"central {Rules().central}"),
        ("configs/README.md", f"at most {Rules().significance}"),
        ("configs/README.md", f"fewer than {Rules().least_runs}"),
    ],
)
def test_rules_in_prose_state_the_numbers_of_the_code(page, words):
    assert words in " ".join((ROOT / page).read_text().split())
