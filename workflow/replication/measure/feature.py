"""Features of one flow's sampled series: what a reader sees in a plot of the congestion window.

Start-up, window reduction, mean, peak and minimum are those of `measure.cwnd`. "Steady" samples are
those from the end of start-up on; where a time window was asked for, all samples inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from replication.measure.cwnd import CwndSeries, FloatArray, find_reductions, time_weighted_mean
from replication.measure.sawtooth import reduction_teeth

#: A window this small, below the slow-start threshold, is a restart from slow start.
RESTART_SEGMENTS = 2.0
#: A slope through fewer samples is not an estimate.
MINIMUM_GROWTH_SAMPLES = 3


@dataclass(frozen=True)
class FlowSeries(CwndSeries):
    """Samples of one flow in the order of time; NaN where nothing was measured.

    Attributes
    ----------
    rtt_s, throughput_bps
        Arrays of the same length.
    windowed
        Whether the samples are those of a time window that was asked for.
    """

    rtt_s: FloatArray
    throughput_bps: FloatArray
    windowed: bool = False

    @cached_property
    def known(self) -> FlowSeries:
        """The samples at which the congestion window is known."""
        keep = np.isfinite(self.cwnd_segments)
        return FlowSeries(
            self.time_s[keep],
            self.cwnd_segments[keep],
            self.ssthresh_segments[keep],
            self.rtt_s[keep],
            self.throughput_bps[keep],
            self.windowed,
        )

    @property
    def steady(self) -> slice:
        """Samples after start-up, or all of them in a time window."""
        return slice(None) if self.windowed else super().steady


def cwnd_mean(flow: FlowSeries) -> float:
    """Return the time-weighted mean of the steady window, in segments."""
    return time_weighted_mean(flow.time_s[flow.steady], flow.steady_cwnd)


def cwnd_variation(flow: FlowSeries) -> float:
    """Return the coefficient of variation of the steady window."""
    return _variation(flow.steady_cwnd)


def start_up_duration(flow: FlowSeries) -> float:
    """Return the time from the first sample to the end of start-up, in s; NaN if it never ends."""
    end = flow.start_up_end
    return np.nan if end is None else float(flow.time_s[end] - flow.time_s[0])


def slow_start_growth(flow: FlowSeries) -> float:
    """Return the factor by which the window grows per round-trip time in the initial slow start.

    2 to the Theil-Sen slope of log2(window) over elapsed round trips (the integral of dt/RTT),
    from the first sample to the largest window before start-up ends. Theil-Sen ignores the odd
    sample that falls between two bursts. NaN with fewer than three samples or without RTT.
    """
    end = flow.start_up_end
    window = flow.cwnd_segments[: None if end is None else end + 1]
    last = int(window.argmax()) + 1 if window.size else 0
    if last < MINIMUM_GROWTH_SAMPLES:
        return np.nan
    rtt = _filled(flow.rtt_s[:last])
    if rtt is None:
        return np.nan
    steps = np.diff(flow.time_s[:last]) / rtt[1:]
    elapsed = np.concatenate([[0.0], np.cumsum(steps)])
    return float(2 ** stats.theilslopes(np.log2(window[:last]), elapsed).slope)


def slow_start_reentries(flow: FlowSeries) -> float:
    """Return how often the window falls to at most two segments after start-up.

    Only falls from above two segments to below the slow-start threshold count (where the
    threshold is known): a timeout, or Tahoe's answer to any loss. A restart that is over between
    two samples is missed; `timeouts` is exact.
    """
    window = flow.steady_cwnd
    threshold = flow.ssthresh_segments[flow.steady]
    low = (window <= RESTART_SEGMENTS) & ~(window >= threshold)
    return float((low[1:] & (window[:-1] > RESTART_SEGMENTS)).sum())


def sawtooth_count(flow: FlowSeries) -> float:
    """Return the number of rise-and-fall cycles of the steady window."""
    return float(len(find_reductions(flow.steady_cwnd)))


def sawtooth_depth(flow: FlowSeries) -> float:
    """Return the mean over reductions of the window after over before; NaN without any.

    Before: the peak since the last trough. After: the lowest sample until the next peak.
    """
    return _mean([low / high for high, low, _ in reduction_teeth(flow.steady_cwnd) if high > 0])


def window_growth_rate(flow: FlowSeries) -> float:
    """Return how fast the steady window grows while it grows, in segments per s; NaN if never."""
    time, window = flow.time_s[flow.steady], flow.steady_cwnd
    steps, held = np.diff(window), np.diff(time)
    rising = steps > 0
    # A plateau between two rises is a sampling artefact of slow growth; a fall is not growth.
    counted = held[steps >= 0].sum() if rising.any() else 0.0
    return float(steps[rising].sum() / counted) if counted > 0 else np.nan


def early_growth(flow: FlowSeries) -> float:
    """Return the mean share of a sawtooth's rise that is done in the first half of its time.

    0.5 for a straight line (Reno), above for concave growth (CUBIC below its last maximum), below
    for convex growth. Only rises of at least two segments between two reductions count.
    """
    time, window = flow.time_s[flow.steady], flow.steady_cwnd
    shares = []
    for _, _, rise in reduction_teeth(window):
        if rise is None or window[rise[1]] - window[rise[0]] < RESTART_SEGMENTS:
            continue
        start, stop = rise
        middle = np.interp((time[start] + time[stop]) / 2, time, window)
        shares.append((middle - window[start]) / (window[stop] - window[start]))
    return _mean(shares)


def throughput_variation(flow: FlowSeries) -> float:
    """Return the coefficient of variation of the throughput per sampling interval.

    Over the steady samples of TCP, or all samples of a flow without a congestion window.
    """
    if flow.windowed or not np.isfinite(flow.cwnd_segments).any():
        return _variation(flow.throughput_bps)
    known = flow.known
    return _variation(known.throughput_bps[known.steady])


def rtt_peak(flow: FlowSeries) -> float:
    """Return the largest sampled round-trip time, in s."""
    return float(np.nanmax(flow.rtt_s)) if np.isfinite(flow.rtt_s).any() else np.nan


def rtt_minimum(flow: FlowSeries) -> float:
    """Return the smallest sampled round-trip time, in s."""
    return float(np.nanmin(flow.rtt_s)) if np.isfinite(flow.rtt_s).any() else np.nan


def rtt_variation(flow: FlowSeries) -> float:
    """Return the coefficient of variation of the steady samples' round-trip time."""
    return _variation(flow.rtt_s[flow.steady])


#: Features that need the congestion window, by the name of their metric.
WINDOW_FEATURES: dict[str, Callable[[FlowSeries], float]] = {
    "cwnd_mean_segments": cwnd_mean,
    "cwnd_peak_segments": FlowSeries.peak,
    "cwnd_minimum_segments": FlowSeries.minimum,
    "cwnd_variation": cwnd_variation,
    "window_reductions": lambda flow: float(flow.reductions()),
    "start_up_duration_s": start_up_duration,
    "slow_start_growth": slow_start_growth,
    "slow_start_reentries": slow_start_reentries,
    "sawtooth_count": sawtooth_count,
    "sawtooth_depth": sawtooth_depth,
    "window_growth_rate": window_growth_rate,
    "early_growth": early_growth,
    "rtt_variation": rtt_variation,
}
#: Features of any flow.
FLOW_FEATURES: dict[str, Callable[[FlowSeries], float]] = {
    "throughput_variation": throughput_variation,
    "rtt_peak_s": rtt_peak,
    "rtt_minimum_s": rtt_minimum,
}


def feature(name: str, flow: FlowSeries) -> float:
    """Return the feature called `name`; NaN where the flow has no sample to take it from."""
    if name in FLOW_FEATURES:
        return FLOW_FEATURES[name](flow) if flow.time_s.size else np.nan
    known = flow.known
    return WINDOW_FEATURES[name](known) if known.time_s.size else np.nan


def _filled(values: FloatArray) -> FloatArray | None:
    """Return `values` with gaps interpolated; None unless some are positive."""
    good = np.isfinite(values) & (values > 0)
    if not good.any():
        return None
    places = np.arange(values.size)
    return np.interp(places, places[good], values[good])


def _variation(values: FloatArray) -> float:
    sample = values[np.isfinite(values)]
    mean = sample.mean() if sample.size else 0.0
    return float(sample.std() / mean) if mean > 0 else np.nan


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan
