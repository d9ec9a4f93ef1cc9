"""Lines against a factor: their scale, their points, and their names where they end."""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from replication.report.charts import figure as draw
from replication.report.charts.data import Display
from replication.report.charts.figure import Drawing

_COLUMNS = ["series", "x", "mean", "low", "high", "n"]
#: Height of a single plot.
HEIGHT = 260
#: Characters in a line of a name at a line's end, most such names, and pixels of a line of text.
_NAME_LINE, _MOST_NAMES, _LINE_HEIGHT = 13, 6, 13


class _End(NamedTuple):
    """The end of a line: its series, whether it is ours, its name, and the pixel of its label."""

    series: str
    is_ours: bool
    name: str
    y: float


def lines_panel(
    frame: pd.DataFrame,
    order: Sequence[str],
    x: alt.X,
    display: Display,
    published: pd.DataFrame,
    size: tuple[int, int] = (draw.WIDTH, HEIGHT),
    legend_width: int = 0,
    scale: alt.Scale | None = None,
) -> Drawing:
    """Return a panel of lines with their intervals and published values.

    `frame` has series, x, mean, low, high and n, `published` has series, x, value, printed and
    source. `order` lists the series. One of several panels has their common `legend_width` and
    `scale`, and no titles of axes, which `draw.panels_of` gives to all. A single plot has the
    names of its lines where they end, if these fit, and published values of several series are then
    lines as well.
    """
    scale = scale or y_scale(frame, published, x)
    ends = [] if legend_width else line_ends(frame, order, published, x)
    looks = draw.look("series", order, width=legend_width or size[0])
    if ends:
        looks = {key: draw.changed(channel, legend=None) for key, channel in looks.items()}
    of_x, title = _title_of(x), None if legend_width else draw.lines_of(display.title, size[1])
    if legend_width:
        x = draw.changed(x, title=None)
    y = alt.Y("mean:Q", title=title, scale=scale)
    dashes = draw.levels_of(alt.StrokeDash, "series", order, draw.DASHES, None)
    columns = [name for name in (*_COLUMNS, "share") if name in frame]
    base = alt.Chart(frame[columns]).encode(x=x, color=looks["color"])
    layers: list[Drawing] = []
    if frame["low"].notna().any():
        bars = base.transform_filter("isValid(datum.low)").mark_errorbar(ticks=True)
        layers.append(bars.encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"))
    layers.append(base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=dashes))
    tooltip = draw.tips("N", series="Series", x=of_x)
    tooltip += draw.interval_tips(display.titled("Mean"))
    points = base.mark_point(filled=True, size=55)
    layers.append(points.encode(y=y, shape=looks["shape"], tooltip=tooltip))
    if len(published):
        printed = alt.Chart(published.assign(kind=draw.PUBLISHED))
        printed = printed.encode(x=x, y=alt.Y("value:Q", title=title, scale=scale))
        if ends and len(order) > 1:
            thin = printed.mark_line(strokeWidth=1)
            layers.append(thin.encode(color=looks["color"], strokeDash=dashes))
        tooltip = draw.tips("N", source="Published", series="Series")
        tooltip += draw.tips("N", printed=display.titled("Value"))
        diamonds = printed.mark_point(**draw.PUBLISHED_MARK)
        layers.append(diamonds.encode(fill=draw.published_legend(), tooltip=tooltip))
    if ends:
        layers += _names(ends, looks)
    # Dashes in the legend of the colours would break the outlines of its symbols.
    chart = alt.layer(*layers).resolve_scale(strokeDash="independent")
    return chart.properties(width=size[0], height=size[1])


def _title_of(x: alt.X) -> str:
    title = x["title"]
    return title if isinstance(title, str) else " ".join(title or [])


def is_logarithmic(x: alt.X) -> bool:
    """Return whether an axis, as `draw.axis_x` makes it, has a logarithmic scale."""
    return bool(x["scale"] is not alt.Undefined and x["scale"]["type"] == "log")


def y_scale(frame: pd.DataFrame, published: pd.DataFrame, x: alt.X) -> alt.Scale:
    """Return the vertical scale of lines, whose ends are known so that names can be placed.

    Over a logarithmic `x`, values over two decades have such a scale too.
    """
    columns = [frame["mean"], frame["low"], frame["high"], published["value"]]
    values = pd.concat(columns).dropna().astype(float)
    low, high = values.min(), values.max()
    if is_logarithmic(x) and low > 0 and high >= 100 * low:
        return alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    if low < 0 or high <= 0:
        return alt.Scale(zero=True)
    step = draw.round_step(high, 7)
    return alt.Scale(domain=[0, step * math.ceil(high / step - 1e-9)], nice=False)


def line_ends(
    frame: pd.DataFrame, order: Sequence[str], published: pd.DataFrame, x: alt.X
) -> list[_End]:
    """Return where lines end in a single plot, from top to bottom.

    There are none if their names do not fit, or if a measured line ends before the others.
    """
    scale = y_scale(frame, published, x)
    if x["type"] != "quantitative" or scale["domain"] is alt.Undefined:
        return []
    last = frame["x"].max()
    ends: list[_End] = []
    places: dict[_End, tuple[int, float]] = {}
    kinds = [(frame, "mean", "")]
    if len(order) > 1 and len(published):
        kinds.append((published, "value", f", {draw.PUBLISHED.lower()}"))
    for rows, column, suffix in kinds:
        for series in order:
            line = rows[rows["series"] == series].sort_values("x")
            if line.empty and suffix:
                continue
            if line.empty or (line["x"].iloc[-1] != last and not suffix):
                return []
            pixels = [_pixel(value, scale) for value in line[column]]
            name = "\n".join(wrap(f"{series}{suffix}", _NAME_LINE, break_on_hyphens=False))
            end = _End(series, not suffix, name, pixels[-1])
            # Lines that meet at the end are in the order of their means.
            places[end] = round(end.y / _LINE_HEIGHT), sum(pixels) / len(pixels)
            ends.append(end)
    counts = [end.name.count("\n") + 1 for end in ends]
    if len(ends) > _MOST_NAMES or max(counts, default=0) > 2 or sum(counts) * _LINE_HEIGHT > HEIGHT:
        return []
    ends.sort(key=places.__getitem__)
    pixels = spread([(end.y, end.name.count("\n") + 1) for end in ends], HEIGHT)
    return [end._replace(y=round(y, 1)) for end, y in zip(ends, pixels, strict=True)]


def _pixel(value: float, scale: alt.Scale) -> float:
    low, high = map(float, scale["domain"])
    if scale["type"] == "log":
        return HEIGHT * (1 - math.log(value / low) / math.log(high / low))
    return HEIGHT * (1 - (value - low) / (high - low))


def spread(labels: Sequence[tuple[float, int]], height: float) -> list[float]:
    """Return the middle of each label, near its wanted pixel, so that none covers another.

    `labels` have the wanted pixel from the top, ascending, and the number of lines of text.
    """
    halves = [_LINE_HEIGHT * lines / 2 for _, lines in labels]
    middles: list[float] = []
    above = 0.0
    for (wanted, _), half in zip(labels, halves, strict=True):
        middles.append(max(wanted, above + half))
        above = middles[-1] + half
    below = height
    for number in reversed(range(len(middles))):
        middles[number] = min(middles[number], below - halves[number])
        below = middles[number] - halves[number]
    return middles


def _names(ends: Sequence[_End], looks: Mapping[str, Any]) -> list[Drawing]:
    """Return the names of lines to the right of the plot, each after its line's symbol."""
    rows = []
    for end in ends:
        lines_above = end.name.count("\n") / 2
        rows.append({**end._asdict(), "text_y": end.y - _LINE_HEIGHT * lines_above})
    base = draw.labels_of("names of lines", rows).encode(x=alt.value("width"))
    symbols = base.encode(y=alt.Y("y:Q", scale=None))
    measured = symbols.transform_filter("datum.is_ours")
    measured = measured.mark_point(filled=True, size=45, xOffset=10)
    drawn: list[Drawing] = [measured.encode(**looks)]
    if not all(end.is_ours for end in ends):
        mark = draw.PUBLISHED_MARK | {"size": 45, "xOffset": 10}
        drawn.append(symbols.transform_filter("!datum.is_ours").mark_point(**mark))
    words = base.mark_text(
        align="left", baseline="middle", dx=18, fontSize=11, lineBreak="\n", lineHeight=_LINE_HEIGHT
    )
    return [*drawn, words.encode(text="name:N", y=alt.Y("text_y:Q", scale=None))]
