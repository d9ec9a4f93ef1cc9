"""One quick run of everything, from nothing, for all the tests here."""

import pytest

from tests.workflow.project import copy_project


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Return a project in which tier quick of all studies has run from nothing."""
    project = copy_project(tmp_path_factory.mktemp("quick") / "project")
    project.snakemake("all", tier="quick")
    return project
