"""Sawtooth: the teeth of a congestion window, their period and height.

A tooth is a local maximum whose topographic prominence is at least two segments and at least
20 % of the maximum itself: on both sides the window goes down that far before it goes higher.
The two bounds are those of a window reduction (`measure.trace`). The peak detection is
SciPy's ``find_peaks``; of a flat top, and of equal tops without such a fall between them, the
first sample counts.

Period
    Mean time between successive peaks; unknown with fewer than two teeth.
Height
    Mean over the teeth of the peak less the lowest sample before the next peak (after the last
    tooth: before the end); unknown without a tooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import find_peaks

from replication.measure.trace import REDUCTION_FRACTION, REDUCTION_SEGMENTS

#: Segments a sample that decide between equal tops; windows are read in whole segments.
_TIE_SEGMENTS = 1e-9
#: A fall of exactly the bound counts despite rounding and ties.
_SLACK_SEGMENTS = 1e-5


@dataclass(frozen=True)
class Sawtooth:
    """The teeth of one window.

    Attributes
    ----------
    teeth
        Number of teeth.
    period_s
        Mean time between peaks; NaN with fewer than two teeth.
    height_segments
        Mean fall from a peak; NaN without a tooth.
    """

    teeth: int
    period_s: float
    height_segments: float


def find_sawtooth(time_s: npt.ArrayLike, cwnd_segments: npt.ArrayLike) -> Sawtooth:
    """Return the sawtooth of a window; definitions in the module's docstring.

    Parameters
    ----------
    time_s
        Sample times, ascending.
    cwnd_segments
        Congestion window at those times.
    """
    time = np.asarray(time_s, dtype=float)
    cwnd = np.asarray(cwnd_segments, dtype=float)
    # Without the tie each ripple between two equal tops would make a tooth of both.
    tilted = cwnd - _TIE_SEGMENTS * np.arange(cwnd.size)
    peaks, found = find_peaks(tilted, prominence=REDUCTION_SEGMENTS - _SLACK_SEGMENTS)
    peaks = peaks[found["prominences"] >= REDUCTION_FRACTION * cwnd[peaks] - _SLACK_SEGMENTS]
    ends = np.append(peaks, cwnd.size)[1:]
    falls = [cwnd[peak] - cwnd[peak:end].min() for peak, end in zip(peaks, ends, strict=True)]
    return Sawtooth(
        teeth=len(peaks),
        period_s=float(np.diff(time[peaks]).mean()) if len(peaks) > 1 else np.nan,
        height_segments=float(np.mean(falls)) if falls else np.nan,
    )
