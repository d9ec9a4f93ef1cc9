"""The page of regions: surfaces in words and pictures, and studies on a modern kernel."""

import shutil
from dataclasses import asdict, replace
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from replication.design.config import load_study
from replication.engines.catalogue import ENGINES
from replication.explore import named_variation
from replication.explore.machine import write_json
from replication.explore.regions.region_counts import count_regions
from replication.explore.regions.region_result import merge_regions, region_results, sources
from replication.explore.regions.region_rows import REGION_COLUMNS, PaperPoint
from replication.explore.variation_model import MODERN_KERNEL, load_variation
from replication.report.pages import regions
from replication.report.pages.page import environment
from replication.report.pages.source import Source
from replication.study.errors import InputError
from replication.study.table import read_rows

from tests.unit.conftest import ROOT
from tests.unit.region_example import BUFFER, PANEL, RESULT, point
from tests.unit.report_project import EMPTY, example, soup

CHANGED = {"date": "2026-11-25", "was": "60 s", "now": "90 s", "why": "it was <u>wide</u>"}
DIFFERENCES = "configs/engine_differences.yaml"
SET = {"parameters": {"segment_bytes": "$value"}}
REGION = {
    **{"id": "m", "title": "It <i>holds</i>", "study": "synthetic", "claim": "c01"},
    "axes": [
        {"id": name, "title": title, "unit": "s", "range": {"low": 0.1, "high": high}, "set": SET}
        for name, title, high in (("b", "Buffer", 10), ("d", "Delay", 0.4))
    ],
    **{"engines": ["ns3"], "cpu_budget_s": 90, "changed": [CHANGED]},
}


def result(**changes):
    return replace(RESULT, **changes)


WORDS = (
    environment(EMPTY)
    .get_template("region_words.html")
    .make_module(regions.WORDS | {"entries": {"least_rto": SimpleNamespace(title="Least RTO")}})
)
OUTSIDE = replace(PANEL, paper=PaperPoint([3, -0.1], None, cannot_differ=False))
ALIKE = replace(
    PANEL,
    alike=[[1, 0], [0, 0]],
    cannot_differ=0.25,
    paper=PaperPoint([0.25, 0.25], 0.01, cannot_differ=True),
)
TIES = result(ties_everywhere=True, holds=0.0, fails=1.0, undecided=0.0, panels=[])
REST = [result(engine="ns2", holds=0.95), result(region="n", fails=0.99), TIES]
NOTHING = result(panels=[], points=[point(1, 0, "no queue")])


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            WORDS.summary_of(result()),
            "Of this area, with buffer on a logarithmic axis, on ns3 it holds in 50 %, fails in "
            "25 %, and is undecided in 25 %.",
        ),
        (
            WORDS.effort_of(result()),
            "On ns3 1 of 2 random validation points lie inside their 90 % interval (Brier score "
            "0.01). 3 runs, 2.0 CPU minutes with validation. Beyond the budget: CUBIC.",
        ),
        (WORDS.summary_of(NOTHING), "On ns3 there is no result: no queue."),
        (WORDS.summary_of(replace(TIES, panels=[PANEL])), "no difference anywhere: all runs tie."),
        (WORDS.details(result(), PANEL), "In 1 of 3 runs a compared flow is starved"),
        (WORDS.details(result(), PANEL), "It times out early. Known difference: least RTO."),
        (
            WORDS.details(result(), PANEL),
            "(buffer 0.3 BDP and delay 100 ms) lies where it fails (probability 0.01).",
        ),
        # The middle of a row of two cells, as the border is at 1 BDP.
        (
            WORDS.details(result(), PANEL),
            "Delay 100 ms: it fails below 1 BDP (ratio 0.5) and it holds above 1 BDP.",
        ),
        (
            WORDS.details(result(panels=[ALIKE, PANEL]), ALIKE),
            "cannot be tested in 25 % (the alternatives cannot differ), and is undecided in 0 %.",
        ),
        (
            WORDS.details(result(), ALIKE),
            "At the paper’s own point (buffer 0.3 BDP and delay 100 ms) the alternatives cannot "
            "differ: no packet is lost.",
        ),
        (
            WORDS.summary_of(result(cannot_differ=0.1)),
            "(the alternatives cannot differ), and is undecided in 15 %.",
        ),
        (
            WORDS.effort_of(result(cannot_differ=0.1)),
            "interval (Brier score 0.01). At 1 of them it was predicted right",
        ),
        (
            WORDS.learned(count_regions([result(), *REST])),
            "2 claims from 1 papers, on up to two engines: 4 regions. The claim holds in at least "
            "90 % of the area in 1 of them, fails in at least 90 % in 1, and shows no difference "
            "anywhere in 1; it depends on the parameters in the other 1. A share is one of the "
            "area that we chose to draw, mostly on logarithmic axes; the borders below are the "
            "result. "
            "On average 25 %",
        ),
    ],
)
def test_sentences_are_made_from_what_was_found(shown, words):
    assert words in BeautifulSoup(" ".join(str(shown).split()), "html.parser").get_text()


def test_the_picture_of_a_region_draws_shades_points_and_contour_in_place():
    shown = regions.picture(result(), PANEL)
    # Rows go up, each cell 300 half units wide: at the bottom half of the threshold and twice it,
    # above it 5 % less and 8 times.
    assert shown["shades"] == {-1: "M0 0h1", 4: "M1 0h1", -3: "M0 1h1", 3: "M1 1h1"}
    assert shown["undecided"] == "M0 0h1" and shown["cells"] == 2 and not shown["alike"]
    assert regions.picture(result(), ALIKE)["alike"] == "M0 1h1"
    assert shown["points"] == "M0 600h0M600 0h0"
    assert shown["starved"].count("M") == 1 and shown["contour"] == "m150 450l150-450"
    assert (shown["validation"].count("M"), shown["missed"].count("M")) == (2, 1)
    assert shown["paper"] == (150, 450) and not shown["beyond"]
    beyond = regions.picture(result(), OUTSIDE)
    assert beyond["paper"] == (600, 600) and beyond["beyond"]
    assert [label for _, label in shown["y_ticks"]] == ["0", "100", "200", "300", "400"]
    ticks = regions.ticks(BUFFER)
    assert [label for _, label in ticks] == ["0.1", "0.3", "1", "3", "10"]


def test_connected_segments_of_a_contour_are_drawn_as_one_line():
    contour = [(0, 0, 0.5, 0.5), (1, 0.5, 0.5, 0.5), (0, 1, 0, 0.5)]
    panel = replace(PANEL, contour=contour)
    assert regions.picture(result(), panel)["contour"] == "m0 600l300-300l300 0m-600-300l0 300"


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
    write_json(path, asdict(result(input_hashes=hashes)))
    merge_regions([path], project.data)
    return project


def test_pages_of_regions_are_linked_escaped_and_drawn_without_scripts(mapped):
    out = mapped.render("synthetic")
    page, own = (soup(out / f"{name}.html") for name in ("regions", "regions~synthetic"))
    assert soup(out / "index.html").find("a", href="regions.html") is not None
    assert page.select_one("table.shares a")["href"] == "regions~synthetic.html#m"
    assert own.find(id="m").get_text() == "It <i>holds</i>" and page.find("i") is None
    bar = page.find("table", class_="shares").find("svg")
    assert [one["class"][1] for one in bar.find_all("rect")] == ["holds", "undecided", "fails"]
    figure = own.find("figure", class_="region")
    assert len(figure.find_all("path", class_=["above", "below"])) == 4
    assert figure.find("path", class_="own") and figure.find("path", class_="law")
    assert "Beyond the budget: CUBIC" in own.get_text() and own.find("i") is None
    assert "Before: 60 s. After: 90 s. Reason: it was <u>wide</u>." in own.get_text()
    (row,) = read_rows(out / "data/regions.csv", REGION_COLUMNS)
    assert (row["points"], row["undecided"], row["coverage_90"]) == ("3", "0.25", "0.5")
    runs = pd.read_parquet(out / regions.RUNS)
    assert list(runs["scenarios"]) == 3 * ["0123456789abcdef"] and set(runs["panel"]) == {"BBR"}
    assert page.find("a", href=regions.RUNS) is not None


def test_a_region_result_without_a_key_is_refused_by_file_and_key(mapped):
    document = asdict(result())
    del document["panels"][0]["quantity"]
    write_json(mapped.data / "regions/m/ns3.json", document)
    with pytest.raises(InputError, match=r"ns3.json: panels.0.quantity: made by another version"):
        region_results(mapped.data)


@pytest.mark.parametrize(
    ("changes", "is_stale"),
    [({"cpu_budget_s": 9.0}, True), ({"title": "A title and a note", "changed": [CHANGED]}, False)],
)
def test_a_region_of_other_settings_is_marked_and_of_other_texts_is_not(mapped, changes, is_stale):
    mapped.write("configs/regions/m.yaml", "# A comment.\n" + yaml.safe_dump(REGION | changes))
    out = mapped.render("synthetic")
    own = soup(out / "regions~synthetic.html")
    assert own.find("figure", class_="region") is not None
    assert ("were made before a file" in soup(out / "regions.html").get_text()) == is_stale
    assert is_stale or CHANGED["why"] in own.get_text()


# -- a modern kernel ------------------------------------------------------------------------------

MODERN = {
    "engine": "linux",
    "tiers": {"quick": {"levels": "quick", "replicates": [{"count": 1}]}},
    "studies": {"synthetic": {"reasons": ["Nothing <is> replaced."]}},
}


@pytest.mark.parametrize("name", load_variation(ROOT, MODERN_KERNEL).studies)
def test_the_modern_kernel_runs_every_study_except_for_tahoe(name):
    _, runs = named_variation.plan_variation(ROOT, MODERN_KERNEL, name, "quick")
    reasons = {run.refusal for run in runs}
    assert {""} <= reasons <= {"", "linux has no congestion control 'tahoe'"}


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
    with pytest.raises(InputError, match=f"modern_kernel.yaml, line .*: nishitha: .*{named}"):
        named_variation.plan_variation(tmp_path, MODERN_KERNEL, "nishitha", "quick")


def test_a_study_measured_on_linux_cannot_be_judged_on_the_modern_kernel(project):
    project.add(example(project.world, original_system={"engine": "linux", "description": "x"}))
    project.write("configs/modern_kernel.yaml", yaml.safe_dump(MODERN))
    with pytest.raises(InputError, match="synthetic already come from linux; remove it"):
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
    assert "deploys these variants on Linux 6.12 (2024, long-term)?" in page.text
    source = Source.load(modern.root, modern.data)
    (view,) = regions.modern_views(source)
    own = {r.claim: r.verdict for r in source.on_primary(source.claims)}
    assert {claim.id: claim.in_study for claim in view.claims} == own
    rows = page.find(id="modern-kernel").find_parent("section").find_all("tr")[1:]
    assert len(rows) == len(view.claims)
    assert any(claim.differs for claim in view.claims)
    assert {claim.modern for claim in view.claims} == {"not reproduced"}
    text = page.get_text()
    assert "Nothing <is> replaced." in text and "2 runs are left out" in text


def test_verdicts_of_the_modern_kernel_under_other_settings_are_not_shown(modern):
    modern.merge("synthetic")
    assert list(regions.modern_views(Source.load(modern.root, modern.data)))
    modern.write("configs/modern_kernel.yaml", yaml.safe_dump(MODERN | {"engine": "ns3"}))
    assert not list(regions.modern_views(Source.load(modern.root, modern.data)))
