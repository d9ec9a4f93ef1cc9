"""A sensitivity run of one study, from design to notebook, and a region: on real simulations."""

import json
import re
from contextlib import contextmanager

import pandas as pd
import pytest
import yaml
from replication.cli.main import find_scenario
from replication.design.config import load_study
from replication.study.variation import assumptions

from tests.workflow.project import ROOT, copy_project

FOLDER = "data/reproduced/sensitivity"
SCALE = {"levels": "quick", "experiments": ["delay"], "cpu_budget_s": 200.0, "reason": "a test"}
VARIED = ["maximum_window_bytes", "device_queue_packets"]


@contextmanager
def changed(path):
    """Yield a YAML file for changes, and write it."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    yield document
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """Return a project in which saxena ran at eight points of two parameters, with three causes."""
    # Existing programs are used; the workflow builds missing ones.
    project = copy_project(tmp_path_factory.mktemp("sensitivity") / "project", engines_from=ROOT)
    known = assumptions(load_study(project.root, "saxena"))
    held = {a.key: "a test" for a in known if a.key not in VARIED}
    with changed(project.root / "configs/sensitivity.yaml") as settings:
        settings["studies"] = {"saxena": {"exploration": SCALE, "held": held}}
        settings |= {"points": 8, "replicates_at_default": 3}
        settings["explanation"] |= {"permutations": 20, "depth": 2, "finalists": 2}
    with changed(project.root / "configs/explanations/saxena.yaml") as document:
        del document["coupled"]
        kept = ("aggregate", "unit", "buffer")
        document["causes"] = [a for a in document["causes"] if a["id"] in kept]
        document["causes"][-1]["range"]["tried"] = [10]
        # Only the table with the cheapest runs.
        document["stages"] = [{"rows": {"III": ["5"]}}]
        document["held_out"]["rows"] = {"III": ["15"]}
    # One of three tables and runs of 5 s of 100, as the explanation runs every level of a table.
    with changed(project.root / "configs/studies/saxena/claims.yaml") as document:
        document["tables"] = [entry for entry in document["tables"] if entry["id"] == "III"]
    (project.root / "configs/studies/saxena/changes.yaml").unlink()
    numbers = project.root / "data/published/saxena.csv"
    head, *lines = numbers.read_text(encoding="utf-8").splitlines(keepends=True)
    numbers.write_text("".join([head, *(line for line in lines if line.startswith("III,"))]))
    study = "configs/studies/saxena/study.yaml"
    project.edit(study, "  duration_s: {value: 100,", "  duration_s: {value: 5,")
    done = project.snakemake("explain", studies="saxena")
    assert re.search(r"saxena: 14\b", done.stdout)
    return project


def table(project, name):
    return pd.read_csv(project.root / "data/reproduced" / name, keep_default_na=False)


def test_every_point_of_the_analysis_is_designed_and_judged(explored):
    points = table(explored, "sensitivity/saxena/points.csv")
    # Each assumption has one end that is not its default, and the window two.
    kinds = {"default": 1, "seed": 2, "one at a time": 3, "space filling": 8}
    assert points["kind"].value_counts().to_dict() == kinds
    judged = pd.read_parquet(explored.root / FOLDER / "saxena" / "claims.parquet")
    assert judged["point"].nunique() == 14


def test_only_claims_and_cells_with_runs_have_a_robustness_share(explored):
    claims = table(explored, "sensitivity/saxena/claims.csv").set_index("claim")[
        ["designs", "word"]
    ]
    assert tuple(claims.loc["c05"]) == (8, "too few designs")
    assert tuple(claims.loc["c01"]) == (0, "not testable")
    cells = table(explored, "sensitivity/saxena/cells.csv")
    assert 0 < (cells["designs"] > 0).sum() < len(cells)


def test_the_explanation_lists_each_number_and_its_scenarios_can_be_run(explored):
    (explanation,) = table(explored, "explanations.csv").to_dict("records")
    assert explanation["result"] in ("explanation", "best guess", "none found")
    cells, causes = (table(explored, f"{n}.csv") for n in ("explained_cells", "explanation_causes"))
    assert len(cells) == explanation["cells"]
    assert (~cells["used_in_search"]).sum() == explanation["held_out"]
    assert (cells["matches"]).sum() == explanation["matches_after"]
    document, scenarios = (
        json.loads((explored.root / FOLDER / "saxena" / name).read_text(encoding="utf-8"))
        for name in ("explanation.json", "explained_scenarios.json")
    )
    assert list(causes["cause"]) == [cause["cause"] for cause in document["causes"]] != []
    scenario = min(scenarios)
    assert find_scenario(explored.root / "data/reproduced", scenario).id == scenario


def test_a_second_analysis_does_nothing_and_restores_a_lost_result_from_stored_runs(explored):
    assert explored.jobs("explain", studies="saxena") == {}
    lost = explored.root / FOLDER / "saxena" / "claims.parquet"
    before = lost.read_bytes()
    lost.unlink()
    explored.snakemake(f"{FOLDER}/saxena/claims.parquet", studies="saxena")
    assert lost.read_bytes() == before
