"""What a stack of today runs in the place of a paper's set-up, and what the page makes of it."""

import json
import shutil

import pytest
import yaml
from replication.design.config import load_study, study_ids
from replication.engines.catalogue import ENGINES
from replication.explore.maps.region_result import merge_maps
from replication.explore.modern_kernel import made_from, plan_modern
from replication.report.pages.regions import today_views
from replication.report.pages.source import Source
from replication.study.errors import InputError
from replication.study.files import write_text

from tests.unit.report_project import example, soup
from tests.unit.sensitivity_data import ROOT

TODAY = {
    "engine": "linux",
    "tiers": {"quick": {"levels": "quick", "replicates": [{"count": 1}]}},
    "studies": {"synthetic": {"reasons": ["Nothing <is> replaced."]}},
}


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_the_kernel_runs_all_of_each_study_but_tahoe(name):
    _, runs = plan_modern(ROOT, name, "quick")
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
        plan_modern(tmp_path, "nishitha", "quick")


@pytest.fixture
def today(project):
    """A project whose study was judged on the modern kernel."""
    project.add(example(project.world))
    (project.root / "workflow").mkdir(exist_ok=True)
    (project.root / "workflow/engines").symlink_to(ROOT / "workflow/engines")
    project.write("configs/today.yaml", yaml.safe_dump(TODAY))
    judged = {"verdict": "not reproduced"}
    claims = [
        {"claim": c.id, **judged, "reason": f"Why <{c.id}>"}
        for c in load_study(project.root, "synthetic").claims
    ]
    document = {
        **{"study": "synthetic", "engine": "linux", "tier": "quick", "replicates": 1},
        **{"reasons": ["Nothing <is> replaced."], "cpu_s": 60.0, "claims": claims},
        "refusals": {"linux has no congestion control 'tahoe'": 2},
        "made_from": made_from(project.root, "synthetic", ENGINES["linux"]),
    }
    write_text(project.data / "maps/today/synthetic.claims.json", json.dumps(document))
    merge_maps([], project.data)
    return project


def test_the_page_sets_today_beside_the_study(today):
    page = soup(today.render("synthetic") / "maps.html")
    assert page.find("a", href="#today") is not None
    source = Source.load(today.root, today.data)
    (view,) = today_views(source)
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
    assert today_views(Source.load(today.root, today.data))
    today.write("configs/today.yaml", yaml.safe_dump(TODAY | {"engine": "ns3"}))
    assert today_views(Source.load(today.root, today.data)) == []
