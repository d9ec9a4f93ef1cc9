"""Thinning of long series: fewer samples that draw the same line.

Taking every n-th sample loses the peaks that a congestion window is read for. Here time is cut into
as many bins as the chart has columns of pixels, and each bin keeps its first, last, smallest and
largest sample: the line that is drawn is the same, to the pixel (Jugel et al. 2014, "M4").
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd


def kept_samples(time: npt.ArrayLike, values: npt.ArrayLike, bins: int) -> npt.NDArray[np.int64]:
    """Return the positions of the samples to keep, ascending.

    Parameters
    ----------
    time
        Sample times, not decreasing.
    values
        Samples; NaN are left out.
    bins
        Number of equal bins of time.

    Raises
    ------
    ValueError
        There are no bins, or the two differ in length.
    """
    times, samples = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    if bins < 1 or times.shape != samples.shape or times.ndim != 1:
        raise ValueError(f"need bins >= 1 and as many times as values; got {bins} bins")
    known = np.flatnonzero(np.isfinite(samples) & np.isfinite(times))
    if known.size <= 4 * bins:
        return known
    start, end = times[known[0]], times[known[-1]]
    width = (end - start) / bins or 1.0
    bin_of = np.minimum(((times[known] - start) / width).astype(int), bins - 1)
    edges = np.flatnonzero(np.diff(bin_of)) + 1
    kept: set[int] = set()
    for members in np.split(known, edges):
        inside = samples[members]
        kept |= {
            int(members[0]),
            int(members[-1]),
            int(members[inside.argmin()]),
            int(members[inside.argmax()]),
        }
    return np.array(sorted(kept), dtype=np.int64)


def thin(frame: pd.DataFrame, value: str, by: list[str], limit: int) -> pd.DataFrame:
    """Thin each group's series so that all of them have at most about `limit` samples.

    Parameters
    ----------
    frame
        Long table of samples, with their `time_s`.
    value
        Column to keep the shape of; rows where it is NaN are left out.
    by
        Columns that tell series apart.
    limit
        Number of samples to keep in all groups together.
    """
    known = frame[frame[value].notna()].sort_values([*by, "time_s"], kind="stable")
    if len(known) <= limit or known.empty:
        return known.reset_index(drop=True)
    groups = [group for _, group in known.groupby(by, sort=False, observed=True)]
    bins = max(1, limit // (4 * len(groups)))
    parts = [
        group.iloc[kept_samples(group["time_s"].to_numpy(), group[value].to_numpy(), bins)]
        for group in groups
    ]
    return pd.concat(parts, ignore_index=True)
