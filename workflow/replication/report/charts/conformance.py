"""Charts of conformance: the windows of two engines through the same losses."""

from __future__ import annotations

import altair as alt
import pandas as pd

from replication.compare.conformance_model import Recovery
from replication.measure.thin import thin
from replication.report.drawing.figure import (
    Drawing,
    Figure,
    colours,
    dashes,
    legend_filter,
    make_figure,
    three_digits,
    zoom_of,
)

#: Samples that a panel may keep, both engines together.
SAMPLES = 600


def recovery_figures(recovery: Recovery, windows: pd.DataFrame) -> list[Figure]:
    """Return a figure a variant: cwnd against time of both engines, a panel a list of losses.

    Parameters
    ----------
    recovery
        Variants, losses and engines.
    windows
        variant, losses, engine, time_s, cwnd_segments; no figures unless both engines are in it.
    """
    engines = [str(recovery.subject), str(recovery.reference)]
    if not set(engines) <= set(windows["engine"]):
        return []
    shown = [name for name in recovery.variants if name in set(windows["variant"])]
    return [_figure(recovery, name, engines, windows[windows["variant"] == name]) for name in shown]


def _figure(recovery: Recovery, variant: str, engines: list[str], frame: pd.DataFrame) -> Figure:
    frame = frame[frame["engine"].isin(engines)]
    parts = [
        thin(part, "cwnd_segments", ["engine"], SAMPLES)
        for _, part in frame.groupby("losses", sort=False)
    ]
    frame = pd.concat(parts, ignore_index=True)
    panels = [
        _panel(part, engines, f"{variant} {losses}").properties(
            title=_words(recovery, str(losses)), width=250, height=170
        )
        for losses, part in frame.groupby("losses", sort=False)
    ]
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", strokeDash="shared")
    title = f"{variant.title()} through listed losses: window against time"
    words = "Congestion window (segments) against time (s), a panel a list of lost packets."
    for (losses, engine), part in frame.groupby(["losses", "engine"], sort=False):
        low, high = part["cwnd_segments"].min(), part["cwnd_segments"].max()
        words += f" {losses}, {engine}: from {three_digits(low)} to {three_digits(high)} segments."
    return make_figure(["", "conformance", variant, "cwnd"], title, chart, words, frame)


def _words(recovery: Recovery, losses: str) -> str:
    packets = next(lost for name, lost in recovery.losses.items() if name == losses)
    return f"{losses}: lost {', '.join(map(str, packets))}"


def _panel(frame: pd.DataFrame, engines: list[str], name: str) -> Drawing:
    picked, opacity = legend_filter("engine", name)
    return (
        alt.Chart(frame[["engine", "time_s", "cwnd_segments"]])
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=alt.X("time_s:Q", title="Time (s)"),
            y=alt.Y("cwnd_segments:Q", title="cwnd (segments)"),
            color=colours("engine", engines, lines=True),
            strokeDash=dashes("engine", engines),
            opacity=opacity,
            tooltip=[
                alt.Tooltip("engine:N", title="Engine"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".4g"),
                alt.Tooltip("cwnd_segments:Q", title="cwnd (segments)", format=".4g"),
            ],
        )
        .add_params(picked, zoom_of(name))
    )
