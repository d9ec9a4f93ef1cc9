"""Sawtooth of a congestion window: its teeth, by either of two definitions.

By reductions (`reduction_teeth`): from a window reduction (`measure.cwnd`) to the next. A tooth
counts as soon as the window has fallen. Count and depth are features of a flow (`measure.feature`).

By prominence (`prominent_teeth`): a tooth is a local maximum whose topographic prominence is at
least two segments and at least 20 % of the maximum itself: on both sides the window goes down that
far before it goes higher. The bounds are those of a reduction, but what rises again after a shallow
dip is one tooth. The peak detection is SciPy's ``find_peaks``; of a flat top, and of equal tops
without such a fall between them, the first sample counts. Period and height compare a published
trace with ours (`measure.window`):

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

from replication.measure.cwnd import (
    REDUCTION_FRACTION,
    REDUCTION_SEGMENTS,
    FloatArray,
    find_reductions,
)

#: Segments a sample that decide between equal tops; windows are read in whole segments.
_TIE_SEGMENTS = 1e-9
#: A fall of exactly the bound counts despite rounding and ties.
_SLACK_SEGMENTS = 1e-5


@dataclass(frozen=True)
class Sawtooth:
    """The prominent teeth of one window.

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


def prominent_teeth(time_s: npt.ArrayLike, cwnd_segments: npt.ArrayLike) -> Sawtooth:
    """Return the sawtooth of a window by prominence; see the module's docstring.

    Parameters
    ----------
    time_s
        Sample times, ascending.
    cwnd_segments
        Congestion window at those times.
    """
    time = np.asarray(time_s, dtype=float)
    cwnd = np.asarray(cwnd_segments, dtype=float)
    # Were the tie not broken, each ripple between two equal tops would make a tooth of both.
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


def reduction_teeth(window: FloatArray) -> list[tuple[float, float, tuple[int, int] | None]]:
    """Return peak before, trough after and, except for the last, the rise to the next peak."""
    found = find_reductions(window)
    teeth: list[tuple[float, float, tuple[int, int] | None]] = []
    start = 0
    for number, index in enumerate(found):
        peak = float(window[start:index].max())
        is_last = number + 1 == len(found)
        stop = window.size if is_last else found[number + 1]
        if is_last:
            trough = index + _valley(window[index:stop])
            teeth.append((peak, float(window[trough]), None))
        else:
            top = index + int(window[index:stop].argmax())
            trough = index + int(window[index : top + 1].argmin())
            teeth.append((peak, float(window[trough]), (trough, top)))
        start = trough
    return teeth


def _valley(window: FloatArray) -> int:
    """Return the index of the first local minimum."""
    rises = np.flatnonzero(np.diff(window) > 0)
    stop = int(rises[0]) + 1 if rises.size else window.size
    return int(window[:stop].argmin())
