"""Statistics behind verdicts: intervals, groups, ranks, fairness."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

CONFIDENCE = 0.95
MINIMUM_REPLICATES = 3
#: Two outcomes need this many values.
TWO_OUTCOMES_FROM = 20
#: The least share of the values in either outcome, the least width of one as a share of the median,
#: and the least gap between them in widths of the wider one.
SMALLEST_GROUP, NARROWEST_GROUP, WIDEST_GAP = 0.1, 0.005, 5.0


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` replicates (NaN without any) and its 95 % interval (NaN below three)."""

    mean: float
    low: float
    high: float
    n: int


def _known(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64)
    return sample[~np.isnan(sample)]


def estimate(
    values: npt.ArrayLike, lowest: float = -math.inf, highest: float = math.inf
) -> Estimate:
    """Estimate a mean and its 95 % Student's t interval over replicates; NaN are left out.

    The interval is cut to `lowest` and `highest`, the statistic's range. With infinite values (a
    ratio to zero) it is the range of the values.
    """
    sample = _known(values)
    n = int(sample.size)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    least, most = float(sample.min()), float(sample.max())
    # The mean of equal values may differ from them in the last bit.
    mean = least if least == most else float(sample.mean())
    if n < MINIMUM_REPLICATES:
        return Estimate(mean, math.nan, math.nan, n)
    if least == most or not np.isfinite(sample).all():
        return Estimate(mean, least, most, n)
    quantile = float(scipy.special.stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    half_width = quantile * float(sample.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, max(mean - half_width, lowest), min(mean + half_width, highest), n)


def deviation_estimate(values: npt.ArrayLike) -> Estimate:
    """Estimate a standard deviation and its 95 % chi-square interval, NaN below three values."""
    sample = _known(values)
    n = int(sample.size)
    if n < MINIMUM_REPLICATES:
        return Estimate(math.nan, math.nan, math.nan, n)
    deviation = float(sample.std(ddof=1))
    ends = 2 * scipy.special.gammaincinv((n - 1) / 2, [(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2])
    low, high = (deviation * math.sqrt((n - 1) / float(end)) for end in ends)
    return Estimate(deviation, low, high, n)


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a proportion (Wilson 1927)."""
    interval = scipy.stats.binomtest(successes, trials).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def two_outcomes(
    values: npt.ArrayLike, least_width: float = 0.0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Return both groups of a sample, each rising; None for one group or fewer than 20 values.

    There are two if the largest gap between sorted values is at least five times as wide as the
    wider group, and each group has a tenth of the values. A group counts as at least `least_width`
    and 0.5 % of the median wide. The rule finds jumps such as those of phase effects (Floyd and
    Jacobson 1992); a test of unimodality (Hartigan and Hartigan 1985) needs larger samples.
    """
    sample = np.sort(np.asarray(values, dtype=float))
    sample = sample[np.isfinite(sample)]
    if sample.size < TWO_OUTCOMES_FROM:
        return None
    gaps = np.diff(sample)
    first = int(gaps.argmax()) + 1
    low, high = sample[:first], sample[first:]
    if min(low.size, high.size) < SMALLEST_GROUP * sample.size:
        return None
    floor = max(least_width, NARROWEST_GROUP * abs(float(np.median(sample))))
    width = max(float(np.ptp(low)), float(np.ptp(high)), floor)
    if gaps[first - 1] <= 0 or gaps[first - 1] < WIDEST_GAP * width:
        return None
    return low, high


def jain_index(values: npt.ArrayLike) -> float:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2) (Jain, Chiu and Hawe 1984).

    It is 1 if all values are equal and 1/n if one has everything; NaN if all are zero or NaN. Other
    NaN are left out.
    """
    sample = _known(values)
    largest = float(np.abs(sample).max()) if sample.size else 0.0
    if largest == 0.0:
        return math.nan
    scaled = sample / largest  # no overflow, and the index does not depend on the unit
    return float(scaled.sum() ** 2 / (scaled.size * (scaled**2).sum()))


def ranked(values: npt.ArrayLike, tie: float) -> npt.NDArray[np.int64]:
    """Return the rank of each value, from 0; tied values share one.

    Neighbours in size are tied if they differ by at most the share `tie` of the larger magnitude; a
    chain of ties is one rank.
    """
    sample = np.asarray(values, dtype=float)
    order = np.argsort(sample, kind="stable")
    rising = sample[order]
    apart = np.diff(rising) > tie * np.maximum(np.abs(rising[1:]), np.abs(rising[:-1]))
    ranks = np.empty(sample.size, dtype=np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(apart)]) if sample.size else []
    return ranks


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation; 0 where either side is constant (no trend)."""
    left, right = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if left.size < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0
    return float(np.corrcoef(pd.Series(left).rank(), pd.Series(right).rank())[1, 0])


def relative_deviation(reproduced: float, published: float) -> float:
    """Return (reproduced - published) / abs(published); NaN where the published value is zero."""
    if published == 0:
        return math.nan
    return (reproduced - published) / abs(published)
