"""Reliability: counts by id, the table, and the page where there is something to show."""

import json
import re

import pytest
from bench.load import long_run, many_flows
from bench.reliability import add_entries, markdown
from replication.report.pages.reliability import reliability_view
from replication.report.parts.reliability import (
    Load,
    Trials,
    read_reliability,
)
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.report_page import RELIABILITY_PAGE

from tests.unit.report_project import NASTY, Project, example, soup

KILLS = Trials(
    id="kill-batch", part="faults", title=NASTY.format(1), tried=1300, right=7, refused=2, wrong=1
)
HOURS = Load(
    **{"id": "hours-ns3", "title": "24 hours", "scenarios": 1, "flows": 1, "simulated_s": 86400.0},
    **{"wall_s": 100.4, "cpu_s": 99.6, "peak_memory_bytes": 31_400_000, "held": False},
    **{"compared_memory_bytes": 20_000_000, "memory_limit_bytes": 2**32},
)


def test_the_latest_count_of_a_kind_stands_and_others_stay(tmp_path):
    path = tmp_path / RELIABILITY_PAGE.made_of
    assert read_reliability(path) is None
    add_entries(path, [KILLS], [HOURS])
    add_entries(path, [KILLS.model_copy(update={"tried": 2})])
    found = read_reliability(path)
    assert [trial.tried for trial in found.trials] == [2]
    assert found.loads == [HOURS]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"trials": [{"id": 1}]}', '{"schema_version": 2}']
)
def test_a_file_of_something_else_is_refused_by_name(tmp_path, text):
    write_text(tmp_path / RELIABILITY_PAGE.made_of, text)
    with pytest.raises(InputError, match=rf"{RELIABILITY_PAGE.made_of}: .*make test-faults"):
        read_reliability(tmp_path / RELIABILITY_PAGE.made_of)


def test_the_table_has_every_count_and_no_broken_cell(tmp_path):
    add_entries(
        tmp_path / RELIABILITY_PAGE.made_of, [KILLS.model_copy(update={"title": "a|b"})], [HOURS]
    )
    text = markdown(read_reliability(tmp_path / RELIABILITY_PAGE.made_of))
    assert "| a\\|b | 1300 | 7 | 2 | 1 |  |" in text
    assert "| 24 hours | 100 s | 100 s | 31.4 MB | 20.0 MB | no |" in text


@pytest.mark.parametrize("counted", [True, False])
def test_the_page_is_there_when_something_was_counted(world, tmp_path, counted):
    project = Project(world, tmp_path / "project")
    project.add(example(world))
    if counted:
        add_entries(project.data / RELIABILITY_PAGE.made_of, [KILLS], [HOURS])
    out = project.render("synthetic")
    page, link = out / "reliability.html", soup(out / "index.html").find(href="reliability.html")
    assert page.is_file() == (link is not None) == counted
    assert (reliability_view(project.data) is not None) == counted
    if counted:
        row = soup(page).find(attrs={"data-trial": "kill-batch"})
        shown = [re.sub(r"\D", "", cell.text) for cell in row.find_all("td")]
        assert shown == ["1300", "7", "2", "1"]
        assert NASTY.format(1) in row.find("th").text
        assert soup(page).find(attrs={"data-load": "hours-ns3"}).find_all("td")[-1].text == "no"
        assert (
            json.loads((out / "data" / RELIABILITY_PAGE.made_of).read_text())["schema_version"] == 1
        )


def test_the_load_is_what_it_says():
    assert len(many_flows(1000).flows) == 1000
    day, hour = long_run(24), long_run(1)
    assert day.duration_s == 86400
    # As many samples, so that their tables are as large.
    assert day.duration_s / day.sampling_interval_s == hour.duration_s / hour.sampling_interval_s
