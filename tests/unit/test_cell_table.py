"""Published tables on the page: the paper's own shape, shades by deviation, answers from counts."""

import pytest
from replication.report.pages.cell_table import shade
from replication.report.pages.verdict import Tally, answer
from replication.study.errors import InputError

from tests.unit.report_project import example, soup


@pytest.mark.parametrize(
    ("deviation", "name"),
    [
        *((None, ""), (0.0, "near"), (-0.05, "near"), (0.051, "high-1"), (-0.2, "low-1")),
        *((0.5, "high-2"), (-0.51, "low-3"), (3.0, "high-3")),
    ],
)
def test_a_shade_says_which_way_and_how_far(deviation, name):
    assert shade(deviation) == name


def test_the_table_has_the_papers_rows_and_columns(project):
    project.add(example(project.world))
    page = soup(project.render("synthetic") / "synthetic.html")
    (table,) = page.select("table.grid")
    assert [th.get_text() for th in table.select("tbody th")] == ["slow", "mid", "fast"]
    assert "throughput" in table.select("thead th")[1].get_text()
    for row in project.rows("cells.csv"):
        (cell,) = table.select(f'td[id="cell=1~{row["row"]}~throughput"]')
        shown = float(cell.select_one(".published").get_text())
        assert shown == pytest.approx(float(row["published"]) * 1e-6)
        assert row["verdict"] in cell.get_text() and cell.select("svg.icon")
        assert f"off-{shade(float(row['relative_deviation']))}" in cell["class"]


def test_an_answer_counts_what_can_be_told():
    numbers = Tally(["reproduced", "not reproduced", "not reproduced", "not testable"])
    claims = Tally(["reproduced", "not reproduced", "not reproduced", "direction only"])
    assert answer(numbers, claims, [0.02, 0.3, -0.4]) == [
        "1 of 3 printed numbers are inside their tolerance; 1 more cannot be tested; median error "
        "30 %, 2 of our 3 values are too high.",
        "Of 4 claims, 1 holds, 1 has the right direction only, 2 do not hold.",
    ]
    assert answer(Tally([]), Tally([]), []) == []
    with pytest.raises(InputError, match="'not run' is unknown"):
        Tally(["not run"])
