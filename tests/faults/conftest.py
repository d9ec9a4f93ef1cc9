"""One study in runs of a tier that takes seconds: what the tests of faults disturb."""

import time

import pytest

from tests.workflow.project import ROOT, copy_project

STUDY = {"tier": "brief", "studies": "nishitha"}
TIER = """\
id: brief
title: a few short runs in several batches
replicates: [{count: 1}]
levels: quick
cost_limit_s: 0.1
batch_cost_s: 0.7
"""
TARGET = "data/reproduced/cells.csv"
RESULTS = ("results/nishitha/flows.parquet", "results/nishitha/series.parquet")
RESULTS += ("cells.csv", "claims.csv", "self_consistency.csv", "audit.csv")


def results_of(project):
    """Return the bytes of what a run makes."""
    return {path: (project.root / "data/reproduced" / path).read_bytes() for path in RESULTS}


def brief_project(folder, engines_from=ROOT):
    """Return a copy of the project that has the tier of these tests, and engines if built."""
    project = copy_project(folder, engines_from)
    (folder / "configs/tiers/brief.yaml").write_text(TIER)
    return project


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Return a project in which one study ran to its end without a fault, and its wall seconds."""
    project = brief_project(tmp_path_factory.mktemp("undisturbed") / "project")
    project.snakemake("engines", **STUDY)
    started = time.monotonic()
    project.snakemake(TARGET, **STUDY)
    return project, time.monotonic() - started
