"""The picture of a live run: four panels on one time axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import pandas as pd

from replication.metrics.sampled import kept_samples
from replication.report.charts import figure as draw
from replication.report.charts.figure import Drawing
from replication.report.charts.time import bin_ends
from replication.report.notebooks.picture import Picture
from replication.study.scenario import Scenario

#: Samples of a line that are drawn, in bins of four.
_BINS = 100


class _Panel(NamedTuple):
    title: str
    column: str
    factor: float
    height: int


_PANELS = (
    _Panel("Window (segments)", "cwnd_bytes", 1.0, 150),
    _Panel("Round trip (ms)", "rtt_s", 1e3, 90),
    _Panel("Queue (packets)", "queue_packets", 1.0, 90),
    _Panel("Rate (Mbit/s)", "throughput_bps", 1e-6, 90),
)


def run_chart(
    flows: pd.DataFrame, series: pd.DataFrame, scenario: Scenario, engine: str
) -> Picture:
    """Return windows, round trips, queue and rates of a run over time."""
    order = [str(name) for name in flows["flow"]]
    time_scale = alt.Scale(domain=[0, scenario.duration_s], nice=False)
    drawn: list[Drawing] = []
    for panel in _PANELS:
        is_last = panel is _PANELS[-1]
        x = alt.X("time_s:Q", title="Time (s)" if is_last else None, scale=time_scale)
        y = alt.Y("value:Q", title=panel.title, scale=alt.Scale(zero=True))
        numbers = draw.tips("Q", ".4g", time_s="Time (s)", value=panel.title)
        is_queue = panel.column == "queue_packets"
        looks = {"color": alt.value(draw.INK)} if is_queue else draw.look("flow", order, lines=True)
        samples = pd.concat(_lines(series, scenario.duration_s, panel))
        lines = alt.Chart(samples).mark_line(strokeWidth=1.4)
        lines = lines.encode(x=x, y=y, tooltip=draw.tips("N", flow="Flow") + numbers, **looks)
        drawn.append(lines.properties(height=panel.height))
    alternative = (
        f"Window, round trip, queue and rate of {len(order)} flows over {scenario.duration_s:g} s "
        f"on {engine}. Mean rates: {_rates(flows)}."
    )
    return Picture(alt.vconcat(*drawn, spacing=6), alternative)


def _lines(series: pd.DataFrame, duration_s: float, panel: _Panel) -> Iterator[pd.DataFrame]:
    """Yield time, value and flow of each line of a panel."""
    yield pd.DataFrame(columns=["time_s", "value", "flow"])
    key = "link" if panel.column == "queue_packets" else "flow"
    known = series[series[panel.column].notna() & series[key].notna()]
    for name, rows in known.groupby(key, sort=False, observed=True):
        values: pd.Series[float] = rows[panel.column] * panel.factor
        if panel.column == "cwnd_bytes":
            values = values / rows["segment_bytes"]
        times = rows["time_s"].to_numpy(float)
        if panel.column == "throughput_bps":
            # About 100 bins keep the line readable.
            times = bin_ends(times, max(0.5, duration_s / 100))
            values = values.groupby(times).mean()
            times = values.index.to_numpy(float)
        line = pd.DataFrame({"time_s": times, "value": values.to_numpy(), "flow": str(name)})
        if len(line) > 4 * _BINS:
            line = line.iloc[kept_samples(line["time_s"], line["value"], _BINS)]
        yield line


def _rates(flows: pd.DataFrame) -> str:
    """Return the mean rate of each flow."""
    rates = []
    for flow, bps in zip(flows["flow"], flows["throughput_bps"], strict=True):
        rates.append(f"{flow} {draw.three_digits(bps / 1e6)} Mbit/s")
    return ", ".join(rates)
