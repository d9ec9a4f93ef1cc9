"""Charts of verdicts: how many of each, and each claim's statistic against what it asks for."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from replication.report.charts.figure import (
    INK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    VERDICTS,
    Drawing,
    Figure,
    legend_of,
    make_figure,
    number,
)
from replication.study.claim_model import Claim, EquivalenceTest
from replication.study.study import Study


def verdict_colours(present: pd.Series) -> alt.Color:
    """Return the colour encoding of verdicts; the legend has those that are present."""
    shown = [name for name in VERDICTS if (present == name).any()]
    colour = dict(zip(VERDICTS, VERDICT_COLOURS, strict=True))
    scale = alt.Scale(domain=shown, range=[colour[name] for name in shown])
    return alt.Color("verdict:N", scale=scale, legend=legend_of(shown, "Verdict"))


def verdict_symbols(present: pd.Series) -> alt.Shape:
    """Return the symbol encoding of verdicts, in one legend with the colours."""
    shown = [name for name in VERDICTS if (present == name).any()]
    symbol = dict(zip(VERDICTS, VERDICT_SYMBOLS, strict=True))
    scale = alt.Scale(domain=shown, range=[symbol[name] for name in shown])
    return alt.Shape("verdict:N", scale=scale, legend=legend_of(shown, "Verdict"))


def empty_chart() -> Drawing:
    """Return a chart that says that there is nothing to draw."""
    word = pd.DataFrame({"word": ["nothing was run"]})
    return alt.Chart(word).mark_text().encode(text="word:N")


def verdicts_figure(claims: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw how many claims and cells of each study got which verdict."""
    columns = ["study", "engine", "verdict"]
    parts = [
        table.groupby(columns).size().to_frame("count").reset_index().assign(kind=kind)
        for kind, table in (("claims", claims), ("cells", cells))
        if not table.empty
    ]
    if not parts:
        return make_figure(["verdicts"], "Verdicts by study", empty_chart(), "", pd.DataFrame())
    counts = pd.concat(parts, ignore_index=True)
    counts["order"] = [VERDICTS.index(v) if v in VERDICTS else 9 for v in counts["verdict"]]
    several = counts["engine"].nunique() > 1
    counts["label"] = counts["study"] + (" on " + counts["engine"] if several else "")
    counts = counts.sort_values(["kind", "label", "order"], ignore_index=True)
    panels = [
        _verdict_bars(part, str(kind), counts["verdict"])
        for kind, part in counts.groupby("kind", sort=False)
    ]
    words = "Number of claims and cells by verdict."
    for (label, kind), part in counts.groupby(["label", "kind"], sort=False):
        each = [f"{row['count']} {row['verdict']}" for row in part.to_dict("records")]
        words += f" {label}, {kind}: {', '.join(each)}."
    chart = alt.concat(*panels, columns=2)
    return make_figure(["verdicts"], "Verdicts by study", chart, words, counts)


def _verdict_bars(counts: pd.DataFrame, kind: str, present: pd.Series) -> Drawing:
    x = alt.X("count:Q", stack="zero", title=f"Number of {kind}")
    base = alt.Chart(counts).encode(
        y=alt.Y("label:N", title=None), order="order:Q", tooltip=["label:N", "verdict:N", "count:Q"]
    )
    bars = base.mark_bar(stroke=INK, strokeWidth=0.4).encode(x=x, color=verdict_colours(present))
    middle = alt.X("count:Q", stack="zero", bandPosition=0.5, title=f"Number of {kind}")
    numbers = base.mark_text(color="#000000", fontSize=11).encode(x=middle, text="count:Q")
    return alt.layer(bars, numbers).properties(width=280, height=alt.Step(28))


def claims_figure(claims: pd.DataFrame, study: Study) -> Figure:
    """Draw each tested claim's statistic with its interval and the range it was asked to lie in."""
    asked = {claim.id: expected(claim) for claim in study.claims}
    frame = claims[claims["claim"].isin(list(asked))].copy()
    for column in ("observed", "low", "high"):
        frame[column] = pd.to_numeric(frame[column], errors="coerce")
    frame = frame[frame["observed"].abs() < math.inf]
    frame["least"] = [asked[claim][0] for claim in frame["claim"]]
    frame["most"] = [asked[claim][1] for claim in frame["claim"]]
    panels = [
        _claim_panel(part, str(claim), frame["verdict"])
        for claim, part in frame.groupby("claim", sort=False)
    ]
    words = "Statistic of each claim with its 95 % interval; a bar marks the range it asks for."
    for row in frame.to_dict("records"):
        words += f" {row['claim']} on {row['engine']}: {number(row['observed'])}, {row['verdict']}."
    chart = alt.vconcat(*panels, spacing=6) if panels else empty_chart()
    columns = ["claim", "engine", "statistic", "observed", "low", "high", "least", "most"]
    data = frame[[*columns, "verdict"]]
    return make_figure(["claims", study.id], "Claims: observed and asked for", chart, words, data)


def expected(claim: Claim) -> tuple[float, float]:
    """Return the ends of the range that the claim asks for, NaN where it is open."""
    if isinstance(claim.test, EquivalenceTest):
        return 0.0, claim.test.margin
    condition = getattr(claim.test, "expect", None)
    ends = (getattr(condition, "at_least", None), getattr(condition, "at_most", None))
    if claim.test.kind == "all":
        ends = (1.0, None)
    low, high = (math.nan if end is None else float(end) for end in ends)
    return low, high


def _claim_panel(frame: pd.DataFrame, claim: str, present: pd.Series) -> Drawing:
    known = frame[["observed", "low", "high", "least", "most"]].to_numpy(dtype=float)
    known = known[abs(known) < math.inf]
    low, high = float(known.min()), float(known.max())
    pad = 0.1 * (high - low) or 0.1 * abs(high) or 1.0
    domain = [low - pad, high + pad]
    shown = frame.drop(columns=["quote", "place", "reason", "margin"], errors="ignore").assign(
        asked_from=frame["least"].fillna(domain[0]), asked_to=frame["most"].fillna(domain[1])
    )
    scale = alt.Scale(domain=domain, nice=False, clamp=True)
    title = str(frame["statistic"].iloc[0]).split(" [")[0][:80]
    base = alt.Chart(shown).encode(y=alt.Y("engine:N", title=claim))
    layers: list[Drawing] = []
    if frame[["least", "most"]].notna().any(axis=None):
        asked = alt.X("asked_from:Q", scale=scale, title=title)
        layers.append(base.mark_bar(color=INK, opacity=0.15).encode(x=asked, x2="asked_to:Q"))
    spread = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    spread = spread.encode(x=alt.X("low:Q", scale=scale, title=title), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1.0).encode(
        x=alt.X("observed:Q", scale=scale, title=title),
        shape=verdict_symbols(present),
        tooltip=[
            "claim:N",
            "engine:N",
            "statistic:N",
            "observed:Q",
            "low:Q",
            "high:Q",
            "verdict:N",
        ],
    )
    layers += [layer.encode(color=verdict_colours(present)) for layer in (spread, points)]
    return alt.layer(*layers).properties(width=420, height=alt.Step(24))
