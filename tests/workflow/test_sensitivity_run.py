"""A small sensitivity run of one study on real simulations, from design to notebook."""

import json

import pandas as pd
import pytest
import yaml
from replication.plan.config import load_study
from replication.study.assumption import assumptions

from tests.workflow.project import ROOT, copy_project

FOLDER = "data/reproduced/sensitivity"
SCALE = {"levels": "quick", "experiments": ["delay"], "cpu_budget_s": 10.0, "reason": "a test"}
VARIED = ["maximum_window_bytes", "device_queue_packets"]


def small(project):
    """Reduce the settings to eight points over two parameters, and two hypotheses."""
    path = project.root / "configs" / "sensitivity.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = assumptions(load_study(project.root, "saxena"))
    held = {a.key: "a test" for a in known if a.key not in VARIED}
    scale = {"exploration": SCALE, "hypotheses": SCALE, "held": held}
    settings |= {"points": 8, "jobs": 2, "replicates_at_default": 3, "studies": {"saxena": scale}}
    settings["search"] = {"population": 5, "generations": 1}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    path = project.root / "configs" / "hypotheses.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    kept = ("mean_of_flows", "segments_of_536")
    document["hypotheses"] = [h for h in document["hypotheses"] if h["id"] in kept]
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """Return a project in which the small sensitivity of saxena has run."""
    folder = tmp_path_factory.mktemp("sensitivity") / "project"
    # Programs that are there are taken; the workflow builds what is not.
    project = small(copy_project(folder, engines_from=ROOT))
    done = project.snakemake("sensitivity", studies="saxena")
    assert "design points" in done.stdout and "CPU minutes to simulate" in done.stdout
    return project


def table(project, name):
    return pd.read_csv(project.root / "data/reproduced" / name, keep_default_na=False)


def test_every_point_was_designed_and_judged(explored):
    points = table(explored, "sensitivity/points.csv")
    kinds = points["kind"].value_counts().to_dict()
    assert kinds == {
        "default": 1,
        "seed": 2,
        # Each has one end that is not its default, and the window two.
        "one at a time": 3,
        "space filling": 8,
        "reference": 1,
        "hypothesis": 1,
        "search": 5,
    }
    judged = pd.read_parquet(explored.root / FOLDER / "saxena" / "claims.parquet")
    assert judged["point"].nunique() == 14


def test_claims_on_what_was_run_have_a_share_and_the_others_none(explored):
    claims = table(explored, "sensitivity/claims.csv").set_index("claim")
    assert claims.loc["c08", "designs"] == 8 and claims.loc["c08", "word"] == "too few designs"
    assert claims.loc["c07", "designs"] == 0 and claims.loc["c07", "word"] == "not testable"


def test_cells_hypotheses_and_fits_are_on_the_table_that_was_run(explored):
    cells = table(explored, "sensitivity/cells.csv")
    assert set(cells.loc[cells["designs"] > 0, "table"]) == {"III"}
    found = table(explored, "forensics/hypotheses.csv").set_index(["hypothesis", "table"])
    assert found.loc[("mean_of_flows", "III"), "cells"] == 9
    assert found.loc[("segments_of_536", "III"), "cells"] == 9
    assert found.loc[("segments_of_536", "II"), "outcome"] == "not testable"
    fits = table(explored, "forensics/fits.csv")
    assert set(fits["label"]) == {"fit"} and set(fits["table"]) == {"III"}
    assert (fits["cells_fitted"] + fits["cells_judged"] == 9).all()
    # The defaults, three single changes, eight designs, and what the search added.
    assert (fits["tried"] == 17).all() and (fits["searched"] == 5).all()


def test_the_notebook_tells_what_was_found(explored):
    path = explored.root / "reports/notebooks/saxena.sensitivity.ipynb"
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
    assert "tested and rejected" in text or "brought inside" in text


def test_a_second_run_does_nothing_and_a_lost_result_is_made_from_the_store(explored):
    assert explored.jobs("sensitivity", studies="saxena") == {}
    lost = f"{FOLDER}/saxena/usage/0.json"
    (explored.root / lost).unlink()
    explored.snakemake(lost, studies="saxena")
    usage = json.loads((explored.root / lost).read_text(encoding="utf-8"))
    assert usage["runs"] and all(run["reused"] for run in usage["runs"])
