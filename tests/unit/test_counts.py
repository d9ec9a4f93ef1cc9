"""Counts of verdicts: one definition each, the same on every page and in counts.csv."""

import html
import itertools
import math
import re

import pytest
from replication.study.setup import Setup
from replication.verdicts.verdict_table import CellRow, ClaimRow, Share, count_rows, tallies

from tests.unit.conftest import ROOT
from tests.unit.report_project import csv_rows, example, soup

#: "3 of 7"; not a part of a larger number, a decimal or a fraction.
SHARE = re.compile(r"(?<![\d.,/])(\d+)(?: \([^)]*\))? of (?:the |our )?(\d+)(?![\d,/]|\.\d)")


UNMEASURED = dict.fromkeys(("points", "quantities", "reasons"), ())


def cell(study, engine, kind, verdict, compatible=None, setup=Setup.DEFAULTS):
    fields = dict.fromkeys(CellRow.__annotations__, "") | UNMEASURED
    fields |= {"study": study, "engine": engine, "kind": kind, "verdict": verdict}
    fields |= {"table": "t", "row": verdict, "setup": setup}
    return CellRow(**fields | {"compatible": compatible, "accepted_margin": math.nan})


def claim(study, engine, verdict, counted=True, setup=Setup.DEFAULTS):
    fields = dict.fromkeys(ClaimRow.__annotations__, "") | UNMEASURED
    fields |= {"study": study, "engine": engine, "counted": counted, "verdict": verdict}
    return ClaimRow(**fields | {"setup": setup})


CELLS = [
    cell("a", "", "printed", "impossible"),
    cell("a", "ns2", "printed", "reproduced"),
    cell("a", "ns3", "printed", "not testable"),
    cell("b", "ns3", "trace", "not reproduced", compatible=False),
]
CLAIMS = [
    claim("a", "ns2", "direction only"),
    claim("a", "ns2", "reproduced", counted=False),
    claim("a", "ns3", "not reproduced"),
    claim("b", "ns3", "not testable"),
]


def test_printed_numbers_traces_and_claims_are_counted_separately():
    counts = tallies(CELLS, CLAIMS)
    assert [(what, t.total, t.tested) for what, t in counts.items()] == [
        ("printed", 3, 2),
        ("trace", 1, 1),
        ("claims", 3, 2),
    ]
    assert counts["printed"].share("impossible") == Share(1, 2)
    assert (counts["trace"].tables, counts["trace"].rows) == (1, 1)


def test_numbers_outside_the_spread_are_counted_among_those_compared():
    verdicts = {"reproduced": True, "not testable": True, "impossible": None}
    rows = [cell("a", "ns3", "trace", *verdict) for verdict in verdicts.items()] + CELLS[-1:] * 18
    traces = tallies(rows, [])["trace"]
    assert traces.outside == Share(18, 20) and traces.outside_by_chance == pytest.approx(1)


def test_defaults_and_textbook_are_counted_separately():
    textbook = [claim("a", "ns2", "reproduced", setup=Setup.TEXTBOOK)]
    numbers = [cell("a", "ns2", "printed", "not reproduced", setup=Setup.TEXTBOOK)]
    rows = list(count_rows(CELLS + numbers, CLAIMS + textbook, {"a": "ns2", "b": "ns3"}))
    keys = ("study", "engine", "setup", "what")
    counted = {tuple(getattr(r, key) for key in keys): (r.total, r.reproduced) for r in rows}
    assert counted["a", "ns2", "defaults", "claims"] == (1, 0)
    assert counted["a", "ns2", "textbook", "claims"] == (1, 1)
    assert counted["a", "ns2", "textbook", "printed"] == (1, 0)
    assert counted["", "", "defaults", "claims"] == (2, 0)
    assert counted["", "", "textbook", "claims"] == (1, 1)
    # b was not run under it.
    assert not [key for key in counted if key[0] == "b" and key[2] == "textbook"]


def test_totals_count_each_study_on_its_primary_engine():
    rows = list(count_rows(CELLS, CLAIMS, {"a": "ns2", "b": "ns3"}))
    counted = {(r.study, r.engine, r.what): (r.total, r.tested) for r in rows}
    # An impossible number is so on every engine.
    assert counted["a", "ns2", "printed"] == (2, 2) and counted["a", "ns3", "printed"] == (2, 1)
    assert counted["", "", "printed"] == (2, 2)
    assert counted["", "", "claims"] == (2, 1) and counted["", "", "trace"] == (1, 1)


def shares(path):
    """The counts of a page; parsing all pages of the release would take long."""
    text = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", path.read_text(encoding="utf-8"))
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    return [(int(n), int(d)) for n, d in SHARE.findall(" ".join(text.split()))]


def test_no_count_on_a_released_page_exceeds_its_total():
    pages = sorted((ROOT / "reports/release").rglob("*.html"))
    assert len(pages) > 8
    by_page = {path.name: shares(path) for path in pages}
    assert sum(map(len, by_page.values())) > 100
    for name, counts in by_page.items():
        assert not [(part, whole) for part, whole in counts if part > whole], name


@pytest.mark.parametrize("data", ["example", "release"])
def test_the_first_page_has_the_counts_of_counts_csv(project, data):
    pages, table = ROOT / "reports/release", ROOT / "data/release/counts.csv"
    if data == "example":
        project.add(example(project.world))
        pages, table = project.render("synthetic"), project.data / "counts.csv"
    page = soup(pages / "index.html")
    rows = csv_rows(table)
    lines = page.select(".matches tr[data-study]")
    assert lines
    for line in lines:
        shown = [cell.get_text() for cell in line.select("td.num")]
        setups = ["defaults", "textbook"][: len(shown) // 2]
        columns = itertools.product(("printed", "claims"), setups)
        for column, words in zip(columns, shown, strict=True):
            if share := re.match(r"(\d+) of (\d+)", words):
                place = (line["data-study"], *column)
                counted = [r for r in rows if (r["study"], r["what"], r["setup"]) == place]
                assert share.groups() in [(r["reproduced"], r["tested"]) for r in counted]
