"""The report in a browser: charts, widths, axe-core, tables, themes, keyboard, no network."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import a_page_with, assert_drawn, pages, some_runs

#: Finds clipped text: text beyond the window and outside scrolling regions, and text in a box that
#: is too small. Text for screen readers only is left out.
CLIPPED = """() => {
  const hidden = (e) => e.closest(".hidden, .skip, [hidden], svg.marks");
  const scrolls = (e) => e.closest(".scroll");
  const clips = (e) => ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (!box.width || hidden(e)) continue;
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (words && !scrolls(e) && (box.right > innerWidth + 1 || box.left < -1))
      found.push(`beyond the window: ${e.outerHTML.slice(0, 120)}`);
    if (clips(e) && e.scrollWidth > e.clientWidth + 1)
      found.push(`cut off: ${e.outerHTML.slice(0, 120)}`);
  }
  return found;
}"""
#: Tables wider than a window of 1280 px: their region scrolls and hides the columns on the right.
#: The verdict of a number must be visible.
UNSEEN = """() => [...document.querySelectorAll(".cells .scroll, .tally")]
  .map((e) => e.closest(".scroll"))
  .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
  .map((e) => `${e.getAttribute("aria-label")}: ${e.scrollWidth} > ${e.clientWidth}`)"""


#: What axe-core reports and asks for: no passed checks, and no style sheets, which pages refuse it.
ONLY_VIOLATIONS = {"resultTypes": ["violations"], "preload": False}
#: The only rule whose result depends on the scheme.
ONLY_CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
#: Keep two of the rows of a table that have the same elements, classes, styles and labelled parts,
#: and two of a chart's marks without words that differ in place, shape and label alone: axe-core
#: takes minutes for thousands of them and reports the same for each.
TWO_OF_A_KIND = """() => {
  const PLACE = "aria-label d height transform width x x1 x2 y y1 y2".split(" ");
  const attributes = (e) => [...e.attributes].filter((a) => !PLACE.includes(a.name));
  const drawn = (e) => attributes(e).map((a) => `${a.name}=${a.value}`).sort();
  const looks = (e) => [e.localName, e.getAttribute("class"), e.style.cssText];
  const says = (e) => [!!e.textContent.trim(), !!e.getAttribute("aria-label")];
  const keepTwo = (all, describe) => {
    const seen = new Map();
    for (const one of all) {
      const kind = [one, ...one.querySelectorAll("*")].map((e) => describe(e).join()).join("|");
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
      if (seen.get(kind) > 2) one.remove();
    }
  };
  for (const body of document.querySelectorAll("tbody"))
    keepTwo([...body.rows], (e) => [...looks(e), ...says(e)]);
  for (const group of document.querySelectorAll("svg.marks g"))
    keepTwo(
      [...group.children].filter((e) => !e.textContent.trim()),
      (e) => [e.localName, ...says(e), ...drawn(e)],
    );
}"""


def studies(report):
    return [path.name.replace("~evidence", "") for path in sorted(report.glob("*~evidence.html"))]


def shortest(report):
    """Return the pages that have a limit of length."""
    return ["index.html", *studies(report)]


def height(page):
    return page.evaluate("document.documentElement.scrollHeight")


@pytest.mark.parametrize(("drawn", "wider"), [(360, 768), (1280, 1920)])
def test_pages_load_without_errors_and_clip_no_text(tab, report, example, drawn, wider):
    """Charts are drawn for the first width, and the window is widened to the second."""
    current, released = tab(report), tab(example)
    shown = [(current, name) for name in [*pages(report), *some_runs(report)]]
    shown += [(released, name) for name in pages(example) if name.startswith("regions")]
    for view, name in shown:
        view.page.set_viewport_size({"width": drawn, "height": 900})
        page = view.open(name)
        view.unfold()
        assert_drawn(view, name)
        for width in (drawn, wider):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert not page.evaluate(CLIPPED), (name, width)
            assert width < 1280 or not page.evaluate(UNSEEN), (name, width)


def test_axe_finds_no_serious_violation_in_light_and_dark(tab, example):
    axe, view = Axe(), tab(example)
    for name in [*pages(example), *some_runs(example)[:2]]:
        view.page.emulate_media(color_scheme="light")
        page = view.open(name)
        assert_drawn(view, name)
        assert name not in shortest(example) or height(page) <= 6000, name
        page.evaluate(TWO_OF_A_KIND)
        violations = serious(axe.run(page, options=ONLY_VIOLATIONS))
        page.emulate_media(color_scheme="dark")
        violations += serious(axe.run(page, options=ONLY_VIOLATIONS | ONLY_CONTRAST))
        assert not violations, f"{name}: " + "\n".join(violations)


def serious(results):
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:160]} ({len(v['nodes'])})"
        for v in results.response["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def test_the_page_of_a_study_shows_chart_table_and_claims_in_this_order(tab, report):
    top = "(e) => e.getBoundingClientRect().top"
    view = tab(height=800)
    for name in studies(report):
        page = view.open(name)
        charts = page.locator("figure.chart .plot:visible")
        assert charts.first.evaluate(top) <= 1.5 * 800, page.url
        table = page.locator("main table:visible").first
        assert not table.count() or charts.first.evaluate(top) < table.evaluate(top), page.url
        for section in page.locator("section.experiment").all():
            parts = section.locator("figure.chart, table.grid, ul.verdict-lines")
            kinds = parts.evaluate_all(
                "(all) => all.filter((e) => e.checkVisibility()).map((e) => e.localName)"
            )
            order = [kind for kind in ("figure", "table", "ul") if kind in kinds]
            assert list(dict.fromkeys(kinds)) == order, page.url


def test_the_first_page_and_those_of_studies_are_short_on_a_phone(tab, example):
    view = tab(example, width=390)
    for name in shortest(example):
        page = view.open(name)
        view.wait_for_charts()
        assert height(page) <= 9000, name


@pytest.mark.parametrize(("width", "most"), [(1280, 9000), (390, 20000)])
def test_pages_of_regions_are_short_and_show_every_picture_without_scripts(
    tab, example, width, most
):
    names = [path.name for path in sorted(example.glob("regions*.html"))]
    assert len(names) == 6
    view = tab(example, width=width, scripts=False)
    for name in names:
        page = view.open(name)
        assert height(page) <= most, name
        for figure in page.locator("figure.region > svg").all():
            assert figure.bounding_box()["width"] > 200, name


def test_pages_of_engines_and_evidence_are_short_while_folded(tab, example):
    view = tab(example)
    for name in ["engines.html", "kapadia~evidence.html"]:
        page = view.open(name)
        folded = height(page)
        view.unfold()
        assert folded <= 8500 < height(page), name
        assert page.locator("nav.contents a").count() > 5


GROUND = "getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_use_the_readers_colour_scheme_or_the_chosen_one(tab, report, scheme):
    def is_dark(page):
        return int(re.match(r"rgba?\((\d+)", page.evaluate(GROUND))[1]) < 60

    view = tab(scheme=scheme)
    for name in [some_runs(report)[0], studies(report)[0], "index.html"]:
        assert is_dark(view.open(name)) == (scheme == "dark"), name
    view.page.click("#theme")
    view.page.reload()
    assert is_dark(view.page) == (scheme == "light") and not view.errors
    assert view.page.inner_text("#theme").lower() == scheme


def test_tables_sort_in_both_directions_with_empty_cells_last(tab, report):
    """Look for the first table that lacks some of our values."""

    def values():
        cells = table.locator(f"tbody tr:not([hidden]) > :nth-child({number})")
        return cells.evaluate_all("(all) => all.map((cell) => cell.getAttribute('data-value'))")

    view = tab()
    for name in [name for name in pages(report) if name.endswith("~evidence.html")]:
        page = view.open(name)
        view.unfold()
        for choice in page.locator(".cells select[name=engine]").all():
            choice.select_option("")
        for table in page.locator("table[id^=table-]").all():
            header = table.locator("thead th", has_text="Measured")
            number = header.evaluate("(th) => th.cellIndex") + 1
            full = sorted((value for value in values() if value), key=float)
            if full and "" in values():
                empty = [""] * (len(values()) - len(full))
                header.locator("button").click()
                assert header.get_attribute("aria-sort") == "ascending"
                assert values() == full + empty
                header.locator("button").press("Enter")
                assert header.get_attribute("aria-sort") == "descending"
                assert values() == full[::-1] + empty
                return
    pytest.skip("every number of this report was reproduced")


def test_tables_filter_by_verdict(tab, report):
    view = tab()
    page = view.open(a_page_with(report, 'class="cells all"'))
    view.unfold()
    form = page.locator(".cells form.filter").first
    table = "#" + form.get_attribute("data-filter")
    if form.locator("select[name=engine]").count():
        form.locator("select[name=engine]").select_option("")
    for option in form.locator("select[name=verdict] option").all():
        value = option.get_attribute("value")
        form.locator("select[name=verdict]").select_option(value)
        shown = page.locator(f"{table} tbody tr:visible")
        expected = page.locator(f"{table} tbody tr" + (f"[data-verdict={value}]" if value else ""))
        assert shown.count() == expected.count() > 0
        assert form.locator("output").inner_text().startswith(f"{shown.count()} of ")


def test_content_and_tables_can_be_reached_by_keyboard(tab, report):
    page = tab().open(a_page_with(report, 'class="cells"'))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    box = page.locator(".cells .scroll").first
    box.focus()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
    assert box.evaluate("(e) => getComputedStyle(e).outlineStyle") == "solid"


def test_pages_can_be_read_without_scripts(tab, report):
    view = tab(scripts=False)
    for name in [*pages(report), *some_runs(report)[:2]]:
        page = view.open(name)
        assert page.inner_text("h1") and page.inner_text("main")
        for figure in page.locator("figure.chart:visible").all():
            picture = figure.locator("svg.static")
            assert picture.bounding_box()["width"] > 200, (name, figure.get_attribute("id"))
    assert page.locator("form.filter:visible").count() == 0


def test_printed_pages_are_light_complete_and_without_controls(tab, report):
    view = tab(scheme="dark")
    page = view.open(a_page_with(report, 'class="claim '))
    view.wait_for_charts()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 32, 36)"
    assert page.locator(".claim details:not([open])").count() == 0
    assert page.locator("h1").is_visible() and page.locator(".plot svg").first.is_visible()
    for hidden in ("header.site nav", "p.save", "a.skip"):
        assert not page.locator(hidden).first.is_visible(), hidden
    assert page.pdf()[:5] == b"%PDF-"


def test_notebooks_open_without_errors_or_requests(tab, report):
    names = [f"notebooks/{path.name}" for path in sorted(report.glob("notebooks/*.html"))]
    assert names
    view = tab(width=390)
    for name in names:
        page = view.open(name)
        assert page.inner_text("body").strip()
        assert not view.errors and not view.outside(), name
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
