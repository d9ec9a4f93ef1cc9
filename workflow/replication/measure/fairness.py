"""Jain's index of a run's flows over time, of either of two things.

Of each interval
    x_i is the flow's throughput in one sampling interval.
Since the start
    x_i is what the flow has received since the run's start; a common divisor, such as the time
    that has passed, cancels. Early unfairness is forgotten slowly, as the share of the past.

Both are reduced over the sampling times of a window (from, to]. The bytes since the start count
from the run's start whatever the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from replication.measure.statistic import jain_index

SINCE_START = "jain_since_start_"
#: A figure could not show a smaller growth of the index.
VISIBLE_GROWTH = 0.01
#: Sampling times are sums of intervals: a rounding error must not move a sample.
_SLACK_S = 1e-9


def fairness_values(
    metric: str,
    table: pd.DataFrame,
    run: Sequence[str],
    window_s: tuple[float, float] | None,
) -> pd.DataFrame:
    """Reduce Jain's index over time for each run.

    Parameters
    ----------
    metric
        One of the metrics whose source is "fairness".
    table
        Samples of whole runs: the columns of `run`, flow, time_s and throughput_bps.
    run
        Columns that tell runs apart.
    window_s
        (from, to]; None for the whole run.

    Returns
    -------
    pandas.DataFrame
        The columns of `run` and value.
    """
    rows = [
        (*key, _value(metric, group, window_s))
        for key, group in table.groupby(list(run), sort=True)
    ]
    return pd.DataFrame(rows, columns=[*run, "value"]).astype({"value": float})


def index_over_time(samples: pd.DataFrame, since_start: bool) -> pd.Series[float]:
    """Return Jain's index at each sampling time, in s, of one run.

    Parameters
    ----------
    samples
        flow, time_s and throughput_bps, each the mean of the interval that ends at its time.
    since_start
        Of what was received since the start, instead of each interval's throughput.
    """
    rates = samples.pivot(index="time_s", columns="flow", values="throughput_bps").astype(float)
    if since_start:
        times = rates.index.to_numpy(dtype=float)
        # A flow that has not started has received nothing.
        rates = rates.fillna(0.0).mul(np.diff(times, prepend=0.0), axis=0).cumsum()
    return rates.apply(lambda row: jain_index(row.to_numpy()), axis=1).astype(float)


def early_growth(index: pd.Series[float], window_s: tuple[float, float]) -> float:
    """Return the share of an index's growth over a window that is done in the first half of it.

    0.5 for a straight line, below for convex growth. NaN where it grows by less than
    `VISIBLE_GROWTH`.
    """
    known = index.dropna()
    if known.empty:
        return np.nan
    middle = (window_s[0] + window_s[1]) / 2
    times = np.array([window_s[0], middle, window_s[1]])
    first, half, last = np.interp(times, known.index.to_numpy(dtype=float), known.to_numpy())
    return float((half - first) / (last - first)) if last - first >= VISIBLE_GROWTH else np.nan


def _value(metric: str, samples: pd.DataFrame, window_s: tuple[float, float] | None) -> float:
    index = index_over_time(samples, metric.startswith(SINCE_START))
    times = index.index.to_numpy(dtype=float)
    low, high = window_s or (0.0, float(times.max()))
    if metric == f"{SINCE_START}early_growth":
        return early_growth(index, (low, high))
    inside = index[(times > low + _SLACK_S) & (times <= high + _SLACK_S)].dropna()
    reducers: dict[str, Callable[[pd.Series[float]], float]] = {
        "mean": lambda values: float(values.mean()),
        "minimum": lambda values: float(values.min()),
        "variation": lambda values: float(values.std(ddof=0)),
    }
    return reducers[metric.rpartition("_")[2]](inside) if not inside.empty else np.nan
