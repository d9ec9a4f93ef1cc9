"""What the suites share: one finished quick run, groups for several workers, no skips in CI."""

import os

import pytest

from tests.workflow.project import finished_project

#: Fixtures that take minutes, and the group of the tests that share one, to be run in one process.
SHARED = {"whole": "whole", "report": "whole", "undisturbed": "undisturbed"}


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Return a project in which tier quick of all studies has run on every engine."""
    return finished_project(tmp_path_factory.mktemp("whole") / "project")


# Before the workers read the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        shared = (SHARED[name] for name in SHARED if name in item.fixturenames)
        item.add_marker(pytest.mark.xdist_group(next(shared, str(item.path))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped, where everything must run: {report.longrepr[2]}"
    return report
