"""Charts of verdicts: published against reproduced cells, and claims against what they ask for."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from replication.chart_data import display_unit
from replication.chart_figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    VERDICTS,
    Drawing,
    Figure,
    colours,
    legend_filter,
    make_figure,
    number,
    symbols,
)
from replication.study import Study, Table

_VALUES = ("published", "reproduced_mean", "reproduced_low", "reproduced_high")


def cells_figure(cells: pd.DataFrame, table: Table, study: Study | None = None) -> Figure:
    """Draw one published table: each cell's published value beside the reproduced ones.

    Parameters
    ----------
    cells
        Rows of cells.csv; those of other tables are left out.
    table
        The published table.
    study
        Gives rows and columns their labels; without it their keys are shown.
    """
    frame = _display(cells[cells["table"] == table.id])
    frame["row_label"] = [_label(study, table, "row", key) for key in frame["row"]]
    frame["column_label"] = [_label(study, table, "column", key) for key in frame["column"]]
    rows = list(dict.fromkeys(frame["row_label"]))
    units = list(dict.fromkeys(frame["display_unit"]))
    panels = [
        _cell_panel(part, rows, str(label), f"{table.id} {label}")
        for label, part in frame.groupby("column_label", sort=False)
    ]
    chart = alt.concat(*panels, columns=min(3, max(1, len(panels)))).resolve_scale(
        color="shared", shape="shared", x="shared" if len(units) == 1 else "independent"
    )
    title = f"Table {table.id}: {table.title}" if table.id != "text" else table.title
    return make_figure(
        ["cells", table.id], title, chart, _describe_cells(frame, title), _tidy(frame)
    )


def _cell_panel(frame: pd.DataFrame, rows: list[str], column: str, name: str) -> Drawing:
    unit = str(frame["display_unit"].iloc[0])
    y = alt.Y("row_label:N", sort=rows, title=None, axis=alt.Axis(labelLimit=170))
    spread = frame[list(_VALUES)].stack()
    wide = bool((spread > 0).all() and len(spread) and spread.max() / spread.min() > 50)
    scale = alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)
    title = f"{column} ({unit})" + (", logarithmic" if wide else "")
    base = alt.Chart(frame[[*_tidy(frame)]]).encode(y=y)
    offset: Any = alt.YOffset("engine:N") if frame["engine"].nunique() > 1 else alt.Undefined
    picked, opacity = legend_filter("verdict", f"verdict {name}")
    layers = [
        base.transform_filter("isValid(datum.reproduced_low)")
        .mark_rule(strokeWidth=2)
        .encode(
            x=alt.X("reproduced_low:Q", title=title, scale=scale),
            x2="reproduced_high:Q",
            yOffset=offset,
            color=verdict_colours("verdict"),
            opacity=opacity,
        ),
        base.transform_filter("isValid(datum.reproduced_mean)")
        .mark_point(filled=True, size=50)
        .encode(
            x=alt.X("reproduced_mean:Q", title=title, scale=scale),
            yOffset=offset,
            color=verdict_colours("verdict"),
            shape=verdict_symbols("verdict"),
            opacity=opacity,
            tooltip=_cell_tooltip(unit),
        )
        .add_params(picked),
        base.mark_point(**PUBLISHED_MARK)
        .transform_calculate(kind=f"'{PUBLISHED}'")
        .encode(
            x=alt.X("published:Q", title=title, scale=scale),
            fill=published_legend(),
            tooltip=_cell_tooltip(unit),
        ),
    ]
    return alt.layer(*layers).properties(width=190, height=max(90, 20 * len(rows)))


def published_legend() -> alt.Fill:
    """Return the encoding that puts the published diamond into the legend."""
    return alt.Fill(
        "kind:N",
        scale=alt.Scale(domain=[PUBLISHED], range=["transparent"]),
        legend=alt.Legend(title=None, orient="top", symbolType="diamond", symbolStrokeColor=INK),
    )


def verdict_colours(field: str) -> alt.Color:
    """Return the colour encoding of verdicts."""
    return alt.Color(
        field,
        type="nominal",
        scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICT_COLOURS)),
        legend=alt.Legend(title="Verdict", orient="top", columns=3),
    )


def verdict_symbols(field: str) -> alt.Shape:
    """Return the symbol encoding of verdicts."""
    return alt.Shape(
        field,
        type="nominal",
        scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICT_SYMBOLS)),
        legend=alt.Legend(title="Verdict", orient="top", columns=3),
    )


def scatter_figure(cells: pd.DataFrame) -> Figure:
    """Draw every cell of every study: reproduced against published, a panel a unit."""
    frame = _display(cells)
    frame = frame[frame["reproduced_mean"].notna()]
    studies = sorted(frame["study"].unique())
    panels = []
    for unit, part in frame.groupby("display_unit", sort=False):
        positive = part[(part["published"] > 0) & (part["reproduced_mean"] > 0)]
        if not positive.empty:
            panels.append(_scatter_panel(positive, studies, str(unit)))
    chart: Drawing = (
        alt.concat(*panels, columns=2).resolve_scale(color="shared", shape="shared")
        if panels
        else alt.Chart(pd.DataFrame({"published": []})).mark_point()
    )
    words = "Reproduced against published values, on the line where the two are equal or off it."
    for study, part in frame.groupby("study", sort=True):
        middle = part["relative_deviation"].abs().median()
        words += (
            f" {study}: {len(part)} cells, {int((part['verdict'] == 'reproduced').sum())} inside "
            f"the tolerance, median deviation {number(100 * middle)} %."
        )
    return make_figure(["scatter"], "Published and reproduced values", chart, words, _tidy(frame))


def _scatter_panel(frame: pd.DataFrame, studies: list[str], unit: str) -> Drawing:
    ends = frame[["published", "reproduced_mean"]].to_numpy()
    low, high = float(ends.min()) / 1.2, float(ends.max()) * 1.2
    kind = "log" if high / low > 20 else "linear"
    scale = alt.Scale(type=kind, domain=[low, high], nice=False)
    picked, opacity = legend_filter("study", f"study {unit}")
    what = unit if unit != "1" else "ratio"
    x = alt.X("published:Q", title=f"Published ({what})", scale=scale)
    y = alt.Y("reproduced_mean:Q", title=f"Reproduced ({what})", scale=scale)
    line = (
        alt.Chart(pd.DataFrame({"published": [low, high], "reproduced_mean": [low, high]}))
        .mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.6)
        .encode(x=x, y=y)
    )
    base = alt.Chart(frame[[*_tidy(frame)]]).encode(
        x=x, color=colours("study", studies, "Study"), opacity=opacity
    )
    bars = (
        base.transform_filter("isValid(datum.reproduced_low)")
        .mark_rule()
        .encode(
            y=alt.Y("reproduced_low:Q", title=y.to_dict()["title"], scale=scale),
            y2="reproduced_high:Q",
        )
    )
    points = (
        base.mark_point(filled=True, size=45)
        .encode(y=y, shape=symbols("study", studies, "Study"), tooltip=_cell_tooltip(unit))
        .add_params(picked)
    )
    return alt.layer(line, bars, points).properties(width=250, height=250)


def verdicts_figure(claims: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw how many claims and cells of each study got which verdict."""
    parts = [
        table.groupby(["study", "engine", "verdict"])
        .size()
        .rename("count")
        .reset_index()
        .assign(kind=kind)
        for kind, table in (("claims", claims), ("cells", cells))
        if not table.empty
    ]
    columns = ["study", "engine", "verdict", "count", "kind"]
    counts = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    counts["order"] = [VERDICTS.index(v) if v in VERDICTS else 9 for v in counts["verdict"]]
    several = counts["engine"].nunique() > 1
    counts["label"] = counts["study"] + (" on " + counts["engine"] if several else "")
    panels = [_verdict_bars(part, str(kind)) for kind, part in counts.groupby("kind", sort=False)]
    chart: Drawing = (
        alt.hconcat(*panels).resolve_scale(color="shared")
        if panels
        else alt.Chart(pd.DataFrame({"count": []})).mark_bar()
    )
    words = "Number of claims and cells by verdict." + "".join(
        f" {label}, {kind}: "
        + ", ".join(f"{r.count_} {r.verdict}" for r in part.itertuples(index=False))
        + "."
        for (label, kind), part in counts.rename(columns={"count": "count_"}).groupby(
            ["label", "kind"], sort=False
        )
    )
    return make_figure(["verdicts"], "Verdicts by study", chart, words, counts)


def _verdict_bars(counts: pd.DataFrame, kind: str) -> Drawing:
    base = alt.Chart(counts).encode(
        y=alt.Y("label:N", title=None),
        x=alt.X("count:Q", stack="zero", title=f"Number of {kind}"),
        order="order:Q",
        tooltip=["label:N", "verdict:N", "count:Q"],
    )
    bars = base.mark_bar(stroke=INK, strokeWidth=0.4).encode(color=verdict_colours("verdict"))
    numbers = base.mark_text(color="#000000", fontSize=11).encode(
        x=alt.X("count:Q", stack="zero", bandPosition=0.5, title=f"Number of {kind}"),
        text="count:Q",
    )
    return alt.layer(bars, numbers).properties(width=280, height=alt.Step(28))


def claims_figure(claims: pd.DataFrame, study: Study) -> Figure:
    """Draw each tested claim's statistic with its interval and the range it was asked to lie in."""
    asked = {claim.id: claim for claim in study.claims}
    frame = claims[claims["observed"].notna() & claims["claim"].isin(list(asked))].copy()
    frame["least"], frame["most"] = float("nan"), float("nan")
    for index, name in zip(frame.index, frame["claim"], strict=True):
        low, high = _expected(asked[name].test)
        frame.loc[index, ["least", "most"]] = [low, high]
    panels = [_claim_panel(part, str(claim)) for claim, part in frame.groupby("claim", sort=False)]
    chart: Drawing = (
        alt.vconcat(*panels, spacing=6).resolve_scale(color="shared", shape="shared")
        if panels
        else alt.Chart(pd.DataFrame({"observed": []})).mark_point()
    )
    words = "Statistic of each claim with its 95 % interval; a bar marks the range it asks for." + (
        "".join(
            f" {row.claim} on {row.engine}: {number(row.observed)}, {row.verdict}."
            for row in frame.itertuples(index=False)
        )
    )
    columns = [
        "claim",
        "engine",
        "statistic",
        "observed",
        "low",
        "high",
        "least",
        "most",
        "verdict",
    ]
    return make_figure(
        ["claims", study.id], "Claims: observed and asked for", chart, words, frame[columns]
    )


def _expected(test: Any) -> tuple[float, float]:
    if getattr(test, "expect", None) is not None:
        low, high = test.expect.at_least, test.expect.at_most
        nan = float("nan")
        return (nan if low is None else low, nan if high is None else high)
    if getattr(test, "margin", None) is not None:
        return float("nan"), float(test.margin)
    return float("nan"), float("nan")


def _claim_panel(frame: pd.DataFrame, claim: str) -> Drawing:
    known = frame[["observed", "low", "high", "least", "most"]].stack()
    known = known[known.abs() != float("inf")]
    low, high = float(known.min()), float(known.max())
    pad = 0.1 * (high - low) or 0.1 * abs(high) or 1.0
    domain = [low - pad, high + pad]
    frame = frame.assign(
        asked_from=frame["least"].fillna(domain[0]), asked_to=frame["most"].fillna(domain[1])
    )
    columns = [
        "claim",
        "engine",
        "observed",
        "low",
        "high",
        "asked_from",
        "asked_to",
        "verdict",
        "statistic",
    ]
    frame = frame[columns]
    title = str(frame["statistic"].iloc[0])[:90]
    scale = alt.Scale(domain=domain, nice=False, clamp=True)
    base = alt.Chart(frame).encode(y=alt.Y("engine:N", title=claim))
    asked = base.mark_bar(color=INK, opacity=0.15).encode(
        x=alt.X("asked_from:Q", scale=scale, title=title), x2="asked_to:Q"
    )
    spread = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(
            x=alt.X("low:Q", scale=scale, title=title),
            x2="high:Q",
            color=verdict_colours("verdict"),
        )
    )
    points = base.mark_point(filled=True, size=60).encode(
        x=alt.X("observed:Q", scale=scale, title=title),
        color=verdict_colours("verdict"),
        shape=verdict_symbols("verdict"),
        tooltip=["claim:N", "engine:N", "observed:Q", "low:Q", "high:Q", "verdict:N"],
    )
    return alt.layer(asked, spread, points).properties(width=420, height=alt.Step(24))


def _display(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with their values in display units."""
    frame = cells.copy()
    shown = [display_unit(unit) for unit in frame["unit"].fillna("1").astype(str)]
    frame["display_unit"] = [unit for unit, _ in shown]
    for column in _VALUES:
        values = pd.to_numeric(frame[column], errors="coerce")
        frame[column] = values * [factor for _, factor in shown]
    return frame


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    wanted = ["study", "table", "row", "column", "row_label", "column_label", "engine"]
    wanted += ["display_unit", *_VALUES, "n", "relative_deviation", "verdict"]
    return frame[[name for name in wanted if name in frame]]


def _label(study: Study | None, table: Table, side: str, key: str) -> str:
    factor = table.row_factor if side == "row" else table.column_factor
    if study is not None and factor is not None:
        owner = study.experiment(table.experiment).factor(factor)
        for level in owner.levels:
            if level.key == key:
                unit = f" {owner.unit}" if owner.unit not in ("", "1") else ""
                return f"{level.label}{unit}" if level.label == key else level.label
    return key.replace("_", " ")


def _cell_tooltip(unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("table:N", title="Table"),
        alt.Tooltip("row:N", title="Row"),
        alt.Tooltip("column:N", title="Column"),
        alt.Tooltip("engine:N", title="Engine"),
        alt.Tooltip("published:Q", title=f"Published ({unit})", format=".6g"),
        alt.Tooltip("reproduced_mean:Q", title=f"Reproduced ({unit})", format=".5g"),
        alt.Tooltip("reproduced_low:Q", title="95 % interval from", format=".5g"),
        alt.Tooltip("reproduced_high:Q", title="to", format=".5g"),
        alt.Tooltip("n:Q", title="Replicates"),
        alt.Tooltip("relative_deviation:Q", title="Deviation", format="+.1%"),
        alt.Tooltip("verdict:N", title="Verdict"),
    ]


def _describe_cells(frame: pd.DataFrame, title: str) -> str:
    run = frame[frame["reproduced_mean"].notna()]
    words = (
        f"{title}. Published values as hollow diamonds, reproduced means with 95 % intervals, a "
        f"panel a column: {', '.join(dict.fromkeys(frame['column_label']))}."
    )
    if run.empty:
        return words + " None of its cells was run."
    worst = (
        run.loc[run["relative_deviation"].abs().idxmax()]
        if run["relative_deviation"].notna().any()
        else None
    )
    counts = run["verdict"].value_counts()
    words += " " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if v in counts) + "."
    if worst is not None:
        words += (
            f" Largest deviation: {worst['row_label']}, {worst['column_label']} on "
            f"{worst['engine']}, {number(100 * worst['relative_deviation'])} %."
        )
    return words
