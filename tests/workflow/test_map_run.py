"""A run of `make maps`: what is made anew after a change."""

import pytest

from tests.workflow.project import ROOT, copy_project

KEPT = "kapadia_random_loss"
QUICK = {"engines": "ns3", "tier": "quick"}


@pytest.fixture
def mapped(tmp_path):
    """Return a copy of the project with one map, which is made."""
    project = copy_project(tmp_path / "p", engines_from=ROOT)
    for path in (project.root / "configs/maps").glob("*.yaml"):
        if path.stem != KEPT:
            path.unlink()
    project.snakemake("maps", **QUICK)
    return project


def test_a_change_that_makes_the_plan_anew_makes_the_maps_anew_as_well(mapped):
    assert mapped.jobs("maps", **QUICK) == {}
    mapped.edit("configs/mapping.yaml", "noise_points: 3", "noise_points: 4")
    jobs = mapped.jobs("maps", **QUICK)
    assert {"plan_maps": 1, "explore_map": 1, "merge_maps": 1}.items() <= jobs.items()
    # What only the plan tells does not make a map anew.
    mapped.edit("configs/mapping.yaml", "noise_points: 4", "noise_points: 3")
    mapped.snakemake("maps", **QUICK)
    (mapped.root / "data/reproduced/maps/forecast.txt").unlink()
    assert set(mapped.jobs("maps", **QUICK)) == {"plan_maps", "maps"}
