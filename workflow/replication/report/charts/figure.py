"""A figure (a chart with its description, data and file name), the theme, and shared layers.

Text, axes and published values are drawn in ``currentColor`` on a transparent ground, so a chart
takes the text colour of its page in light mode, dark mode and print. Colours are those of Okabe and
Ito with contrast on both grounds; each comes with a different symbol or dash.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import altair as alt

from replication.base.files import digest_of
from replication.verdicts.wording import lower

#: Characters in a line of an axis label, and its pixels: on a phone, too, labels leave the plot
#: three fifths of its column.
_LINE, _LABEL = 20, 128
#: Pixels of a character of a label and of a title, and of a legend's symbol and padding.
_CHARACTER, _TITLE_CHARACTER, _SYMBOL = 6, 7, 34
#: Characters in a line of the title of several panels, which a phone shows one below the other.
_PANELS_LINE = 52
#: Longest name of a file, which leaves room for a suffix and a temporary file's mark.
_LONGEST = 200
_QUOTED = re.compile(r"[^A-Za-z0-9_.,=-]")


def name_of(*parts: str) -> str:
    """Join `parts` with tildes, quoting all signs that are not safe in files and pages.

    Names of figures and runs begin with study and experiment, empty if a figure belongs to none.
    The charts' script makes the same name of a number's table, row and column.
    """
    quoted = (_QUOTED.sub(lambda sign: f"+{sign[0].encode().hex('+')}", part) for part in parts)
    return "~".join(quoted)


def file_of(name: str) -> str:
    """Return the file name, without suffix, for a `name`; a long one ends in a hash."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}+sha256-{digest_of(name.encode())[:32]}"


#: Any Altair chart; the classes have no useful common type.
Drawing = Any
INK = "currentColor"
#: Okabe and Ito (2008): blue, vermillion, bluish green, reddish purple, orange, sky blue, grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SYMBOLS = ("circle", "square", "triangle-up", "triangle-down", "cross", "triangle-right", "stroke")
DASHES = ([1, 0], [8, 3], [3, 3], [10, 3, 2, 3], [1, 3], [6, 2, 1, 2, 1, 2], [12, 4])
#: Published values look the same in every chart: a hollow diamond in the colour of the text.
PUBLISHED = "Published"
PUBLISHED_MARK: dict[str, Any] = {
    "shape": "diamond",
    "size": 80,
    "filled": False,
    "stroke": INK,
    "strokeWidth": 1.6,
    "opacity": 1.0,
}
WIDTH = 520
#: Most panels in a row, and pixels of a line of a panel's title, which fit on a phone.
MOST_COLUMNS, PANEL_TITLE = 3, 240


@dataclass(frozen=True)
class Figure:
    """One figure: its id (see `name_of`), title, Vega-Lite with its data, and alternative text.

    `published` has table, row and column of each published number in it.
    """

    id: str
    title: str
    specification: Mapping[str, Any]
    description: str
    published: frozenset[tuple[str, str, str]]

    @property
    def script(self) -> str:
        """The chart's script, relative to the report's folder."""
        return f"charts/{file_of(self.id)}.js"


def to_png(specification: Mapping[str, Any]) -> bytes:
    """Return a Vega-Lite specification as a PNG on white."""
    import oxipng
    import vl_convert

    rendered = vl_convert.vegalite_to_png({**specification, "background": "white"})
    # Notebooks are kept in git, so size matters more than speed.
    return oxipng.optimize_from_memory(bytes(rendered), level=2)


def make_figure(
    parts: Sequence[str], title: str, chart: Drawing, words: str, published: Iterable[Any] = ()
) -> Figure:
    """Make a figure: `parts` become its id, and the chart gets the theme."""
    drawn = themed(chart).to_dict(validate=False)
    return Figure(name_of(*parts), title, drawn, words, frozenset(published))


def themed(chart: Drawing) -> Drawing:
    """Return the chart with the theme of all charts."""
    words: dict[str, Any] = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
    words |= {"labelFontSize": 11, "titleFontSize": 12}
    lines = {"domainColor": INK, "domainOpacity": 0.4, "tickColor": INK, "tickOpacity": 0.4}
    grid = {"gridColor": INK, "gridOpacity": 0.12}
    legend = {"symbolStrokeWidth": 2, "symbolSize": 90, "symbolOpacity": 1, "labelLimit": 240}
    return chart.properties(background="transparent").configure(
        font="sans-serif",
        axis={**words, **lines, **grid},
        legend={**words, **legend},
        title={"color": INK, "fontSize": 13, "fontWeight": "normal", "anchor": "start"},
        text={"color": INK},
        view={"stroke": INK, "strokeOpacity": 0.2},
    )


def levels_of(
    channel: type[Any], field: str, order: Sequence[str], values: Sequence[Any], legend: Any
) -> Any:
    """Return a nominal encoding that maps the levels of `order` to `values`."""
    used = [values[i % len(values)] for i in range(len(order))]
    scale = alt.Scale(domain=list(order), range=used)
    return channel(field=field, type="nominal", sort=list(order), scale=scale, legend=legend)


def legend_of(
    order: Sequence[str], title: str | None = None, lines: bool = False, width: int = WIDTH
) -> alt.Legend:
    """Return a legend above plots of a `width`, no wider, with strokes as symbols for `lines`."""
    options: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 300} if lines else {}
    column = _SYMBOL + _CHARACTER * max(map(len, order), default=0)
    if column > width:
        options["labelExpr"] = _in_lines((width - _SYMBOL) // _CHARACTER)
    columns = max(1, min(len(order), width // column))
    return alt.Legend(title=title, orient="top", columns=columns, labelLimit=width, **options)


def changed(channel: Any, **changes: Any) -> Any:
    """Return an encoding with other values of some keys."""
    copy = channel.copy()
    for key, value in changes.items():
        copy[key] = value
    return copy


def look(
    field: str, order: Sequence[str], lines: bool = False, width: int = WIDTH
) -> dict[str, Any]:
    """Return the encodings of a field: colours with symbols, or with dashes for `lines`."""
    legend = legend_of(order, lines=lines, width=width)
    second = ("strokeDash", alt.StrokeDash, DASHES) if lines else ("shape", alt.Shape, SYMBOLS)
    both = (("color", alt.Color, PALETTE), second)
    return {key: levels_of(kind, field, order, values, legend) for key, kind, values in both}


def tips(kind: str, format: Any = alt.Undefined, **titles: str) -> list[alt.Tooltip]:
    """Return tooltips for fields of one type (N or Q), given their titles."""
    fields = titles.items()
    return [alt.Tooltip(f"{field}:{kind}", title=title, format=format) for field, title in fields]


def round_step(span: float, most: int) -> float:
    """Return 1, 2 or 5 times a power of ten, at most `most` of which fit into `span`."""
    least = span / most * 0.999
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def three_digits(value: float) -> str:
    """Return `value` with three significant digits, for text."""
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def with_prefix(figures: Sequence[Figure], *prefix: str) -> list[Figure]:
    """Put the parts `prefix` before the ids of figures."""
    return [replace(figure, id=f"{name_of(*prefix)}~{figure.id}") for figure in figures]


def wrapped(labels: Iterable[str]) -> tuple[alt.Axis, int]:
    """Return an axis that wraps long labels, and the number of lines of the longest."""
    longest = max((len(re.findall(_line(_LINE), label)) for label in labels), default=1)
    if longest <= 1:
        return alt.Axis(labelLimit=_LABEL), 1
    return alt.Axis(labelLimit=_LABEL, labelExpr=_in_lines(_LINE)), longest


def _line(characters: int) -> str:
    """Return the pattern of a line: up to the last blank that fits, or a part of a long word."""
    return f"(.{{1,{characters}}})( |$)|(.{{{characters}}})"


def _in_lines(characters: int) -> str:
    """Return the Vega expression that wraps a label; the charts' script makes the same."""
    return f"split(trim(replace(datum.label, /{_line(characters)}/g, '$1$3\\n')), '\\n')"


def lines_of(title: str, pixels: int) -> str | list[str]:
    """Return a title that fits into so many pixels, as several lines if it must."""
    lines = wrap(title, max(10, pixels // _TITLE_CHARACTER), break_on_hyphens=False)
    return lines if len(lines) > 1 else title


def axis_x(
    title: str | Sequence[str], values: Sequence[float] = (), names: Sequence[str] = ()
) -> alt.X:
    """Return the horizontal axis of a factor, whose levels have numeric `values` or `names`.

    It is logarithmic if the levels span a factor of 30 or more.
    """
    if not values:
        return alt.X("x", type="nominal", title=title, sort=list(names) or None)
    low, high = min(values), max(values)
    axis = alt.Axis(
        values=list(values),
        labelOverlap="greedy",
        labelSeparation=6,
        # A `format` would round labels to the distance between ticks.
        labelExpr="format(datum.value, '.6~g')",
    )
    if low > 0 and high / low >= 30:
        scale = alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    else:
        pad = 0.04 * (high - low or 1.0)
        scale = alt.Scale(domain=[min(0.0, low), high + pad], nice=False)
    return alt.X("x", type="quantitative", title=title, scale=scale, axis=axis)


def panels_of(charts: Sequence[Drawing], y: str, x: str) -> Drawing:
    """Return panels side by side, with what their axes measure in one title.

    They share the vertical axis, so only the first panel of a row has its labels.
    """
    title = title_of_panels([y, f"against {lower(x)}"])
    columns = balanced(len(charts), MOST_COLUMNS)
    drawn = [_with_axis(chart, place % columns == 0) for place, chart in enumerate(charts)]
    shared = alt.concat(*drawn, columns=columns, title=title)
    return shared.resolve_scale(color="shared", shape="shared", y="shared")


def _with_axis(panel: Drawing, has_labels: bool) -> Drawing:
    """Return a panel whose vertical axis has labels or not; the charts' script moves them."""
    labelled = panel.copy()
    for layer in labelled.layer:
        if layer.encoding.y is not alt.Undefined:
            axis = alt.Axis(labels=has_labels, ticks=has_labels)
            layer.encoding.y = changed(layer.encoding.y, axis=axis)
    return labelled


def balanced(panels: int, most: int) -> int:
    """Return in how many columns panels fill their rows best; the charts' script does the same."""
    return math.ceil(panels / math.ceil(panels / most))


def title_of_panels(parts: Sequence[str]) -> alt.TitleParams:
    """Return the title of several panels in lines, each part on its own."""
    lines: list[str] = []
    for part in parts:
        lines += wrap(part, _PANELS_LINE, break_on_hyphens=False)
    return alt.TitleParams(lines, fontSize=12, offset=8)


def labels_of(name: str, rows: Sequence[Mapping[str, Any]]) -> Drawing:
    """Return a chart of labels, which are no part of the data that a reader downloads.

    The `name` is that of no other labels of the figure.
    """
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows], name=name))


def interval_tips(mean: str) -> list[alt.Tooltip]:
    """Return tooltips for a mean over replicates, titled `mean`, and its interval."""
    values = tips("Q", ".4g", mean=mean, low="95 % interval from", high="to")
    return values + tips("Q", n="Replicates")


def published_legend() -> alt.Fill:
    """Return an encoding that puts the published diamond into the legend."""
    return alt.Fill(
        "kind:N",
        scale=alt.Scale(domain=[PUBLISHED], range=["transparent"]),
        legend=alt.Legend(title=None, orient="top", symbolType="diamond", symbolStrokeColor=INK),
    )
