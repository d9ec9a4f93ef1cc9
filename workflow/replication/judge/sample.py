"""Samples: the replicates that a verdict rests on, and what a reader must know of them.

Replicates that lack a point are left out of a statistic, so that all are taken over the same
points. They are named, and with more than a fifth of them gone nothing is `reproduced`. A mean
over replicates with two outcomes stands for neither: both are named, with their shares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from replication.judge.coverage import Coverage
from replication.judge.wording import amount, levels_in_words
from replication.measure.metric import quantity
from replication.measure.metric_label import metric_label
from replication.measure.metric_model import COUNTS
from replication.measure.statistic import two_outcomes, wilson_interval
from replication.study.claim_model import Quantity
from replication.study.study import Study

#: With a larger share of the replicates left out nothing is reproduced.
MOST_LEFT_OUT = 0.2
#: Points that a sentence names; of the others it gives the number.
_NAMED = 2


@dataclass(frozen=True)
class LeftOut:
    """Replicates that a statistic leaves out.

    Attributes
    ----------
    count, total
        How many, of how many that were designed at every point.
    sentence
        Which and why; empty where none is left out.
    """

    count: int
    total: int
    sentence: str

    @property
    def too_many(self) -> bool:
        """Whether what is left decides nothing in favour of the paper."""
        return self.count > MOST_LEFT_OUT * self.total


def left_out(
    coverage: Coverage, engine: str, quantities: Sequence[Quantity], used: Collection[int]
) -> LeftOut:
    """Return which replicates of the quantities' points on `engine` are not among those `used`.

    A replicate that the design has at some of the points only is none that was left out.
    """
    designed = set.intersection(*(coverage.replicates(engine, wanted) for wanted in quantities))
    missing = designed - set(used)
    if not missing:
        return LeftOut(0, len(designed), "")
    causes = list(
        dict.fromkeys(
            cause for wanted in quantities for cause in _causes(coverage, engine, wanted, missing)
        )
    )
    more = len(causes) - _NAMED
    named = causes[:_NAMED] + ([f"{more} more"] if more > 0 else [])
    why = "; ".join(named) or "a run without a result"
    sentence = f"{len(missing)} of {len(designed)} replicates left out: {why}."
    return LeftOut(len(missing), len(designed), sentence)


def _causes(coverage: Coverage, engine: str, wanted: Quantity, missing: set[int]) -> Iterator[str]:
    """Yield where the quantity is undefined in one of the replicates."""
    frame = _of(coverage, engine, wanted)
    undefined = frame[frame["value"].isna() & frame["replicate"].isin(missing)]
    if undefined.empty:
        return
    sent = wanted.model_copy(
        update={"metric": "packets_sent", "aggregate": "sum", "window_s": None, "links": None}
    )
    keys = [column for column in undefined if column != "value"]
    counted = undefined[keys].merge(_of(coverage, engine, sent), on=keys, how="left")
    for row in counted.to_dict("records"):
        silent = " (no packet sent)" if row.pop("value") == 0 else ""
        row.pop("replicate")
        levels = {str(factor): [str(key)] for factor, key in row.items()}
        where = levels_in_words(coverage.study, wanted.experiment, levels)
        yield f"no {metric_label(wanted.metric)} at {where}{silent}"


def _of(coverage: Coverage, engine: str, wanted: Quantity) -> pd.DataFrame:
    frame = quantity(coverage.results, wanted)
    return frame[frame["engine"] == engine].drop(columns="engine")


def outcomes(study: Study, wanted: Quantity, values: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each point at which the replicates have two outcomes.

    Parameters
    ----------
    study, wanted
        The quantity, of an experiment of the study.
    values
        replicate, factors and value on one engine.
    """
    keys = [str(column) for column in values if column not in ("replicate", "value")]
    least = 1.0 if wanted.metric in COUNTS else 0.0
    for levels, group in values.groupby(keys, sort=False) if keys else [((), values)]:
        found = two_outcomes(group["value"].to_numpy(dtype=float), least)
        if found is None:
            continue
        where = {key: [str(level)] for key, level in zip(keys, levels, strict=True)}
        total = found.low_count + found.high_count
        low, high = (100 * end for end in wilson_interval(found.high_count, total))
        at = levels_in_words(study, wanted.experiment, where)
        ends = amount(wanted, found.high_mean), amount(wanted, found.low_mean)
        yield (
            f"The {metric_label(wanted.metric)} of {at} has two outcomes: {ends[0]} "
            f"({found.high_count} of {total}, Wilson interval {low:.0f} to {high:.0f} %) and "
            f"{ends[1]} ({found.low_count} of {total})."
        )
