"""Features of one flow's sampled series, in the terms that `metrics.cwnd` defines."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from replication.metrics.cwnd import CwndSeries, FloatArray, find_reductions, time_weighted_mean

#: A window this small and below the slow-start threshold is a restart from slow start.
RESTART_SEGMENTS = 2.0
#: The fewest samples for a median.
MINIMUM_GROWTH_SAMPLES = 3
#: The fewest samples for the shape of a rise: twice the coefficients of a cubic.
MINIMUM_RISE_SAMPLES = 8
#: Residuals of a straight line below this, in squared segments a sample, are rounding.
_STRAIGHT = 1e-12


@dataclass(frozen=True)
class FlowSeries(CwndSeries):
    """Samples of one flow, NaN where nothing was measured; those of a time window if `windowed`."""

    rtt_s: FloatArray
    windowed: bool = False

    @cached_property
    def known(self) -> Self:
        """The samples with a congestion window."""
        keep = np.isfinite(self.cwnd_segments)
        return replace(
            self,
            time_s=self.time_s[keep],
            cwnd_segments=self.cwnd_segments[keep],
            ssthresh_segments=self.ssthresh_segments[keep],
            rtt_s=self.rtt_s[keep],
        )

    @property
    def steady(self) -> slice:
        """Samples after start-up, or all of them in a time window."""
        return slice(None) if self.windowed else super().steady


def start_up_duration(flow: FlowSeries) -> float:
    """Return the duration of start-up in s; NaN if it never ends."""
    end = flow.start_up_end
    return np.nan if end is None else float(flow.time_s[end] - flow.time_s[0])


def cwnd_spread(flow: FlowSeries) -> float:
    """Return the median distance of the steady window from its median, over that median.

    A regular sawtooth from half a window to a whole one has (W/8)/(3W/4) = 1/6. Rare excursions,
    such as BBR's probes of the round trip, would dominate the coefficient of variation.
    """
    window = flow.steady_cwnd
    middle = float(np.median(window)) if window.size else 0.0
    return float(np.median(np.abs(window - middle)) / middle) if middle > 0 else np.nan


def slow_start_growth(flow: FlowSeries) -> float:
    """Return the factor by which the window grows per round-trip time in the initial slow start.

    Median of w(t) / w(t - R(t)) over the samples up to the largest window of start-up, with the
    round trip R(t) sampled at t. A segment more for each acknowledged segment gives 2 (RFC 5681,
    section 3.1; RFC 3465), however the round trip grows. Between samples the window is taken to
    grow by a constant factor. NaN with fewer than three samples later than one round trip.
    """
    end = flow.start_up_end
    window = flow.cwnd_segments[: None if end is None else end + 1]
    last = int(window.argmax()) + 1 if window.size else 0
    time = flow.time_s[:last]
    growth = np.log(window[:last])
    rtt = flow.rtt_s[:last]
    sent = time - rtt
    # A comparison with NaN is false, so samples without a round trip do not count.
    known = (rtt > 0) & (sent >= flow.time_s[0] - 1e-9)
    if known.sum() < MINIMUM_GROWTH_SAMPLES:
        return np.nan
    return float(np.exp(np.median(growth[known] - np.interp(sent[known], time, growth))))


def slow_start_reentries(flow: FlowSeries) -> float:
    """Return how often the steady window falls to at most two segments.

    A fall counts if it starts above two segments and ends below the slow-start threshold, if that
    is known: after a timeout, or after any loss of Tahoe. Falls between two samples are missed.
    """
    window = flow.steady_cwnd
    threshold = flow.ssthresh_segments[flow.steady]
    low = (window <= RESTART_SEGMENTS) & ~(window >= threshold)
    return float((low[1:] & (window[:-1] > RESTART_SEGMENTS)).sum())


def window_growth_rate(flow: FlowSeries) -> float:
    """Return the growth rate of the steady window while it grows, in segments per s, or NaN."""
    time, window = flow.time_s[flow.steady], flow.steady_cwnd
    steps, held = np.diff(window), np.diff(time)
    rising = steps > 0
    # A plateau between two rises counts: slow growth looks like that when sampled.
    counted = held[steps >= 0].sum() if rising.any() else 0.0
    return float(steps[rising].sum() / counted) if counted > 0 else np.nan


def rise_curvature(flow: FlowSeries) -> float:
    """Return how much better a cubic fits the rises of a sawtooth than a straight line.

    1 - S3/S1 with the sums of squared residuals of a cubic polynomial and of a straight line in
    time: 0 for straight rises, near 1 for cubic ones. Rises between two reductions count if they
    have at least two segments and eight samples; NaN without any.
    """
    time, window = flow.time_s[flow.steady], flow.steady_cwnd
    residuals, count = np.zeros(2), 0
    for start, stop in itertools.pairwise(find_reductions(window)):
        top = start + int(window[start:stop].argmax())
        trough = start + int(window[start : top + 1].argmin())
        size = top + 1 - trough
        if window[top] - window[trough] >= RESTART_SEGMENTS and size >= MINIMUM_RISE_SAMPLES:
            rise = slice(trough, top + 1)
            residuals += [_residual(time[rise], window[rise], degree) for degree in (1, 3)]
            count += size
    if not count:
        return np.nan
    straight, cubic = residuals
    return max(0.0, float(1 - cubic / straight)) if straight > _STRAIGHT * count else 0.0


#: Features by the name of their metric.
WINDOW_FEATURES: dict[str, Callable[[FlowSeries], float]] = {
    "cwnd_mean_segments": lambda f: time_weighted_mean(f.time_s[f.steady], f.steady_cwnd),
    "cwnd_peak_segments": FlowSeries.peak,
    "cwnd_minimum_segments": FlowSeries.minimum,
    "cwnd_spread": cwnd_spread,
    "window_reductions": lambda flow: float(flow.reductions()),
    "start_up_duration_s": start_up_duration,
    "slow_start_growth": slow_start_growth,
    "slow_start_reentries": slow_start_reentries,
    "sawtooth_count": lambda flow: float(len(find_reductions(flow.steady_cwnd))),
    "window_growth_rate": window_growth_rate,
    "rise_curvature": rise_curvature,
}


def feature(name: str, flow: FlowSeries) -> float:
    """Return the feature `name`; NaN if the flow never has a window."""
    known = flow.known
    return WINDOW_FEATURES[name](known) if known.time_s.size else np.nan


def _residual(time: FloatArray, values: FloatArray, degree: int) -> float:
    """Return the sum of squared residuals of a polynomial in time, fitted to `values`.

    By orthogonal polynomials (Forsythe, J. SIAM 5(2), 1957, section 3) in plain sums, because a
    linear algebra library rounds differently on different processors.
    """
    place = time - time.mean()
    place /= np.abs(place).max()
    left = values
    before = np.zeros_like(place)
    term = np.ones_like(place)
    norm_before = np.inf
    for _ in range(degree + 1):
        norm = (term * term).sum()
        left = left - (term * left).sum() / norm * term
        shift = (place * term * term).sum() / norm
        before, term = term, (place - shift) * term - norm / norm_before * before
        norm_before = norm
    return float((left * left).sum())
