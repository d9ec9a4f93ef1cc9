"""Pictures of notebooks are as wide as a page, and pages link only notebooks that have a page."""

import altair as alt
import pandas as pd
import pytest
from replication.report.charts import figure as draw
from replication.report.notebooks.notebook import _link
from replication.report.notebooks.picture import WIDTH, Picture, line_name
from replication.report.pages.page import svg_of

FRAME = pd.DataFrame({"x": [1, 2], "y": [3, 4]})


def a_chart(title="Rate", **properties):
    points = alt.Chart(FRAME).mark_point().encode(x="x:Q", y=alt.Y("y:Q", title=title))
    return points.properties(**properties)


def drawn(chart):
    data, _ = Picture(chart, "words")._repr_mimebundle_()
    return data["application/vnd.vegalite.v5+json"]


def test_a_picture_is_as_wide_as_a_page_unless_it_states_a_width():
    assert drawn(a_chart())["width"] == WIDTH
    assert drawn(a_chart(width=300))["width"] == 300


@pytest.mark.parametrize("panels", [2, 3, 4])
def test_panels_in_a_row_share_the_width(panels):
    shown = drawn(alt.hconcat(*[a_chart() for _ in range(panels)]))
    widths = [panel["width"] for panel in shown["hconcat"]]
    assert len(set(widths)) == 1 and 0.7 * WIDTH < sum(widths) < WIDTH


def test_panels_state_once_what_their_axes_measure():
    def titles(charts):
        panels = drawn(alt.concat(*charts, columns=2))["concat"]
        return [panel["encoding"]["y"]["title"] for panel in panels]

    assert titles([a_chart() for _ in range(4)]) == ["Rate", None, "Rate", None]
    assert titles([a_chart("Rate"), a_chart("Delay")]) == ["Rate", "Delay"]


def test_a_long_title_has_several_lines():
    assert isinstance(drawn(a_chart(title="Rate").properties(title="word " * 60))["title"], list)


def test_a_line_is_named_at_a_point_of_its_axes():
    axes = {"x": alt.X("x:Q"), "y": alt.Y("y:Q")}
    named = line_name(2, 4, "The law", axes).to_dict()
    (rows,) = named["datasets"].values()
    assert rows == [{"x": 2, "y": 4, "words": "The law"}]


def test_only_the_first_panel_of_a_row_has_labels_at_the_shared_axis():
    layered = [alt.layer(a_chart(), a_chart()) for _ in range(5)]
    shown = draw.panels_of(layered, "Rate", "Delay").to_dict()
    assert shown["columns"] == 3
    labels = [panel["layer"][0]["encoding"]["y"]["axis"]["labels"] for panel in shown["concat"]]
    assert labels == [True, False, False, True, False]


def test_a_page_links_notebooks_that_have_a_page():
    assert _link("ecn", "ECN", None) == '<a href="ecn.html">ECN</a>'
    assert _link("cbr_sweep", "CBR", {"cbr_sweep": "liang_shen.cbr_sweep.html"}).startswith(
        '<a href="liang_shen.cbr_sweep.html">'
    )
    assert _link("bbr", "BBR", {}) == "BBR"


def test_a_static_picture_has_no_hidden_labels_and_no_empty_outlines():
    text = svg_of(drawn(a_chart()), "a")
    assert 'opacity="0"' not in text and "<text fill" not in text and "<g>" not in text
    assert "M0,0h" not in text and 'stroke="currentColor"' in text
