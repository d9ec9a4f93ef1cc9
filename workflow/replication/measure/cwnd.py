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
Minimum
    Over the samples from the end of start-up on.
Peak, reductions
    Over all samples, slow-start overshoot included.

There are two means, whose last digits differ. Samples at irregular times are weighted by the time
until the next one (`time_weighted_mean`, in which the last counts nothing); windows that are
compared on one regular grid have the plain mean of the grid (`measure.window.Window.grid_mean`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from replication.study.errors import InputError

FloatArray = npt.NDArray[np.float64]

REDUCTION_FRACTION = 0.20
REDUCTION_SEGMENTS = 2.0
RECOVERY_FRACTION = 0.20


class SeriesError(InputError):
    """A window series has too few samples, or none that is finite."""


@dataclass(frozen=True)
class CwndSeries:
    """Samples of a congestion window in the order of time; definitions in the module's docstring.

    Attributes
    ----------
    time_s, cwnd_segments, ssthresh_segments
        Arrays of one length; ssthresh is NaN, or huge, where it is not set.
    """

    time_s: FloatArray
    cwnd_segments: FloatArray
    ssthresh_segments: FloatArray

    @cached_property
    def start_up_end(self) -> int | None:
        """Index of the first sample after start-up; None if it never ends."""
        return find_start_up_end(self.cwnd_segments, self.ssthresh_segments)

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
    """Return the index of each sample at which a window reduction is first seen.

    Parameters
    ----------
    cwnd_segments
        Congestion window at successive samples.
    """
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


def find_start_up_end(cwnd_segments: npt.ArrayLike, ssthresh_segments: npt.ArrayLike) -> int | None:
    """Return the index of the first sample after start-up, or None if start-up never ends.

    Parameters
    ----------
    cwnd_segments
        Congestion window at successive samples.
    ssthresh_segments
        Slow-start threshold at the same samples; NaN or any huge number where it is not set.
    """
    cwnd = np.asarray(cwnd_segments, dtype=float)
    ssthresh = np.asarray(ssthresh_segments, dtype=float)
    # A comparison with NaN is false: an unset threshold never ends start-up.
    ends = [*np.flatnonzero(cwnd >= ssthresh)[:1], *find_reductions(cwnd)[:1]]
    return int(min(ends)) if ends else None


def time_weighted_mean(time_s: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """Return the mean of samples that each hold until the next one.

    Parameters
    ----------
    time_s
        Sample times, not decreasing.
    values
        Samples; those that are NaN are left out.
    """
    time, samples = np.asarray(time_s, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(samples)
    time, samples = time[known], samples[known]
    if not samples.size:
        raise SeriesError("no finite sample to take a mean of")
    held = np.diff(time)
    if held.sum() == 0:
        return float(samples.mean())
    return float(np.average(samples[:-1], weights=held))
