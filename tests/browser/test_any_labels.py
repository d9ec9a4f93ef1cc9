"""Charts and tables of a study with long labels: plots keep their columns, paper every column."""

import pytest

from tests.browser.conftest import Tab, pages

LONG = "with a description that is much longer than a legend, and 'another' <i>part</i> after it"
#: Widths of each chart's column and of its plots, in one row of panels.
PLOTS = """() => [...document.querySelectorAll("figure.chart[data-script]")].map((figure) => {
  const shown = [...figure.querySelectorAll(".plot svg path.background")]
    .filter((path) => path.closest(".role-scope, .root") && path.getAttribute("stroke"))
    .map((path) => path.getBoundingClientRect())
    .filter((box) => box.width > 1);
  const top = Math.min(...shown.map((box) => box.top));
  const row = shown.filter((box) => box.top < top + 5);
  const column = figure.querySelector(".plot").clientWidth;
  return [figure.id, column, row.reduce((sum, box) => sum + box.width, 0)];
})"""
CUT = """() => [...document.querySelectorAll("table")]
  .filter((table) => table.getBoundingClientRect().right > innerWidth + 1)
  .map((table) => table.closest(".scroll")?.getAttribute("aria-label"))"""


def lengthened(text):
    """Give every variant, and the axis, a long label."""
    for name in ("reno", "cubic"):
        text = text.replace(f"label: {name}", f'label: "{name} {LONG}"')
    return text.replace("label: Rate of the link", f'label: "Rate of the link {LONG}"')


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    # Unit tests render in one process, which the import decides for this one, too.
    from tests.unit.test_anyones_report import collection

    return collection(tmp_path_factory, "quill_buffer", "quill_shares", alter=lengthened).out


@pytest.mark.parametrize("width", [1280, 390])
def test_a_plot_takes_three_fifths_of_its_column_with_any_labels(chromium, long, width):
    view = Tab(chromium, long, width=width)
    for name in ("quill_buffer", "quill_shares", "quill_shares~evidence", "method"):
        page = view.open(f"{name}.html")
        view.wait_for_charts()
        shown = page.evaluate(PLOTS)
        assert shown, name
        for figure, column, plots in shown:
            assert column > 300 and plots >= 0.6 * column, (name, figure, column, plots)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not view.errors
    view.context.close()


def test_printed_pages_have_every_column(chromium, long, example):
    # The width of A4 less the margins.
    for folder in (long, example):
        view = Tab(chromium, folder, width=718)
        for name in pages(folder):
            page = view.open(name)
            page.emulate_media(media="print")
            view.unfold()
            assert not page.evaluate(CUT), name
        view.context.close()
