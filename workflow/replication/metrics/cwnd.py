"""Congestion window of a flow: the one definition of its phases and figures.

A measured trace and a simulated series are judged alike.

Window reduction
    The window falls at least 20 % and at least 2 segments below its highest sample since the
    previous reduction. The next one can only be counted once the window has grown 20 % above
    its lowest sample. The fall is measured from the peak, not between neighbouring samples:
    Linux shrinks the window over a whole round trip (proportional rate reduction), a few per
    cent a sample. Two segments, because Vegas moves a small window by one segment at a time.
Start-up
    Ends at the first sample whose window has reached the slow-start threshold, or at the first
    window reduction, whichever is earlier. `ss` prints no threshold while it is still infinite,
    and BBR never sets one, which is why the second condition is needed.
Minimum, mean, sawtooth, distance
    Over the samples from the end of start-up on.
Peak, reductions
    Over all samples, slow-start overshoot included.
Tooth
    By reductions (`reduction_teeth`): from a reduction to the next; it counts as soon as the window
    has fallen. By prominence (`prominent_teeth`): a local maximum whose topographic prominence is
    at least two segments and 20 % of the maximum itself: on both sides the window goes down that
    far before it goes higher, and what rises again after a shallow dip is one tooth. Of a flat top,
    and of equal tops without such a fall between them, the first sample counts.
Share of slow start
    Share of the span with the window below the slow-start threshold (RFC 5681, section 3.1);
    a threshold that is not set is infinite, so until start-up ends the flow is in slow start.
    A dip of a recovery below the threshold counts on both sides. Where one side never has a
    threshold (BBR sets none in Linux), the share of start-up is taken instead, on both sides.
Distance
    First Wasserstein distance between the distributions of two windows, in segments: how far the
    samples of one must move on average to become the other's, whatever their order in time.

To be compared, traces and series are put on one grid (`Window`): time counts from the flow's own
first sample, each sample holds until the next one, and the interval is the longer of the two sides'
median sampling intervals, so that neither side shows more than it was measured with. Samples at
irregular times have a mean weighted by the time until the next one (`time_weighted_mean`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from replication.study.errors import InputError

FloatArray = npt.NDArray[np.float64]

REDUCTION_FRACTION = 0.20
REDUCTION_SEGMENTS = 2.0
RECOVERY_FRACTION = 0.20
#: Segments a sample that decide between equal tops; windows are read in whole segments.
_TIE_SEGMENTS = 1e-9
#: A fall of exactly the bound counts despite rounding and ties.
_SLACK_SEGMENTS = 1e-5
MINUTE_S = 60.0
DISTANCE = "cwnd_distance"


class SeriesError(InputError):
    """A window series has too few samples, or none that is finite."""


@dataclass(frozen=True)
class CwndSeries:
    """Samples of a congestion window in the order of time; definitions in the module's docstring.

    The arrays are of one length; ssthresh is NaN, or huge, where it is not set.
    """

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
        """Samples from the end of start-up on; all of them if it never ends."""
        return slice(self.start_up_end or 0, None)

    @property
    def steady_cwnd(self) -> FloatArray:
        """Congestion window of the steady samples, in segments."""
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


def find_reductions(cwnd_segments: npt.ArrayLike) -> list[int]:
    """Return the index of each sample at which a window reduction is first seen."""
    found: list[int] = []
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
                found.append(index)
                trough, reduced = window, True
    return found


def time_weighted_mean(time_s: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """Return the mean of samples that each hold until the next one; NaN are left out."""
    time, samples = np.asarray(time_s, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(samples)
    if not known.any():
        raise SeriesError("no finite sample to take a mean of")
    held = np.diff(time[known])
    if held.sum() == 0:
        return float(samples[known].mean())
    return float(np.average(samples[known][:-1], weights=held))


class Sawtooth(NamedTuple):
    """The prominent teeth of a window: number, mean time between peaks, mean fall.

    The fall is from a peak to the lowest sample before the next one, after the last to the end. NaN
    where there are too few teeth: two for a period, one for a height.
    """

    teeth: int
    period_s: float
    height_segments: float


def prominent_teeth(time_s: npt.ArrayLike, cwnd_segments: npt.ArrayLike) -> Sawtooth:
    """Return the sawtooth of a window by prominence; see the module's docstring."""
    time = np.asarray(time_s, dtype=float)
    cwnd = np.asarray(cwnd_segments, dtype=float)
    # Were the tie not broken, each ripple between two equal tops would make a tooth of both.
    tilted = cwnd - _TIE_SEGMENTS * np.arange(cwnd.size)
    peaks, found = scipy.signal.find_peaks(tilted, prominence=REDUCTION_SEGMENTS - _SLACK_SEGMENTS)
    peaks = peaks[found["prominences"] >= REDUCTION_FRACTION * cwnd[peaks] - _SLACK_SEGMENTS]
    ends = np.append(peaks, cwnd.size)[1:]
    falls = [cwnd[peak] - cwnd[peak:end].min() for peak, end in zip(peaks, ends, strict=True)]
    return Sawtooth(
        teeth=len(peaks),
        period_s=float(np.diff(time[peaks]).mean()) if len(peaks) > 1 else np.nan,
        height_segments=float(np.mean(falls)) if falls else np.nan,
    )


def reduction_teeth(window: FloatArray) -> list[tuple[float, float, tuple[int, int] | None]]:
    """Return peak before, trough after and, except for the last, the rise to the next peak."""
    found = find_reductions(window)
    teeth: list[tuple[float, float, tuple[int, int] | None]] = []
    start = 0
    for index, following in itertools.zip_longest(found, found[1:]):
        peak = float(window[start:index].max())
        rise: tuple[int, int] | None = None
        if following is None:
            # Down to the first rise after it.
            rises = np.flatnonzero(np.diff(window[index:]) > 0)
            stop = index + int(rises[0]) + 1 if rises.size else window.size
            start = index + int(window[index:stop].argmin())
        else:
            top = index + int(window[index:following].argmax())
            start = index + int(window[index : top + 1].argmin())
            rise = start, top
        teeth.append((peak, float(window[start]), rise))
    return teeth


class Samples(CwndSeries):
    """One flow's samples as they were measured, time counted from the first of them."""

    @classmethod
    def of(
        cls,
        time_s: npt.ArrayLike,
        cwnd_segments: npt.ArrayLike,
        ssthresh_segments: npt.ArrayLike,
        until_s: float = np.inf,
    ) -> Samples:
        """Sort samples by time, without those that have no window or come after `until_s`."""
        time, window, threshold = (
            np.asarray(values, dtype=float) for values in (time_s, cwnd_segments, ssthresh_segments)
        )
        order = np.argsort(time, kind="stable")
        order = order[np.isfinite(window[order]) & (time[order] <= until_s + 1e-9)]
        if order.size < 2:
            raise SeriesError("a window needs at least two samples to be compared")
        return cls(time[order] - time[order[0]], window[order], threshold[order])

    @property
    def has_threshold(self) -> bool:
        """Whether the slow-start threshold is ever set."""
        return bool(np.isfinite(self.ssthresh_segments).any())

    def on_grid(self, interval_s: float, span_s: float) -> Window:
        """Return the samples on a regular grid from 0 to `span_s`."""
        grid = np.arange(0.0, span_s + 1e-9, interval_s)
        place = np.searchsorted(self.time_s, grid + 1e-9, side="right") - 1
        return Window(grid, self.cwnd_segments[place], self.ssthresh_segments[place])


class Window(CwndSeries):
    """A congestion window on a regular grid of times."""

    @cached_property
    def sawtooth(self) -> Sawtooth:
        """The prominent teeth after start-up."""
        return prominent_teeth(self.time_s[self.steady], self.steady_cwnd)

    def reductions_per_minute(self) -> float:
        """Return the number of window reductions over the span in minutes."""
        return MINUTE_S * self.reductions() / float(self.time_s[-1])

    def slow_start_share(self, by_threshold: bool = True) -> float:
        """Return the share of the span in slow start, or else in start-up."""
        size, end = self.cwnd_segments.size, self.start_up_end
        slow = np.arange(size) < (size if end is None else end)
        if by_threshold:
            known = np.isfinite(self.ssthresh_segments)
            slow = np.where(known, self.cwnd_segments < self.ssthresh_segments, slow)
        return float(slow.mean())

    def distance(self, other: Window) -> float:
        """Return the Wasserstein distance to another window after start-up, in segments."""
        return float(scipy.stats.wasserstein_distance(self.steady_cwnd, other.steady_cwnd))


#: What is read off a single window: its name for people, its unit, and how.
FIGURES: dict[str, tuple[str, str, Callable[[Window], float]]] = {
    "sawtooth_period": ("Sawtooth, period", "s", lambda w: w.sawtooth.period_s),
    "sawtooth_height": ("Sawtooth, height", "segments", lambda w: w.sawtooth.height_segments),
    "cwnd_mean": ("Window, time average", "segments", lambda w: float(w.steady_cwnd.mean())),
    "cwnd_peak": ("Window, peak", "segments", Window.peak),
    "cwnd_minimum": ("Window, minimum", "segments", Window.minimum),
    "reductions_per_minute": ("Window reductions", "1/min", Window.reductions_per_minute),
    "slow_start_share": ("Share of time in slow start", "1", Window.slow_start_share),
}
#: Names of the figures and of the distance for people.
LABELS = {name: label for name, (label, _, _) in FIGURES.items()}
LABELS[DISTANCE] = "Wasserstein distance"
