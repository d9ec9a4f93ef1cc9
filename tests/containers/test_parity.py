"""Parity: the same scenarios give the same bytes, natively and in every container."""

import json

import pytest
from replication.image import find_image

from tests.containers.conftest import ENGINES, ROOT, RUNTIMES
from tests.workflow.project import copy_project

#: Small in tier quick; between them they run on every engine.
STUDIES = ("nishitha", "kapadia")
TABLES = [f"data/reproduced/results/{s}/{t}.parquet" for s in STUDIES for t in ("flows", "series")]
SETTINGS = {"tier": "quick", "studies": ",".join(STUDIES), "engines": ",".join(ENGINES)}


def results(project):
    return {table: (project.root / table).read_bytes() for table in TABLES}


def usages(project):
    folder = project.root / "data" / "reproduced" / "batches"
    documents = [json.loads(p.read_text()) for p in sorted(folder.glob("*.usage.json"))]
    return [run for document in documents for run in document["runs"]]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Return a project in which the studies have run natively, and their results."""
    project = copy_project(tmp_path_factory.mktemp("parity") / "project", engines_from=ROOT)
    project.snakemake(*TABLES, **SETTINGS)
    assert {run["runtime"] for run in usages(project)} == {"native"}
    assert {run["engine"] for run in usages(project)} == set(ENGINES)
    return project, results(project)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_container_gives_the_native_bytes(native, runtime, request):
    project, expected = native
    request.getfixturevalue(runtime)
    assert project.jobs(*TABLES, **SETTINGS, runtime=runtime)["simulate_batch"] >= len(ENGINES)
    project.snakemake(*TABLES, **SETTINGS, runtime=runtime)
    found = results(project)
    assert [table for table in TABLES if found[table] != expected[table]] == []
    ran = usages(project)
    assert not any(run["reused"] for run in ran)
    for name in ENGINES:
        image = find_image(project.root, runtime, name).id
        here = {(r["runtime"], r["image"]) for r in ran if r["engine"] == name}
        assert here == {(runtime, image)}
    assert project.jobs(*TABLES, **SETTINGS, runtime=runtime) == {}
