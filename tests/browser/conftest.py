"""Rendered reports and a browser to open them in, offline, from the file system."""

import fcntl
import os
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from replication.report.release import released_results
from replication.report.render import render

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")


def pages(report):
    return sorted(path.name for path in report.glob("*.html"))


def some_runs(report):
    """Return the page of one point of each experiment."""
    by_point = {}
    for path in sorted(report.glob("runs/*.html")):
        by_point.setdefault(path.stem.rsplit("~", 1)[0], f"runs/{path.name}")
    return list(by_point.values())


def assert_drawn(view, name):
    """Check that every chart of an open page is drawn, without an error or a request."""
    drawn = view.wait_for_charts()
    assert drawn == (view.report / name).read_text().count(" data-script=")
    marks = view.page.evaluate(
        "[...document.querySelectorAll('.plot svg.marks')].map("
        "(svg) => svg.querySelectorAll('path, text, line').length)"
    )
    assert len(marks) == drawn and all(count > 3 for count in marks), name
    assert not view.errors and not view.outside(), name


def a_page_with(report, text):
    return next(name for name in pages(report) if text in (report / name).read_text())


@pytest.fixture(scope="session")
def report(request) -> Path:
    """Return the folder of REPLICATION_REPORT_HTML, or a report of tier quick on every engine."""
    if named := os.environ.get("REPLICATION_REPORT_HTML"):
        return ROOT / named
    return request.getfixturevalue("whole").root / "reports/html"


@pytest.fixture(scope="session")
def example(tmp_path_factory, worker_id) -> Path:
    """Return a report of the release, which has a sensitivity analysis; all workers share it."""
    base = tmp_path_factory.getbasetemp()
    out = (base if worker_id == "master" else base.parent) / "example"
    with out.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.is_dir():
            render(ROOT, released_results(ROOT), out / "no notebooks", out)
    return out


@pytest.fixture(scope="session")
def chromium():
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Tab:
    """A tab, slower to open than a page, that collects errors and requests outside the folder."""

    def __init__(
        self, browser, report: Path, width=1280, scheme="light", scripts=True, height=900
    ) -> None:
        self.report = report
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else 0)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _failed(self, request) -> None:
        # Requests that were still loading on leaving the page are not errors.
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"{request.url}: {request.failure}")

    def open(self, name: str):
        self.page.goto((self.report / name).as_uri())
        return self.page

    def unfold(self) -> None:
        """Open everything that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")

    def wait_for_charts(self, which="[data-script] .plot", timeout_s=60.0) -> int:
        """Wait until every chart is drawn; return how many there are."""
        everything = f"[...document.querySelectorAll('{which}')]"
        for _ in range(round(10 * timeout_s)):
            if self.page.evaluate(f"{everything}.every((plot) => 'drawn' in plot.dataset)"):
                return self.page.evaluate(f"{everything}.length")
            self.page.wait_for_timeout(100)
        raise AssertionError(f"not all charts are drawn: {self.errors}")

    def outside(self) -> list[str]:
        """Return requests that leave the report's folder."""
        inside = (self.report.as_uri() + "/", "data:", "blob:")
        return [url for url in self.requests if not url.startswith(inside)]


@pytest.fixture
def tab(chromium, report):
    tabs = []

    def make(folder=report, **settings) -> Tab:
        tabs.append(Tab(chromium, folder, **settings))
        return tabs[-1]

    yield make
    for opened in tabs:
        opened.context.close()
