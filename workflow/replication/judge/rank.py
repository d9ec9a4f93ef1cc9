"""Predictive ranks: whether a published run could be one of our replicates.

One run of something that varies has chance in it, and so have ours. The published value and the
replicates are put in one sample; how far each lies from the sample's median is its score, and p is
the share of all ways to choose as many values as were published whose scores sum to no less.
That is exact if the published runs are exchangeable with the replicates, and two-sided.

The numbers of one table are judged together (Benjamini and Hochberg 1995, J. R. Stat. Soc. B
57:289): of those outside, at most the stated share is expected to be there by chance. One run
gives several numbers of a table, whose ranks rise and fall together; the rule holds for such
dependence (Benjamini and Yekutieli 2001, Ann. Stat. 29:1165).

A test that could not fail is none: replicates too few for any value to be outside, or of which
more than a tenth repeat another, make it `not testable`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.measure.cell_map import MappedCell

#: The least share of replicates that must differ from all others' results.
LEAST_DISTINCT = 0.9


@dataclass(frozen=True)
class RankFinding:
    """Where a published number stands among the replicates.

    Attributes
    ----------
    p, p_adjusted
        Two-sided, and adjusted for the numbers of the table; NaN where there is no test.
    inside
        Whether the number could be one of ours.
    why_not
        Why the test decides nothing; empty if it does.
    sentences
        What the reason says of it.
    """

    p: float = math.nan
    p_adjusted: float = math.nan
    inside: bool = False
    why_not: str = ""
    sentences: tuple[str, ...] = ()


def predictive_p(replicates: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """Return p of one or two published values among replicates; see the module's docstring."""
    ours = np.asarray(replicates, dtype=float)
    theirs = np.atleast_1d(np.asarray(published, dtype=float))
    pooled = np.concatenate([ours, theirs])
    scores = np.abs(pooled - np.median(pooled))
    reached = scores[ours.size :].sum() * (1 - 1e-12)
    if theirs.size == 1:
        return float((scores >= reached).mean())
    rising = np.sort(scores)
    # For each value, those after it that reach the sum together with it.
    first = np.searchsorted(rising, reached - rising)
    after = np.arange(1, rising.size + 1)
    pairs = (rising.size - np.maximum(first, after)).sum()
    return float(pairs / math.comb(rising.size, 2))


def least_p(replicates: int, published: int = 1) -> float:
    """Return the least p that so many values can have."""
    return 1 / math.comb(replicates + published, published)


def adjusted(p: Sequence[float]) -> list[float]:
    """Return p adjusted by Benjamini and Hochberg: at or below q, the number is outside at q."""
    values = np.asarray(p, dtype=float)
    falling = np.argsort(-values, kind="stable")
    ranks = np.arange(values.size, 0, -1)
    found = np.empty(values.size)
    found[falling] = np.minimum.accumulate(values[falling] * values.size / ranks)
    return [float(value) for value in found]


def vary(results: Sequence[Hashable]) -> bool:
    """Return whether nine in ten of the replicates' results differ from all others."""
    return len(set(results)) >= LEAST_DISTINCT * len(results)


def same_runs(results: Sequence[Hashable]) -> str:
    """Return what to say where replicates do not vary."""
    return f"{len(results)} replicates give {len(set(results))} different results: no replicates."


def judge_ranks(
    cells: Sequence[MappedCell], samples: Mapping[tuple[str, str, str], pd.Series[float]]
) -> dict[tuple[str, str, str], RankFinding]:
    """Judge the numbers of one table, or of tables of one set-up, on one engine.

    Parameters
    ----------
    cells
        The numbers to judge, all by rank; those of a row and column are runs of one set-up.
    samples
        Each number's key to one value per replicate.
    """
    items: dict[tuple[str, str], list[MappedCell]] = {}
    for cell in cells:
        items.setdefault((cell.row, cell.column), []).append(cell)
    if not items:
        return {}
    rounded = {
        name: _rounded(samples[members[0].key], 2 * members[0].half_ulp)
        for name, members in items.items()
    }
    why_not = _hollow(rounded, items)
    if why_not:
        return {cell.key: RankFinding(why_not=why_not) for cell in cells}
    found = [
        predictive_p(rounded[name], [cell.value for cell in members])
        for name, members in items.items()
    ]
    findings: dict[tuple[str, str, str], RankFinding] = {}
    count = min(sample.size for sample in rounded.values())
    for (name, members), p, p_adjusted in zip(items.items(), found, adjusted(found), strict=True):
        limit = _false_discovery(members[0])
        sentences = (
            f"Rank among {rounded[name].size} replicates, two-sided: p = {p:.3g}, over the "
            f"{len(items)} numbers of the table {p_adjusted:.3g}; outside at {limit:g} or below.",
            *_blind(count, len(items), limit),
        )
        findings |= {
            cell.key: RankFinding(p, p_adjusted, p_adjusted > limit, "", sentences)
            for cell in members
        }
    return findings


def _false_discovery(cell: MappedCell) -> float:
    rank = cell.cell.tolerance.rank
    assert rank is not None  # only numbers that are judged by rank come here
    return rank.false_discovery


def _rounded(sample: pd.Series[float], unit: float) -> pd.Series[float]:
    """Return values as the paper would print them, so that what is printed alike is a tie."""
    return (sample / unit).round() * unit if unit > 0 else sample


def _hollow(
    samples: Mapping[tuple[str, str], pd.Series[float]],
    items: Mapping[tuple[str, str], Sequence[MappedCell]],
) -> str:
    """Return why ranks of these samples decide nothing; empty if they do."""
    fewest = min(sample.size for sample in samples.values())
    limit = min(_false_discovery(members[0]) for members in items.values())
    if least_p(fewest) > limit:
        needed = math.ceil(1 / limit - 1e-9) - 1
        return f"{fewest} replicates cannot put any value outside: a rank takes {needed}."
    table = pd.DataFrame({str(name): sample for name, sample in samples.items()})
    results = [tuple(row) for row in table.fillna(math.inf).to_numpy()]
    return "" if vary(results) else same_runs(results)


def _blind(replicates: int, numbers: int, limit: float) -> tuple[str, ...]:
    """Return how many numbers beyond all replicates it takes to see any, if more than one."""
    needed = math.ceil(least_p(replicates) * numbers / limit - 1e-9)
    if needed <= 1:
        return ()
    return (f"Fewer than {needed} of {numbers} numbers beyond all replicates would not be seen.",)
