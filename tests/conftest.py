"""Shared by the suites: one finished quick run, and no skips in CI."""

import os

import pytest

from tests.workflow.project import finished_project


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Return a project in which tier quick of all studies has run on every engine."""
    return finished_project(tmp_path_factory.mktemp("whole") / "project")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped, where everything must run: {report.longrepr[2]}"
    return report
