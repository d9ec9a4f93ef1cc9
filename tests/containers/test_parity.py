"""Parity: the same scenarios give the same bytes, natively and in containers.

REPLICATION_PARITY names the studies.
"""

import itertools
import json
import os
import subprocess

import pytest
from replication.simulate.runtime import ANALYSIS, find_image, reference

from tests.containers.conftest import ENGINES, ROOT
from tests.workflow.project import brief_project

#: Together they run on every engine.
STUDIES = os.environ.get("REPLICATION_PARITY", "nishitha,kapadia").split(",")
TABLES = [
    f"data/reproduced/results/{study}/{table}.parquet"
    for study, table in itertools.product(STUDIES, ("flows", "series"))
]
SETTINGS = {"tier": "brief", "studies": ",".join(STUDIES), "engines": ",".join(ENGINES)}
# A container takes a second to start.
SETTINGS["batch_cost_s"] = 20


def results(project):
    return {table: (project.root / table).read_bytes() for table in TABLES}


def usages(project):
    """Return the recorded usage of each run, by the file of its batch."""
    paths = (project.root / "data/reproduced/batches").glob("*.usage.json")
    return {path: json.loads(path.read_text())["runs"] for path in paths}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Return a project in which the studies have run natively, and their results."""
    project = brief_project(tmp_path_factory.mktemp("parity") / "project")
    project.snakemake(*TABLES, **SETTINGS)
    ran = [*itertools.chain(*usages(project).values())]
    assert {run["runtime"] for run in ran} == {"native"}
    assert {run["engine"] for run in ran} == set(ENGINES)
    return project, results(project)


def test_containers_give_the_same_bytes_as_native_runs(native, podman):
    project, expected = native
    assert project.jobs(*TABLES, **SETTINGS, runtime="podman")["simulate_batch"] >= len(ENGINES)
    before = usages(project)
    project.snakemake(*TABLES, **SETTINGS, runtime="podman")
    measured = results(project)
    assert [table for table in TABLES if measured[table] != expected[table]] == []
    after = usages(project)
    ran = [*itertools.chain(*(after[path] for path in after.keys() - before.keys()))]
    assert not any(run["reused"] for run in ran)
    images = {name: find_image(project.root, "podman", name) for name in ENGINES}
    here = {(run["engine"], run["runtime"], run["image"]) for run in ran}
    assert here == {(name, "podman", image) for name, image in images.items()}
    assert project.jobs(*TABLES, **SETTINGS, runtime="podman") == {}


@pytest.mark.skipif(len(ENGINES) < 3, reason="the analysis image holds all engines")
def test_the_workflow_in_the_analysis_image_gives_the_same_bytes_as_native_runs(
    native, podman, tmp_path
):
    project = brief_project(tmp_path / "project")
    # The link points outside the mounted folder, and its target is not needed in the image.
    (project.root / ".cache").unlink()
    words = ["run", "--rm", "--network=none", f"--volume={project.root}:/project"]
    words += [f"--user={os.getuid()}:{os.getgid()}", "--tmpfs=/dev/shm:exec,size=1g"]
    workflow = ["snakemake", "--cores=2", "--config", *(f"{k}={v}" for k, v in SETTINGS.items())]
    podman_run = [ROOT / "containers" / "podman", *words, reference(ROOT, ANALYSIS)]
    command = [*podman_run, *workflow, "--", *TABLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert results(project) == native[1]
