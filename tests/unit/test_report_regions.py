"""The page of regions: surfaces in words and pictures, and studies on a modern kernel."""

import shutil
from dataclasses import asdict, replace

import pandas as pd
import pytest
import yaml
from replication.base.errors import InputError
from replication.base.table import REGION_COLUMNS, read_rows
from replication.design.config import load_study
from replication.engines.catalogue import ENGINES
from replication.explore import named_variation
from replication.explore.machine import write_json
from replication.explore.regions.region_result import merge_regions, region_results, sources
from replication.explore.variation_model import MODERN_KERNEL, load_variation
from replication.report.pages import regions
from replication.report.pages.source import Source

from tests.unit.conftest import ROOT, missing_from
from tests.unit.region_example import ALIKE, BUFFER, OUTSIDE, PANEL, RESULT
from tests.unit.report_project import example, soup

CHANGED = {"date": "2026-11-25", "was": "60 s", "now": "90 s", "why": "it was <u>wide</u>"}
DIFFERENCES = "configs/engine_differences.yaml"
SET = {"parameters": {"segment_bytes": "$value"}}
AXIS = {"unit": "s", "set": SET}
REGION = {
    "id": "m",
    "title": "It <i>holds</i>",
    "study": "synthetic",
    "claim": "c01",
    "axes": [
        AXIS | {"id": "b", "title": "Buffer", "range": {"low": 0.1, "high": 10}},
        AXIS | {"id": "d", "title": "Delay", "range": {"low": 0.1, "high": 0.4}},
    ],
    "engines": ["ns3"],
    "cpu_budget_s": 90,
    "changed": [CHANGED],
}


def test_the_picture_of_a_region_draws_shades_points_and_contour_in_place():
    shown = regions.picture(RESULT, PANEL)
    # Rows go up, each cell 300 half units wide: at the bottom half of the threshold and twice it,
    # above it 5 % less and 8 times.
    assert shown["shades"] == {-1: "M0 0h1", 4: "M1 0h1", -3: "M0 1h1", 3: "M1 1h1"}
    assert shown["undecided"] == "M0 0h1" and shown["cells"] == 2 and not shown["alike"]
    assert regions.picture(RESULT, ALIKE)["alike"] == "M0 1h1"
    assert shown["points"] == "M0 600h0M600 0h0"
    assert shown["starved"].count("M") == 1 and shown["contour"] == "m150 450l150-450"
    assert (shown["validation"].count("M"), shown["missed"].count("M")) == (2, 1)
    assert shown["paper"] == (150, 450) and not shown["beyond"]
    beyond = regions.picture(RESULT, OUTSIDE)
    assert beyond["paper"] == (600, 600) and beyond["beyond"]
    assert [label for _, label in shown["y_ticks"]] == ["0", "100", "200", "300", "400"]
    ticks = regions.ticks(BUFFER)
    assert [label for _, label in ticks] == ["0.1", "0.3", "1", "3", "10"]


def test_connected_segments_of_a_contour_are_drawn_as_one_line():
    contour = [(0, 0, 0.5, 0.5), (1, 0.5, 0.5, 0.5), (0, 1, 0, 0.5)]
    panel = replace(PANEL, contour=contour)
    assert regions.picture(RESULT, panel)["contour"] == "m0 600l300-300l300 0m-600-300l0 300"


@pytest.mark.parametrize(
    ("bounds", "values", "shades"),
    [
        ((1.5, None), (1.4, 1.6, 6.0), (-1, 1, 4)),
        ((None, 0.98), (0.97, 1.2, 0.1), (1, -2, 4)),
        # Of two bounds both are drawn: what lies above both misses them too.
        ((0.8, 1.2), (0.7, 0.79, 1.0, 1.19, 1.3, 4.0), (-2, -1, 2, 1, -1, -4)),
    ],
)
def test_a_shade_shows_the_distance_from_the_threshold(bounds, values, shades):
    assert tuple(regions.shade(bounds, value) for value in values) == shades


@pytest.fixture
def mapped(project):
    project.add(example(project.world))
    project.link_engines()
    for name in ("configs/sensitivity.yaml", "configs/regions.yaml"):
        project.write(name, (ROOT / name).read_text())
    project.write("configs/engine_differences.yaml", (ROOT / DIFFERENCES).read_text())
    project.write("configs/regions/m.yaml", yaml.safe_dump(REGION))
    path = project.data / "regions/m/ns3.json"
    hashes = sources(project.root, "m", "synthetic", ENGINES["ns3"])
    write_json(path, asdict(replace(RESULT, input_hashes=hashes)))
    merge_regions([path], project.data)
    return project


def test_pages_of_regions_are_linked_escaped_and_drawn_without_scripts(mapped):
    out = mapped.render("synthetic")
    page, of_study = (soup(out / f"{name}.html") for name in ("regions", "regions~synthetic"))
    assert soup(out / "index.html").find("a", href="regions.html") is not None
    assert page.select_one("table.shares a")["href"] == "regions~synthetic.html#m"
    assert of_study.find(id="m").get_text() == "It <i>holds</i>" and page.find("i") is None
    bar = page.find("table", class_="shares").find("svg")
    assert [rect["class"][1] for rect in bar.find_all("rect")] == ["holds", "undecided", "fails"]
    figure = of_study.find("figure", class_="region")
    assert len(figure.find_all("path", class_=["above", "below"])) == 4
    assert figure.find("path", class_="own") and figure.find("path", class_="law")
    assert "CUBIC" in of_study.get_text() and of_study.find("i") is None
    assert not missing_from(of_study.get_text(), *(CHANGED[key] for key in ("was", "now", "why")))
    (row,) = read_rows(out / "data/regions.csv", REGION_COLUMNS)
    assert (row["points"], row["undecided"], row["coverage_90"]) == ("3", "0.25", "0.5")
    runs = pd.read_parquet(out / regions.RUNS)
    assert list(runs["scenarios"]) == 3 * ["0123456789abcdef"] and set(runs["panel"]) == {"BBR"}
    assert page.find("a", href=regions.RUNS) is not None


def test_a_region_result_without_a_key_is_refused_by_file_and_key(mapped):
    document = asdict(RESULT)
    del document["panels"][0]["quantity"]
    write_json(mapped.data / "regions/m/ns3.json", document)
    with pytest.raises(InputError, match=r"ns3.json: panels.0.quantity"):
        region_results(mapped.data)


@pytest.mark.parametrize(
    ("changes", "is_stale"),
    [({"cpu_budget_s": 9.0}, True), ({"title": "A title and a note", "changed": [CHANGED]}, False)],
)
def test_a_region_of_other_settings_is_marked_and_of_other_texts_is_not(mapped, changes, is_stale):
    mapped.write("configs/regions/m.yaml", "# A comment.\n" + yaml.safe_dump(REGION | changes))
    out = mapped.render("synthetic")
    of_study = soup(out / "regions~synthetic.html")
    assert of_study.find("figure", class_="region") is not None
    assert ("made before" in soup(out / "regions.html").get_text()) == is_stale
    assert is_stale or CHANGED["why"] in of_study.get_text()


# -- a modern kernel ------------------------------------------------------------------------------

MODERN = {
    "engine": "linux",
    "tiers": {"quick": {"levels": "quick", "replicates": [{"count": 1}]}},
    "studies": {"synthetic": {"reasons": ["Nothing <is> replaced."]}},
}


@pytest.mark.parametrize("name", load_variation(ROOT, MODERN_KERNEL).studies)
def test_the_modern_kernel_runs_every_study_except_for_tahoe(name):
    _, runs = named_variation.plan_variation(ROOT, MODERN_KERNEL, name, "quick")
    refusals = {run.refusal for run in runs}
    assert "" in refusals and all("'tahoe'" in refusal for refusal in refusals - {""})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"set": {"parameters": {"no_such": 1}}}, "no_such"),
        ({"set": {"flows": {"*": {"recovery": "none"}}}}, "recovery"),
    ],
)
def test_an_invalid_substitution_is_refused_by_its_field(tmp_path, change, named):
    for folder in ("configs", "data/published"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    path = tmp_path / "configs/modern_kernel.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["studies"]["nishitha"] |= change
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(InputError, match=rf"modern_kernel.yaml, line \d+: .*{named}"):
        named_variation.plan_variation(tmp_path, MODERN_KERNEL, "nishitha", "quick")


def test_a_study_measured_on_linux_cannot_be_judged_on_the_modern_kernel(project):
    project.add(example(project.world, original_system={"engine": "linux", "description": "x"}))
    project.write("configs/modern_kernel.yaml", yaml.safe_dump(MODERN))
    with pytest.raises(InputError, match=r"synthetic .*linux"):
        named_variation.plan_variation(project.root, MODERN_KERNEL, "synthetic", "quick")


@pytest.fixture
def modern(project):
    """A project whose study was judged on the modern kernel."""
    project.add(example(project.world))
    project.link_engines()
    project.write("configs/modern_kernel.yaml", yaml.safe_dump(MODERN))
    claims = [
        named_variation.VariedClaim(claim.id, "not reproduced", "", f"Why <{claim.id}>")
        for claim in load_study(project.root, "synthetic").claims
    ]
    engine = ENGINES["linux"]
    result = named_variation.VariedResult(
        study="synthetic",
        engine=engine.name,
        tier="quick",
        reasons=["Nothing <is> replaced."],
        refusals={"linux has no congestion control 'tahoe'": 2},
        claims=claims,
        cpu_s=60.0,
        input_hashes=named_variation.sources(project.root, MODERN_KERNEL, "synthetic", engine),
    )
    path = project.data / "regions/modern_kernel/synthetic.claims.json"
    write_json(path, asdict(result))
    merge_regions([], project.data)
    return project


def test_the_page_shows_the_modern_kernel_next_to_the_study(modern):
    page = soup(modern.render("synthetic") / "regions.html")
    assert page.find("a", href="#modern-kernel") is not None
    assert "Linux 6.12" in page.text
    source = Source.load(modern.root, modern.data)
    (view,) = regions.modern_views(source)
    in_study = {row.claim: row.verdict for row in source.on_primary(source.claims)}
    assert {claim.id: claim.in_study for claim in view.claims} == in_study
    rows = page.find(id="modern-kernel").find_parent("section").find_all("tr")[1:]
    assert len(rows) == len(view.claims)
    assert any(claim.differs for claim in view.claims)
    assert {claim.modern for claim in view.claims} == {"not reproduced"}
    text = page.get_text()
    assert "Nothing <is> replaced." in text and "2 runs" in text


def test_verdicts_of_the_modern_kernel_under_other_settings_are_not_shown(modern):
    modern.merge("synthetic")
    assert list(regions.modern_views(Source.load(modern.root, modern.data)))
    modern.write("configs/modern_kernel.yaml", yaml.safe_dump(MODERN | {"engine": "ns3"}))
    assert not list(regions.modern_views(Source.load(modern.root, modern.data)))
