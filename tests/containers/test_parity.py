"""Parity: the same scenarios give the same bytes, natively and in containers.

REPLICATION_PARITY names the studies. REPLICATION_FINISHED may name a project that ran natively.
"""

import json
import os
import subprocess

import pytest
from replication.simulate.runtime import ANALYSIS, find_image, reference

from tests.containers.conftest import ENGINES, ROOT
from tests.workflow.project import copy_project, finished_project

#: Small in tier quick; between them they run on every engine.
STUDIES = os.environ.get("REPLICATION_PARITY", "nishitha,kapadia").split(",")
TABLES = [f"data/reproduced/results/{s}/{t}.parquet" for s in STUDIES for t in ("flows", "series")]
SETTINGS = {"tier": "quick", "studies": ",".join(STUDIES), "engines": ",".join(ENGINES)}


def results(project):
    return {table: (project.root / table).read_bytes() for table in TABLES}


def batches(project):
    return set((project.root / "data" / "reproduced" / "batches").glob("*.usage.json"))


def usages(paths):
    documents = [json.loads(path.read_text()) for path in sorted(paths)]
    return [run for document in documents for run in document["runs"]]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Return a project in which the studies have run natively, and their results."""
    folder = tmp_path_factory.mktemp("parity") / "project"
    if "REPLICATION_FINISHED" in os.environ:
        project = finished_project(folder)
    else:
        project = copy_project(folder, engines_from=ROOT)
        project.snakemake(*TABLES, **SETTINGS)
    ran = usages(batches(project))
    assert {run["runtime"] for run in ran} == {"native"}
    assert {run["engine"] for run in ran} == set(ENGINES)
    return project, results(project)


def test_containers_give_the_native_bytes(native, podman):
    project, expected = native
    assert project.jobs(*TABLES, **SETTINGS, runtime="podman")["simulate_batch"] >= len(ENGINES)
    before = batches(project)
    project.snakemake(*TABLES, **SETTINGS, runtime="podman")
    found = results(project)
    assert [table for table in TABLES if found[table] != expected[table]] == []
    ran = usages(batches(project) - before)
    assert not any(run["reused"] for run in ran)
    for name in ENGINES:
        image = find_image(project.root, "podman", name)
        here = {(r["runtime"], r["image"]) for r in ran if r["engine"] == name}
        assert here == {("podman", image)}
    assert project.jobs(*TABLES, **SETTINGS, runtime="podman") == {}


@pytest.mark.skipif(len(ENGINES) < 3, reason="the analysis image holds all engines")
def test_the_workflow_in_the_analysis_image_gives_the_native_bytes(native, podman, tmp_path):
    project = copy_project(tmp_path / "project")
    # The link leads out of what is mounted, and what it leads to is not needed in the image.
    (project.root / ".cache").unlink()
    words = ["run", "--rm", "--network=none", f"--volume={project.root}:/project"]
    words += [f"--user={os.getuid()}:{os.getgid()}", "--tmpfs=/dev/shm:exec,size=1g"]
    workflow = ["snakemake", "--cores=2", "--config", *(f"{k}={v}" for k, v in SETTINGS.items())]
    command = ["podman", *words, reference(ROOT, ANALYSIS), *workflow, "--", *TABLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert results(project) == native[1]
