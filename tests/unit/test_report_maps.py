"""The page of maps: regions in words and pictures, and what a modern kernel makes of studies."""

import json
import shutil

import pytest
import yaml
from bs4 import BeautifulSoup
from replication.design.config import load_study, study_ids
from replication.engines.catalogue import ENGINES
from replication.explore import modern_kernel
from replication.explore.maps.region_result import MAP_COLUMNS, made_from, merge_maps
from replication.report.pages import regions
from replication.report.pages.page import environment
from replication.report.pages.source import Source
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.storage.table import read_rows

from tests.unit.conftest import ROOT
from tests.unit.report_project import example, soup

CHANGED = {"date": "2026-11-25", "was": "60 s", "now": "90 s", "why": "it was <u>wide</u>"}
SET = {"parameters": {"segment_bytes": "$value"}}
MAP = {
    "id": "m",
    "title": "It <i>holds</i>",
    "study": "synthetic",
    "claim": "c01",
    "axes": [
        {"id": name, "title": title, "unit": "s", "range": {"low": 0.1, "high": high}, "set": SET}
        for name, title, high in (("b", "Buffer", 10), ("d", "Delay", 0.4))
    ],
    "engines": ["ns3"],
    "cpu_budget_s": 90,
    "changed": [CHANGED],
}
GRID = {
    "facet": ["bbr"],
    "size": 2,
    "leaves": [[0, 0, 1, "fails"], [0, 1, 1, "border"], [1, 0, 1, "holds"], [1, 1, 1, "holds"]],
    "share": 0.625,
    "area": {"fails": 0.25, "border": 0.25, "holds": 0.5},
    "width": 0.5,
    "noise": 0.0,
    "thresholds": [{"above": True, "lowest": 0.25, "median": 0.5, "highest": 0.5}, None],
    "paper": {"at": [0.25, 0.25], "side": "fails", "border": [0.5, None]},
    "theory": [
        {"title": "A <b>law</b>", "source": "S", "condition": "Always", "points": [[0, 0], [1, 1]]}
    ],
}
BUFFER = {"id": "b", "title": "Buffer", "unit": "BDP"}
AXES = [
    BUFFER | {"low": 0.1, "high": 10, "log": True, "paper": 0.3},
    {"id": "d", "title": "Delay", "unit": "s", "low": 0, "high": 0.4, "log": False, "paper": 0.1},
]


def point(x, y, holds, expected=None):
    run = {"levels": {}, "replicate": 0, "scenario": "0123456789abcdef"}
    place = {"facet": ["bbr"], "x": x, "y": y, "holds": holds, "expected": expected}
    return place | {"statistic": 1.5, "margin": 0.5, "replicates": 1, "runs": [run], "reason": ""}


def account(**changes):
    return {
        "map": "m",
        "anchor": "m0",
        "title": "It <i>holds</i>",
        "study": "synthetic",
        "claim": "",
        "quote": "Words <script>",
        "place": "p",
        "reading": "r",
        "asked": ["a: at least 1"],
        "reason": "",
        "engine": "ns3",
        "axes": AXES,
        "facets": [{"id": "s", "title": "Sender", "levels": {"bbr": "BBR", "cubic": "CUBIC"}}],
        "grids": [GRID],
        "left_out": [["cubic"]],
        "points": [point(0.1, 0.0, False), point(10, 0.4, True), point(5, 0.3, False, True)],
        "full_grid_points": 9,
        "share": 0.625,
        "width": 0.5,
        "width_wanted": 0.0625,
        "checked": 1,
        "right": 0,
        "right_interval": [0.0, 0.7935],
        "cpu_s": 120.0,
        "budget_s": 200.0,
        "tier": "paper",
    } | changes


WORDS = environment().get_template("map_words.html").make_module(regions.WORDS)
OUTSIDE = GRID | {"paper": {"at": [3, -0.1], "side": "outside", "border": [None, None]}}
REST = [account(engine="ns2", share=0.95), account(map="n", share=0.0, checked=39, right=38)]
NOTHING = account(share=None, points=[point(1, 0, None) | {"reason": "no queue"}])


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            WORDS.headline(account()),
            "On ns3 it holds at 62 % of the mapped space; "
            "the boundary is located to 50 % of each axis (target: 6.2 %), by 2 points",
        ),
        (WORDS.headline(NOTHING), "On ns3 nothing can be said: no queue."),
        (WORDS.check(account()), "right at 0 of 1 validation points"),
        (WORDS.details(account(), GRID), "It needs: buffer above 1 BDP (0.316 BDP to 1 BDP along"),
        (
            WORDS.details(account(), GRID),
            "(buffer 0.3 BDP and delay 100 ms) lies where it fails; "
            "the nearest boundary is at 1 BDP (buffer).",
        ),
        (
            WORDS.answer([account(), *REST]),
            "or more in 1 of 3 maps, at 10 % or less in 1, and up to a boundary in 1. The "
            "boundaries are right at 38 of 41 validation points beside them (93 %).",
        ),
    ],
)
def test_sentences_are_made_from_what_was_found(shown, words):
    assert words in BeautifulSoup(" ".join(str(shown).split()), "html.parser").get_text()


def test_a_picture_has_what_was_found_where_it_was_found():
    told = account()
    assert regions.areas(told) == {"holds": 0.5, "border": 0.25, "fails": 0.25}
    shown = regions.picture(told, GRID)
    left, right = shown["left"], shown["left"] + shown["side"]
    bottom, top = shown["top"] + shown["side"], shown["top"]
    assert [(p["x"], p["y"]) for p in shown["points"][:2]] == [(left, bottom), (right, top)]
    assert [p["wrong"] for p in shown["points"]] == [False, False, True]
    assert [(side, x < left + 1) for x, _, _, side in shown["cells"]] == [
        *(("fails", True), ("border", True), ("holds", False), ("holds", False))
    ]
    assert shown["paper"] == (left + 75, bottom - 75) and not shown["beyond"]
    beyond = regions.picture(told, OUTSIDE)
    assert beyond["paper"] == (right, bottom) and beyond["beyond"]
    assert [label for _, label in shown["y_ticks"]] == ["0", "100", "200", "300", "400"]
    ticks = regions.ticks(regions.axes_of(told)[0])
    assert [label for _, label in ticks] == ["0.1", "0.3", "1", "3", "10"]


@pytest.fixture
def mapped(project):
    project.add(example(project.world))
    project.link_engines()
    for name in ("configs/sensitivity.yaml", "configs/mapping.yaml"):
        project.write(name, (ROOT / name).read_text())
    project.write("configs/maps/m.yaml", yaml.safe_dump(MAP))
    path = project.data / "maps/m/ns3.json"
    own = {"made_from": made_from(project.root, "m", "synthetic", ENGINES["ns3"])}
    write_text(path, json.dumps(account() | own))
    merge_maps([path], project.data)
    return project


def test_the_page_is_linked_reads_without_scripts_and_escapes_words(mapped):
    out = mapped.render("synthetic")
    page = soup(out / "maps.html")
    assert soup(out / "index.html").find("a", href="maps.html") is not None
    bar = page.find("nav", class_="shares").find("svg")
    assert [one["class"][1] for one in bar.find_all("rect")] == ["holds", "border", "fails"]
    figure = page.find("figure", class_="map")
    assert len(figure.find_all("rect", class_="cell")) == 4
    assert figure.find("path", class_="own") and figure.find("path", class_="law")
    links = [a["href"] for a in figure.find_all("a", class_="point")]
    assert len(links) == 3 and all(page.find(id=link[1:]).name == "tr" for link in links)
    assert len(figure.find_all("a", class_="wrong")) == 1
    assert "0123456789abcdef" in page.get_text() and "Beyond the budget: CUBIC" in page.get_text()
    assert "It <i>holds</i>" in page.get_text() and page.find("i") is None
    assert "Was: 60 s. Is: 90 s. Why: it was <u>wide</u>." in page.get_text()
    (row,) = read_rows(out / "data/maps.csv", MAP_COLUMNS)
    assert (row["points"], row["border_checked"], row["border_right"]) == ("2", "1", "0")


@pytest.mark.parametrize(
    ("changes", "is_stale"),
    [({"title": "other"}, True), ({"changed": [CHANGED | {"why": "A note alone."}]}, False)],
)
def test_a_map_of_other_files_is_said_to_be_but_not_for_a_note(mapped, changes, is_stale):
    mapped.write("configs/maps/m.yaml", "# A comment.\n" + yaml.safe_dump(MAP | changes))
    page = soup(mapped.render("synthetic") / "maps.html")
    assert page.find("figure", class_="map") is not None
    assert ("were mapped before a file" in page.get_text()) == is_stale
    assert is_stale or "A note alone." in page.get_text()


# -- a modern kernel ------------------------------------------------------------------------------

TODAY = {
    "engine": "linux",
    "tiers": {"quick": {"levels": "quick", "replicates": [{"count": 1}]}},
    "studies": {"synthetic": {"reasons": ["Nothing <is> replaced."]}},
}


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_the_kernel_runs_all_of_each_study_but_tahoe(name):
    _, runs = modern_kernel.plan_modern(ROOT, name, "quick")
    reasons = {run.refusal for run in runs}
    assert {""} <= reasons <= {"", "linux has no congestion control 'tahoe'"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"set": {"parameters": {"no_such": 1}}}, "no_such"),
        ({"set": {"flows": {"*": {"recovery": "none"}}}}, "recovery"),
    ],
)
def test_a_wrong_stand_in_is_named(tmp_path, change, named):
    for folder in ("configs", "data/published"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    path = tmp_path / "configs/today.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["studies"]["nishitha"] |= change
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(InputError, match=f"today.yaml: nishitha: .*{named}"):
        modern_kernel.plan_modern(tmp_path, "nishitha", "quick")


@pytest.fixture
def today(project):
    """A project whose study was judged on the modern kernel."""
    project.add(example(project.world))
    project.link_engines()
    project.write("configs/today.yaml", yaml.safe_dump(TODAY))
    claims = [
        {"claim": claim.id, "verdict": "not reproduced", "reason": f"Why <{claim.id}>"}
        for claim in load_study(project.root, "synthetic").claims
    ]
    document = {
        **{"study": "synthetic", "engine": "linux", "tier": "quick", "replicates": 1},
        **{"reasons": ["Nothing <is> replaced."], "cpu_s": 60.0, "claims": claims},
        "refusals": {"linux has no congestion control 'tahoe'": 2},
        "made_from": modern_kernel.made_from(project.root, "synthetic", ENGINES["linux"]),
    }
    write_text(project.data / "maps/today/synthetic.claims.json", json.dumps(document))
    merge_maps([], project.data)
    return project


def test_the_page_sets_today_beside_the_study(today):
    page = soup(today.render("synthetic") / "maps.html")
    assert page.find("a", href="#today") is not None
    source = Source.load(today.root, today.data)
    (view,) = regions.today_views(source)
    own = {r["claim"]: r["verdict"] for r in source.headline(source.claims)}
    assert {one["id"]: one["own"] for one in view["claims"]} == own
    rows = page.find(id="today").find_parent("section").find_all("tr")[1:]
    assert len(rows) == len(view["claims"])
    assert any(one["differs"] for one in view["claims"])
    assert {one["today"] for one in view["claims"]} == {"not reproduced"}
    text = page.get_text()
    assert "Nothing <is> replaced." in text and "2 runs are left out" in text


def test_claims_of_other_files_are_left_out(today):
    today.merge("synthetic")
    assert regions.today_views(Source.load(today.root, today.data))
    today.write("configs/today.yaml", yaml.safe_dump(TODAY | {"engine": "ns3"}))
    assert regions.today_views(Source.load(today.root, today.data)) == []
