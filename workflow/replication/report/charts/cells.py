"""Charts that compare published numbers with ours, by table and for all studies."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from replication.report.charts import figure as draw
from replication.report.charts.data import Display, cell_of, display_of
from replication.report.charts.figure import Drawing, Figure
from replication.study.published import Table
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.wording import table_name, table_names

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high", "explained"]
_VALUES += ["floor"]
_COLUMNS = ["study", "kind", "table", "row", "column", "row_label", "column_label", "engine"]
_COLUMNS += ["display_unit", "printed", *_VALUES, "accepted_low", "accepted_high"]
_COLUMNS += ["n", "relative_deviation", "verdict"]
_WIDTH = 380
#: Width of a panel in a row of several, and the most characters of its labels.
_SMALL_WIDTH, _SHORT_LABEL = 220, 12
#: Height of a row, without its further lines of text.
_ROW, _LINE = 20, 14
#: Tables of which each row has a panel with a mark for each table, if there are at least so many.
_MANY_TABLES = 3
#: A vertical bar and a cross as symbols; the pages' icons have the same cross.
_BAR = "M-0.12,-1L0.12,-1L0.12,1L-0.12,1Z"
_CROSS = "M-0.8,-0.8L0.8,0.8M0.8,-0.8L-0.8,0.8"
FLOOR = "Propagation delay alone"
DEFAULTS, UNDER = "Documented defaults", "Under the best explanation"
_WORDS = list(map(str, Verdict))
VERDICT_COLOURS = dict(
    zip(_WORDS, ("#009E73", "#56B4E9", "#D55E00", "#8C8C8C", "#CC79A7"), strict=True)
)
VERDICT_SYMBOLS = dict(
    zip(_WORDS, ("circle", "triangle-up", _CROSS, "stroke", "square"), strict=True)
)


def table_figures(cells: pd.DataFrame, tables: Sequence[Table]) -> Iterator[Figure]:
    """Yield one figure for each metric and unit of printed tables.

    There is a panel for each table, or, if many tables have the same rows, for each row, so that
    the values that the tables compare are in one panel. Each number has its preset tolerance as a
    grey bar, and the values of the columns `explained` and `floor` as ticks.
    """
    by_id = {table.id: table for table in tables}
    frame = cells[cells["table"].isin(by_id) & cells["reproduced_mean"].notna()]
    frame = frame.assign(
        accepted_low=frame["published"] - frame["accepted_margin"],
        accepted_high=frame["published"] + frame["accepted_margin"],
    )
    metrics, displays = [], {}
    for name, column in frame[["table", "column"]].itertuples(index=False):
        cell = cell_of(by_id[name], column)
        metrics.append(f"{cell.metric} jain" if cell.aggregate == "jain" else cell.metric)
        displays[metrics[-1]] = display_of(cell)
    frame = frame.assign(measured=metrics)
    for metric, display in displays.items():
        of_metric = frame[frame["measured"] == metric]
        if "floor" in of_metric and of_metric["floor"].isna().all():
            of_metric = of_metric.drop(columns="floor")
        numbers = {*_VALUES, "accepted_low", "accepted_high"} & set(of_metric)
        scaled = {name: of_metric[name] * display.factor for name in numbers}
        of_metric = of_metric.assign(**scaled)
        parts = [(by_id[str(key)], part) for key, part in of_metric.groupby("table", sort=False)]
        panels = _row_panels(parts) or _table_panels(parts)
        title = f"published and measured on {of_metric['engine'].iloc[0]}"
        is_one = len(panels) == 1
        said = f"{panels[0].name}: {display.words}" if is_one else display.label
        title = f"{said}, {title}"
        keys = of_metric[["table", "row", "column"]].itertuples(index=False, name=None)
        chart, words = _tables_chart(panels, display), _describe(panels, title, display)
        yield draw.make_figure(["table", *metric.split()], title, chart, words, keys)


class _Panel(NamedTuple):
    """A panel: its short name, its title, and its numbers, each with a `label`."""

    name: str
    title: str
    numbers: pd.DataFrame


def _table_panels(parts: Sequence[tuple[Table, pd.DataFrame]]) -> list[_Panel]:
    """Return a panel for each table."""
    panels = []
    for table, numbers in parts:
        name = table_name(table.id, table.title)
        title = name if name == table.title else f"{name}: {table.title}"
        panels.append(_Panel(name, title, numbers.assign(label=_labels(numbers))))
    return panels


def _row_panels(parts: Sequence[tuple[Table, pd.DataFrame]]) -> list[_Panel]:
    """Return a panel for each row of many tables with the same rows, a number for each table.

    There are none if the tables differ in rows, or if their titles share all but long parts.
    """
    tables = [table for table, _ in parts]
    words = distinct_words([table.title for table in tables])
    names = {table.id: name for table, name in zip(tables, words, strict=True)}
    rows = {tuple(sorted(numbers["row_label"])) for _, numbers in parts}
    is_same = len(parts) >= _MANY_TABLES and len(rows) == 1
    if not is_same or len(set(*rows)) < len(parts[0][1]) or not _are_short(names.values()):
        return []
    every = pd.concat([numbers for _, numbers in parts])
    every = every.assign(label=every["table"].map(names))
    groups = every.groupby("row_label", sort=False)
    return [_Panel(str(label), str(label), numbers) for label, numbers in groups]


def _are_short(names: Collection[str]) -> bool:
    return all(names) and len(set(names)) == len(names) and max(map(len, names)) <= _SHORT_LABEL


def distinct_words(titles: Sequence[str]) -> list[str]:
    """Return of each title the words that are not at the start or the end of all titles."""
    words = [title.split() for title in titles]
    shortest = min(map(len, words))
    start = 0
    while start < shortest and len({title[start] for title in words}) == 1:
        start += 1
    end = 0
    while end < shortest - start and len({title[-end - 1] for title in words}) == 1:
        end += 1
    return [" ".join(title[start : len(title) - end]) for title in words]


def _labels(frame: pd.DataFrame) -> list[str]:
    """Return the row of each number of a table, with its column if several are drawn."""
    labels = frame["row_label"].astype(str)
    if frame["column"].nunique() > 1:
        labels += ", " + frame["column_label"]
    shared = labels.duplicated(keep=False)
    # Rows may have one label, and remain two.
    return list(labels.where(~shared, labels + " (" + frame["row"] + ")"))


def _tables_chart(panels: Sequence[_Panel], display: Display) -> Drawing:
    every = pd.concat([panel.numbers for panel in panels])
    values = every[[name for name in _VALUES if name in every]].to_numpy(dtype=float)
    low, high = np.nanmin(values), np.nanmax(values)
    is_wide = low > 0 and high / low > 50
    scale = alt.Scale(type="log") if is_wide else alt.Scale(zero=False, nice=True)
    title = display.title + (", logarithmic" if is_wide else "")
    shown = [name for name in (*_COLUMNS, "label") if name in every]
    # Panels with short labels stand side by side, as many as fit, and share one title of the axis.
    are_small = len(panels) > 1 and every["label"].map(len).max() <= _SHORT_LABEL
    width = _SMALL_WIDTH if are_small else _WIDTH
    drawn = []
    for place, panel in enumerate(panels, start=1):
        has_title = place == len(panels) and not are_small
        x = alt.X(title=draw.lines_of(title, width) if has_title else None, scale=scale)
        chart = _panel(panel.numbers[shown], display, x, every["verdict"]).properties(width=width)
        if len(panels) > 1:
            chart = chart.properties(title=draw.lines_of(panel.title, width))
        drawn.append(chart)
    if len(panels) == 1:
        return drawn[0]
    chart = alt.vconcat(*drawn)
    if are_small:
        columns = draw.balanced(len(drawn), draw.MOST_COLUMNS)
        heading = draw.title_of_panels([title])
        chart = alt.concat(*drawn, columns=columns, title=heading)
    return chart.resolve_scale(x="shared")


def _panel(frame: pd.DataFrame, display: Display, x: alt.X, verdicts: pd.Series) -> Drawing:
    axis, lines = draw.wrapped(frame["label"])
    y = alt.Y("label:N", sort=list(frame["label"]), title=None, axis=axis)
    base, look, tooltip = alt.Chart(frame).encode(y=y), verdict_look(verdicts), _tooltip(display)
    height = max(3 * _ROW, (_ROW + _LINE * (lines - 1)) * len(frame))

    def at(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=x["title"], scale=x["scale"])

    def ticks(field: str, words: str, channel: type[Any], size: float) -> Drawing:
        """Return ticks at the values of a field, with a legend that says what they are."""
        known = base.transform_filter(f"isValid(datum.{field})")
        known = known.transform_calculate(**{f"{field}_name": f"'{words}'"})
        legend = alt.Legend(title=None, orient="top", symbolType=_BAR, symbolFillColor=draw.INK)
        scale = alt.Scale(domain=[words], range=[1 if channel is alt.Opacity else [1, 0]])
        mark = known.mark_tick(color=draw.INK, thickness=1.6, size=size)
        encoding = channel(f"{field}_name:N", scale=scale, legend=legend)
        return mark.encode(encoding, x=at(field), tooltip=draw.tips("Q", ".4g", **{field: words}))

    spread = base.transform_filter("isValid(datum.reproduced_low)").mark_rule(strokeWidth=2)
    means = base.mark_point(filled=True, size=45, strokeWidth=1.6)
    published = base.transform_calculate(kind=f"'{draw.PUBLISHED}'")
    diamonds = published.mark_point(**draw.PUBLISHED_MARK)
    band = base.mark_bar(color=draw.INK, opacity=0.13, height={"band": 0.7})
    layers = [band.encode(x=at("accepted_low"), x2="accepted_high:Q")]
    if "floor" in frame and frame["floor"].notna().any():
        # The legend of a width would have its text on its symbol.
        layers.append(ticks("floor", FLOOR, alt.Opacity, height / len(frame)))
    layers += [
        spread.encode(x=at("reproduced_low"), x2="reproduced_high:Q", color=look["color"]),
        means.encode(x=at("reproduced_mean"), **look, tooltip=tooltip),
        diamonds.encode(x=at("published"), fill=draw.published_legend(), tooltip=tooltip),
    ]
    if "explained" in frame and frame["explained"].notna().any():
        layers.append(ticks("explained", UNDER, alt.StrokeDash, 12))
    return alt.layer(*layers).properties(height=height)


def _tooltip(display: Display) -> list[alt.Tooltip]:
    interval = {"reproduced_low": "95 % interval from", "reproduced_high": "to"}
    return [
        *draw.tips("N", table="Table", row_label="Row", column_label="Column", engine="Engine"),
        *draw.tips("N", printed=display.titled("Published")),
        *draw.tips("Q", ".5g", reproduced_mean=display.titled("Measured"), **interval),
        *draw.tips("Q", n="Replicates"),
        *draw.tips("Q", "+.1%", relative_deviation="Deviation"),
        *draw.tips("N", verdict="Verdict"),
    ]


def _describe(panels: Sequence[_Panel], title: str, display: Display) -> str:
    every = pd.concat([panel.numbers for panel in panels])
    counts = every["verdict"].value_counts()
    verdicts = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
    words = f"{title}. Hollow diamonds are published, grey bars their tolerances: {verdicts}."
    if "explained" in every:
        words += " Ticks are measured under the best explanation."
    if "floor" in every and every["floor"].notna().any():
        lowest = draw.three_digits(every["floor"].min())
        below = int((every["published"] < every["floor"]).sum())
        words += f" Long ticks are the propagation delay alone, {lowest} {display.unit} or more;"
        words += f" {below} of {len(every)} published values are below it."
    for panel in panels:
        words += f" {panel.title}." if len(panels) > 1 else ""
        for row in panel.numbers.to_dict("records"):
            both = f"{draw.three_digits(row['reproduced_mean'])} against {row['printed']}"
            words += f" {row['label']}: {both} {display.unit}".rstrip() + "."
    return words


def verdict_look(present: pd.Series) -> dict[str, Any]:
    """Return colour and symbol of the verdicts that are present, in one legend.

    The outline has the colour too, since the symbol for "not testable" is only an outline.
    """
    shown = [word for word in _WORDS if (present == word).any()]
    legend = draw.legend_of(shown, "Verdict")
    colours = [VERDICT_COLOURS[verdict] for verdict in shown]
    symbols = [VERDICT_SYMBOLS[verdict] for verdict in shown]
    return {
        "color": draw.levels_of(alt.Color, "verdict", shown, colours, legend),
        "stroke": draw.levels_of(alt.Stroke, "verdict", shown, colours, legend),
        "shape": draw.levels_of(alt.Shape, "verdict", shown, symbols, legend),
    }


#: Ratios beyond this factor are drawn at the edge.
_FURTHEST = 16.0
_RATIO_COLUMNS = ["study", "table", "row", "column", "group", "row_label", "column_label", "engine"]
_RATIO_COLUMNS += ["verdict", "layer", "ratio", "shown", "beyond", "edge"]


def ratio_figure(
    cells: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> Figure:
    """Draw the ratio of measured to published value for every number of every study.

    A grey bar is the median tolerance of a row. The values of a column `explained`, measured under
    the best explanation, are drawn below.
    """
    frame = cells[(cells["published"] > 0) & cells["reproduced_mean"].notna()].copy()
    frame["group"] = list(_groups(frame, studies, titles))
    parts = [frame.assign(ratio=frame["reproduced_mean"] / frame["published"], layer=DEFAULTS)]
    if "explained" in frame and frame["explained"].notna().any():
        known = frame[frame["explained"].notna()]
        parts.append(known.assign(ratio=known["explained"] / known["published"], layer=UNDER))
    shown = pd.concat(parts, ignore_index=True)
    shown["shown"] = shown["ratio"].clip(1 / _FURTHEST, _FURTHEST)
    shown["beyond"] = [_side(ratio) for ratio in shown["ratio"]]
    shown["edge"] = _edge_words(shown)
    margins = (frame["accepted_margin"] / frame["published"])[frame["accepted_margin"] > 0]
    margin = margins.groupby(frame["group"], sort=False).median()
    width = margin.to_numpy(dtype=float)
    band = pd.DataFrame({"group": margin.index, "low": 1 - width, "high": 1 + width})
    order = list(dict.fromkeys(frame["group"]))
    drawn = shown[_RATIO_COLUMNS].round({"ratio": 4, "shown": 4})
    chart, words = _ratio_chart(drawn, band.round(4), order), _ratio_words(frame, shown)
    title = "Every number: measured divided by published"
    return draw.make_figure(["numbers"], title, chart, words)


def _side(ratio: float) -> str:
    """Return the direction of an arrow to a ratio beyond the axis; empty for one on it."""
    if 1 / _FURTHEST <= ratio <= _FURTHEST:
        return ""
    return "left" if ratio < 1 else "right"


def _edge_words(shown: pd.DataFrame) -> list[str]:
    """Return for the furthest ratio beyond each end of a row what it is; empty for the others."""
    words = dict.fromkeys(shown.index, "")
    beyond = shown[(shown["beyond"] != "") & (shown["layer"] == DEFAULTS)]
    for (_, side), rows in beyond.groupby(["group", "beyond"], sort=False):
        ratios = rows["ratio"].to_numpy(dtype=float)
        furthest = int(ratios.argmin() if side == "left" else ratios.argmax())
        ratio = float(ratios[furthest])
        said = f"{ratio:,.0f}"
        if side == "left":
            said = f"1/{1 / ratio:,.0f}" if ratio > 0 else "0"
        words[rows.index[furthest]] = said
    return list(words.values())


def _groups(
    frame: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> Iterator[str]:
    """Yield the row of each number: its table, with what is measured if the table has several."""
    tables: dict[tuple[str, str], Table] = {}
    for study, document in studies.items():
        tables |= {(study, table.id): table for table in document.tables}
    names = {study: table_names(document) for study, document in studies.items()}
    keys = frame[["study", "table", "column", "kind"]].itertuples(index=False, name=None)
    measured = []
    for study, table, column, kind in keys:
        known = tables.get((study, table)) if kind == "printed" else None
        label = display_of(cell_of(known, column)).words if known else ""
        measured.append((study, table, label))
    labels = {key: titles[key[0]] for key in dict.fromkeys(measured)}
    for study, table, label in labels:
        name = names[study].get(table, table)
        # Tables of traces share some words.
        name = name.replace(", from the published trace", "").removeprefix("Windows of ")
        of_table = [key for key in labels if key[:2] == (study, table)]
        several = len(of_table) > 1
        said = f"{name}, {label}" if several else name.partition(" (")[0]
        labels[study, table, label] += f": {said}"
    shared = {label for label, count in Counter(labels.values()).items() if count > 1}
    for key in measured:
        yield f"{labels[key]} ({key[1]})" if labels[key] in shared else labels[key]


def _ratio_chart(shown: pd.DataFrame, band: pd.DataFrame, order: list[str]) -> Any:
    scale = alt.Scale(type="log", domain=[1 / _FURTHEST, _FURTHEST], nice=False, clamp=True)
    labels = "datum.value < 1 ? '1/' + format(1 / datum.value, 'd') : format(datum.value, 'd')"
    axis = alt.Axis(
        values=[2.0**power for power in range(-4, 5)], labelExpr=labels, labelSeparation=4
    )
    title = "Measured divided by published"

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    wrapped, lines = draw.wrapped(order)
    y = alt.Y("group:N", sort=order, title=None, axis=wrapped)
    tolerance = alt.Chart(band).mark_bar(color=draw.INK, opacity=0.2, height={"band": 0.9})
    equal = alt.Chart(pd.DataFrame({"shown": [1.0]})).mark_rule(color=draw.INK, strokeDash=[4, 4])
    base = alt.Chart(shown).encode(x=x("shown"), y=y)
    has_under = bool((shown["layer"] == UNDER).any())
    if has_under:
        settings = [DEFAULTS, UNDER]
        base = base.encode(
            yOffset=alt.YOffset("layer:N", sort=settings, scale=alt.Scale(domain=settings))
        )
    tooltip = draw.tips("N", group="Table", row_label="Row", column_label="Column", engine="Engine")
    tooltip += draw.tips("N", layer="Settings", verdict="Verdict at the defaults")
    tooltip += draw.tips("Q", ".3g", ratio="Measured / published")
    look = verdict_look(shown.loc[shown["layer"] == DEFAULTS, "verdict"])
    measured = base.transform_filter(f"datum.layer == '{DEFAULTS}' && datum.beyond == ''")
    measured = measured.mark_point(filled=True, size=32, strokeWidth=1.6)
    drawn = [tolerance.encode(x=x("low"), x2="high:Q", y=y), equal.encode(x=x("shown"))]
    drawn.append(measured.encode(**look, tooltip=tooltip))
    colours = {key: channel for key, channel in look.items() if key != "shape"}
    edges: tuple[tuple[str, Any, int], ...] = (("left", "left", 9), ("right", "right", -9))
    for side, align, dx in edges:
        beyond = base.transform_filter(f"datum.layer == '{DEFAULTS}' && datum.beyond == '{side}'")
        arrows = beyond.mark_point(filled=True, size=90, shape=f"triangle-{side}")
        drawn.append(arrows.encode(**colours, tooltip=tooltip))
        words = beyond.mark_text(align=align, baseline="middle", dx=dx, fontSize=10)
        drawn.append(words.encode(text="edge:N"))
    under = base.transform_filter(f"datum.layer == '{UNDER}'").mark_tick(
        color=draw.INK, thickness=1.2, size=9, opacity=0.55
    )
    if has_under:
        drawn.append(under.encode(tooltip=tooltip))
    return alt.layer(*drawn).properties(width=720, height=max(34, 6 + 14 * lines) * len(order))


def _ratio_words(frame: pd.DataFrame, shown: pd.DataFrame) -> str:
    words = "Each mark is one number; at 1 measured and published are equal."
    for group, numbers in frame.groupby("group", sort=False):
        ratios = numbers["reproduced_mean"] / numbers["published"]
        matches = int((numbers["verdict"] == Verdict.REPRODUCED).sum())
        count = len(numbers)
        middle = draw.three_digits(float(ratios.median()))
        said = f"{matches} of {count} {'matches' if matches == 1 else 'match'}, median ratio"
        if count == 1:
            said = f"the one number {'matches' if matches else 'does not match'}, ratio"
        words += f" {group}: {said} {middle}."
    if beyond := int((shown["shown"] != shown["ratio"]).sum()):
        edge = f"beyond a factor of {_FURTHEST:.0f}, an arrow at the edge"
        words += f" {beyond} {'mark lies' if beyond == 1 else 'marks lie'} {edge}."
    return words
