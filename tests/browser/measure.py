"""Measure a rendered report: bytes of each page, and seconds until its first chart is drawn."""

import statistics
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

REPEATS = 3
VIEW = {"width": 1280, "height": 900}


def first_chart_s(browser, path: Path) -> float | None:
    """Return the seconds from opening a page to its first drawn chart; None without charts."""
    if '<figure class="chart"' not in path.read_text(encoding="utf-8"):
        return None
    page = browser.new_page(viewport=VIEW)
    try:
        started = time.monotonic()
        page.goto(path.as_uri())
        page.locator("figure.chart").first.scroll_into_view_if_needed()
        page.wait_for_selector(".plot[data-drawn]", timeout=60000)
        return time.monotonic() - started
    finally:
        page.close()


def main(folder: Path) -> None:
    """Print a line a page, the largest of all files, and the size of the whole."""
    runs = sorted(folder.glob("runs/*.html"))
    paths = [*sorted(folder.glob("*.html")), *runs[:1]]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        print(f"{'page':<40} {'kB':>8} {'first chart, s':>15}")
        for path in paths:
            times = [first_chart_s(browser, path) for _ in range(REPEATS)]
            known = [value for value in times if value is not None]
            shown = f"{statistics.median(known):.2f}" if known else "none"
            name = path.relative_to(folder).as_posix()
            print(f"{name[:40]:<40} {path.stat().st_size / 1e3:>8.0f} {shown:>15}")
        browser.close()
    files = [path for path in folder.rglob("*") if path.is_file()]
    largest = max(folder.rglob("*.html"), key=lambda path: path.stat().st_size)
    print(f"largest page: {largest.relative_to(folder)}, {largest.stat().st_size / 1e6:.2f} MB")
    print(f"all {len(files)} files: {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
    print(f"pages of runs: {len(runs)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
