"""Congestion window of a flow: definitions of its phases and figures, for traces and simulations.

Window reduction
    The window falls at least 20 % and at least 2 segments below its highest sample since the
    previous reduction. The next reduction counts only after the window has grown 20 % above its
    lowest sample. The fall is measured from the peak and not between samples, because Linux
    shrinks the window by a few per cent a sample over a whole round trip (proportional rate
    reduction). Two segments, because Vegas moves a small window by one segment at a time.
Start-up
    Ends at the first sample whose window reaches the slow-start threshold, or at the first window
    reduction, whichever is earlier. `ss` prints no threshold while it is infinite, and BBR never
    sets one, so the second condition is needed.
Minimum, mean, sawtooth, distance
    Over the steady samples: those from the end of start-up on.
Peak, reductions
    Over all samples, including the overshoot of slow start.
Tooth
    A local maximum whose topographic prominence is at least two segments and 20 % of the maximum.
    The window falls that far on both sides before it rises higher, so a shallow dip does not split
    a tooth. Of equal maxima without such a fall between them, and of a flat top, the first sample
    counts.
Share of slow start
    Share of the time with the window below the slow-start threshold (RFC 5681, section 3.1). An
    unset threshold is infinite, so the flow is in slow start until start-up ends. If one of two
    compared sides never has a threshold (BBR in Linux), both use the share of start-up.
Distance
    First Wasserstein distance between the distributions of two windows, in segments: how far the
    samples of one must move on average to become the other's, whatever their order in time.

Traces and series are compared on one grid (`on_grid`): time counts from the flow's first sample,
each sample holds until the next one, and the interval is the longer of the two sides' median
sampling intervals, so that neither side shows more than was measured. A mean over irregular times
is weighted by the time until the next sample (`time_weighted_mean`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from replication.base.errors import InputError

FloatArray = npt.NDArray[np.float64]

REDUCTION_FRACTION = 0.20
REDUCTION_SEGMENTS = 2.0
RECOVERY_FRACTION = 0.20
#: A tilt in segments a sample makes the first of equal maxima the highest.
_TIE_SEGMENTS = 1e-9
#: A fall of exactly the bound counts despite rounding and the tilt.
_SLACK_SEGMENTS = 1e-5
MINUTE_S = 60.0
DISTANCE = "cwnd_distance"


@dataclass(frozen=True)
class CwndSeries:
    """Samples of a congestion window in the order of time; an unset ssthresh is NaN or huge."""

    time_s: FloatArray
    cwnd_segments: FloatArray
    ssthresh_segments: FloatArray

    @cached_property
    def start_up_end(self) -> int | None:
        """Index of the first sample after start-up; None if it never ends."""
        # A comparison with NaN is false: an unset threshold never ends start-up.
        reached = np.flatnonzero(self.cwnd_segments >= self.ssthresh_segments)
        ends = [*reached[:1], *find_reductions(self.cwnd_segments)[:1]]
        return int(min(ends)) if ends else None

    @property
    def steady(self) -> slice:
        """Samples from the end of start-up on; all if it never ends."""
        return slice(self.start_up_end or 0, None)

    @property
    def steady_cwnd(self) -> FloatArray:
        """Window of the steady samples, in segments."""
        return self.cwnd_segments[self.steady]

    def peak(self) -> float:
        """Return the largest window, in segments."""
        return float(self.cwnd_segments.max())

    def minimum(self) -> float:
        """Return the smallest steady window, in segments."""
        return float(self.steady_cwnd.min())

    def reductions(self) -> int:
        """Return the number of window reductions."""
        return len(find_reductions(self.cwnd_segments))

    @classmethod
    def of(
        cls,
        time_s: npt.ArrayLike,
        cwnd_segments: npt.ArrayLike,
        ssthresh_segments: npt.ArrayLike,
        until_s: float = np.inf,
    ) -> CwndSeries:
        """Sort samples by time, from the first on; leave out those without a window or later."""
        time, window, threshold = (
            np.asarray(values, dtype=float) for values in (time_s, cwnd_segments, ssthresh_segments)
        )
        order = np.argsort(time, kind="stable")
        order = order[np.isfinite(window[order]) & (time[order] <= until_s + 1e-9)]
        if order.size < 2:
            raise InputError("a window needs at least two samples to be compared")
        return CwndSeries(time[order] - time[order[0]], window[order], threshold[order])

    def on_grid(self, interval_s: float, span_s: float) -> CwndSeries:
        """Return the samples on a regular grid from 0 to `span_s`."""
        grid = np.arange(0.0, span_s + 1e-9, interval_s)
        place = np.searchsorted(self.time_s, grid + 1e-9, side="right") - 1
        return CwndSeries(grid, self.cwnd_segments[place], self.ssthresh_segments[place])

    @property
    def has_threshold(self) -> bool:
        """Whether the slow-start threshold is ever set."""
        return bool(np.isfinite(self.ssthresh_segments).any())

    @cached_property
    def sawtooth(self) -> Sawtooth:
        """The prominent teeth after start-up."""
        return prominent_teeth(self.time_s[self.steady], self.steady_cwnd)

    def slow_start_share(self, by_threshold: bool = True) -> float:
        """Return the share of samples in slow start by the threshold, or else in start-up."""
        size, end = self.cwnd_segments.size, self.start_up_end
        slow = np.arange(size) < (size if end is None else end)
        if by_threshold:
            known = np.isfinite(self.ssthresh_segments)
            slow = np.where(known, self.cwnd_segments < self.ssthresh_segments, slow)
        return float(slow.mean())

    def distance(self, other: CwndSeries) -> float:
        """Return the Wasserstein distance to another window after start-up, in segments."""
        return float(scipy.stats.wasserstein_distance(self.steady_cwnd, other.steady_cwnd))


def find_reductions(cwnd_segments: npt.ArrayLike) -> list[int]:
    """Return the index of each sample at which a window reduction is first seen."""
    reductions: list[int] = []
    peak, trough, reduced = -np.inf, np.inf, False
    for index, window in enumerate(np.asarray(cwnd_segments, dtype=float)):
        if reduced:
            trough = min(trough, window)
            if window > trough and window >= (1 + RECOVERY_FRACTION) * trough - 1e-9:
                peak, reduced = window, False
        else:
            peak = max(peak, window)
            fall = peak - window + 1e-9  # a fall of exactly 20 % counts despite rounding
            if fall >= REDUCTION_FRACTION * peak and fall >= REDUCTION_SEGMENTS:
                reductions.append(index)
                trough, reduced = window, True
    return reductions


def time_weighted_mean(time_s: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """Return the mean of samples, each weighted by the time to the next; NaN are left out."""
    time, samples = np.asarray(time_s, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(samples)
    if not known.any():
        raise InputError("no finite sample to take a mean of")
    held = np.diff(time[known])
    if held.sum() == 0:
        return float(samples[known].mean())
    return float(np.average(samples[known][:-1], weights=held))


class Sawtooth(NamedTuple):
    """The prominent teeth of a window: number, mean time between peaks, mean fall.

    A fall is from a peak to the lowest sample before the next peak or the end. A period needs two
    teeth and a height one; otherwise they are NaN.
    """

    teeth: int
    period_s: float
    height_segments: float


def prominent_teeth(time_s: npt.ArrayLike, cwnd_segments: npt.ArrayLike) -> Sawtooth:
    """Return the prominent teeth of a window; see the module's docstring."""
    time = np.asarray(time_s, dtype=float)
    cwnd = np.asarray(cwnd_segments, dtype=float)
    # Without the tilt each ripple between two equal maxima would make a tooth of both.
    tilted = cwnd - _TIE_SEGMENTS * np.arange(cwnd.size)
    least = REDUCTION_SEGMENTS - _SLACK_SEGMENTS
    peaks, properties = scipy.signal.find_peaks(tilted, prominence=least)
    prominent = properties["prominences"] >= REDUCTION_FRACTION * cwnd[peaks] - _SLACK_SEGMENTS
    peaks = peaks[prominent]
    ends = np.append(peaks, cwnd.size)[1:]
    falls = [cwnd[peak] - cwnd[peak:end].min() for peak, end in zip(peaks, ends, strict=True)]
    return Sawtooth(
        teeth=len(peaks),
        period_s=float(np.diff(time[peaks]).mean()) if len(peaks) > 1 else np.nan,
        height_segments=float(np.mean(falls)) if falls else np.nan,
    )


class Figure(NamedTuple):
    """A figure of a window on a regular grid."""

    label: str
    unit: str
    of: Callable[[CwndSeries], float]


FIGURES = {
    "sawtooth_period": Figure("Sawtooth, period", "s", lambda w: w.sawtooth.period_s),
    "sawtooth_height": Figure("Sawtooth, height", "segments", lambda w: w.sawtooth.height_segments),
    "cwnd_mean": Figure("Window, time average", "segments", lambda w: float(w.steady_cwnd.mean())),
    "cwnd_peak": Figure("Window, peak", "segments", CwndSeries.peak),
    "cwnd_minimum": Figure("Window, minimum", "segments", CwndSeries.minimum),
    "reductions_per_minute": Figure(
        "Window reductions", "1/min", lambda w: MINUTE_S * w.reductions() / float(w.time_s[-1])
    ),
    "slow_start_share": Figure("Share of time in slow start", "1", CwndSeries.slow_start_share),
}
LABELS = {name: figure.label for name, figure in FIGURES.items()}
LABELS[DISTANCE] = "Wasserstein distance"
