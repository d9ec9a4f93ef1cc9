"""Use of the report: from a number to its run, saving files."""

import csv
import json
import re

import pytest

from tests.browser.conftest import a_page_with


def test_a_number_links_to_its_runs_and_back(tab, report):
    view = tab()
    page = view.open(a_page_with(report, 'class="grid"'))
    # Leaving a page aborts its pending requests.
    view.wait_for_charts()
    cell = page.locator(".grid td[id]:visible a").first
    name = cell.locator("xpath=ancestor::td").get_attribute("id")
    cell.click()
    if "~evidence.html" in page.url:
        row = page.locator(f"tr[id='{name}']")
        row.locator("td.runs summary").click()
        row.locator("td.runs a").first.click()
    page.wait_for_url("**/runs/**")
    assert re.match(r"replicate run [0-9a-f]{16} --engine \w+$", page.inner_text("code.command"))
    view.wait_for_charts()
    if page.locator("[aria-labelledby=numbers] summary").count():
        page.locator("[aria-labelledby=numbers] summary").click()
    page.locator(f"a[href$='#{name}']").click()
    page.locator(f"tr[id='{name}']").wait_for(state="visible")
    assert not view.errors and not view.outside()


def test_a_mark_of_the_scatter_links_to_its_number(tab, report):
    view = tab()
    page = view.open("method.html")
    view.wait_for_charts()
    page.locator("#numbers .mark-symbol path[aria-label]").first.click(force=True)
    page.wait_for_url(re.compile(r"~evidence\.html#cell="))
    name = page.url.partition("#")[2]
    page.locator(f"tr[id='{name}']").wait_for(state="visible")


@pytest.mark.parametrize("kind", ["csv", "json", "svg", "png"])
def test_charts_can_be_saved(tab, report, kind):
    view = tab(scheme="dark")
    for name in [a_page_with(report, 'class="cells"'), "index.html"]:
        page = view.open(name)
        view.wait_for_charts()
        view.unfold()
        with page.expect_download() as download:
            page.locator(f"[data-save={kind}]").first.click()
        content = download.value.path().read_bytes()
        if kind == "png":
            assert content.startswith(b"\x89PNG") and int.from_bytes(content[16:20], "big") > 400
        elif kind == "csv":
            head, *rows = csv.reader(content.decode().splitlines())
            assert rows and all(len(row) == len(head) for row in rows)
        elif kind == "svg":
            assert content.startswith(b"<svg") and content.count(b"<path") > 3
            assert b"currentColor" not in content
        else:
            tables = json.loads(content)["datasets"].values()
            assert any(len(rows) > 1 and isinstance(rows[0], dict) for rows in tables)
        assert not view.errors and not view.outside()
