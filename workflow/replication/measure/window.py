"""Windows on one grid: a measured and a simulated congestion window, sampled and judged alike.

Published traces are sampled whenever `ss` came round, simulated series at a fixed interval. Both
are put on the same grid: time counts from the flow's own first sample, each sample holds until
the next one, and the grid's interval is the longer of the two sides' median sampling intervals,
so that neither side shows more than it was measured with. The unit is the flow's own segment: `ss`
counts segments, and a series in bytes is divided by the flow's segment size.

All figures are taken on the grid. Start-up and window reductions are those of `measure.cwnd`, the
sawtooth is that by prominence of `measure.sawtooth`:

Mean, minimum, sawtooth, distance
    From the end of start-up on.
Peak, reductions per minute
    Over the whole span, slow-start overshoot included.
Share of slow start
    Share of the span with the window below the slow-start threshold (RFC 5681, section 3.1);
    a threshold that is not set is infinite, so until start-up ends the flow is in slow start.
    A dip of a recovery below the threshold counts on both sides. Where one side never has a
    threshold (BBR sets none in Linux), the share of start-up is taken instead, on both sides.
Distance
    First Wasserstein distance between the distributions of the two windows, in segments: how far
    the samples of one must move on average to become the other's, whatever their order in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats import wasserstein_distance

from replication.measure.cwnd import CwndSeries, FloatArray, SeriesError
from replication.measure.sawtooth import Sawtooth, prominent_teeth

MINUTE_S = 60.0


@dataclass(frozen=True)
class Samples:
    """One flow's samples as they were measured, time counted from the first of them.

    Attributes
    ----------
    time_s, cwnd_segments, ssthresh_segments
        Arrays of one length in the order of time; ssthresh is NaN where it is not set.
    """

    time_s: FloatArray
    cwnd_segments: FloatArray
    ssthresh_segments: FloatArray

    @classmethod
    def of(
        cls,
        time_s: npt.ArrayLike,
        cwnd_segments: npt.ArrayLike,
        ssthresh_segments: npt.ArrayLike,
        until_s: float = np.inf,
    ) -> Samples:
        """Sort samples by time and leave out those without a window or after `until_s`.

        Raises
        ------
        SeriesError
            There are fewer than two samples left.
        """
        time, window, threshold = (
            np.asarray(values, dtype=float) for values in (time_s, cwnd_segments, ssthresh_segments)
        )
        order = np.argsort(time, kind="stable")
        order = order[np.isfinite(window[order]) & (time[order] <= until_s + 1e-9)]
        if order.size < 2:
            raise SeriesError("a window needs at least two samples to be compared")
        return cls(time[order] - time[order[0]], window[order], threshold[order])

    @property
    def interval_s(self) -> float:
        """Median time between samples."""
        return float(np.median(np.diff(self.time_s)))

    @property
    def span_s(self) -> float:
        """Time from the first to the last sample."""
        return float(self.time_s[-1])

    @property
    def has_threshold(self) -> bool:
        """Whether the slow-start threshold is ever set."""
        return bool(np.isfinite(self.ssthresh_segments).any())

    def on_grid(self, interval_s: float, span_s: float) -> Window:
        """Return the samples on a regular grid from 0 to `span_s`."""
        grid = np.arange(0.0, span_s + 1e-9, interval_s)
        place = np.searchsorted(self.time_s, grid + 1e-9, side="right") - 1
        return Window(grid, self.cwnd_segments[place], self.ssthresh_segments[place])


@dataclass(frozen=True)
class Window(CwndSeries):
    """A congestion window on a regular grid of times."""

    @cached_property
    def sawtooth(self) -> Sawtooth:
        """The prominent teeth after start-up."""
        return prominent_teeth(self.time_s[self.steady], self.steady_cwnd)

    def grid_mean(self) -> float:
        """Return the mean over the grid after start-up, in segments."""
        return float(self.steady_cwnd.mean())

    def reductions_per_minute(self) -> float:
        """Return the window reductions per minute of the span."""
        return MINUTE_S * self.reductions() / float(self.time_s[-1])

    def start_up_share(self) -> float:
        """Return the share of the span that start-up takes."""
        return float(self._starting.mean())

    @property
    def _starting(self) -> npt.NDArray[np.bool_]:
        size, end = self.cwnd_segments.size, self.start_up_end
        return np.arange(size) < (size if end is None else end)

    def slow_start_share(self) -> float:
        """Return the share of the span in slow start, by the threshold."""
        known = np.isfinite(self.ssthresh_segments)
        slow = np.where(known, self.cwnd_segments < self.ssthresh_segments, self._starting)
        return float(slow.mean())

    def distance(self, other: Window) -> float:
        """Return the Wasserstein distance to another window after start-up, in segments."""
        return float(wasserstein_distance(self.steady_cwnd, other.steady_cwnd))


#: What is read off a single window: metric to (unit, function).
FIGURES: dict[str, tuple[str, Callable[[Window], float]]] = {
    "sawtooth_period": ("s", lambda window: window.sawtooth.period_s),
    "sawtooth_height": ("segments", lambda window: window.sawtooth.height_segments),
    "cwnd_mean": ("segments", Window.grid_mean),
    "cwnd_peak": ("segments", Window.peak),
    "cwnd_minimum": ("segments", Window.minimum),
    "reductions_per_minute": ("1/min", Window.reductions_per_minute),
    "slow_start_share": ("1", Window.slow_start_share),
}
DISTANCE = "cwnd_distance"
#: Names of the metrics for people.
LABELS = {
    "sawtooth_period": "Sawtooth, period",
    "sawtooth_height": "Sawtooth, height",
    "cwnd_mean": "Window, time average",
    "cwnd_peak": "Window, peak",
    "cwnd_minimum": "Window, minimum",
    "reductions_per_minute": "Window reductions",
    "slow_start_share": "Share of time in slow start",
    DISTANCE: "Wasserstein distance",
}
