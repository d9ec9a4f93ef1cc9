"""The verdict on a number of one published run: could it be one of our runs, and is it close?

A run of something that varies has chance in it, on both sides. The published number is *compatible*
if it lies, give or take half its last digit, between the 2.5 and 97.5 % quantiles of at least 99
independent runs of ours. The quantiles are those at rank p (n + 1), interpolated (definition 6 of
Hyndman and Fan 1996, Am. Stat. 50:361), between which a further run of the same kind falls with
95 %. It is *within the bound* if it and our mean differ by no more than the factor that the study's
file states, or two counts by no more than 2.

Both: `reproduced`. Compatible alone: our runs spread too widely to tell. Runs of which more than a
tenth send, lose and repeat just as many packets as another's are no independent ones: within the
bound they decide nothing. Everything else is `not reproduced`. There is no correction for the
number of numbers: it would make agreement easier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replication.metrics.results import Results
from replication.metrics.statistic import two_outcomes
from replication.study.claim_model import Quantity
from replication.study.model import reaches
from replication.study.verdict import ReasonCode, Verdict

#: The fewest whose central 95 % leave room for a value outside.
LEAST_RUNS = 99
#: The least share of runs that must differ from all others.
LEAST_DISTINCT = 0.9
#: Counts that differ by no more are within the bound.
COUNT_SLACK = 2.0
CENTRAL = (0.025, 0.975)
#: What tells one run from another: of each flow, as counted.
_COUNTED = ("packets_sent", "packets_dropped", "retransmissions", "timeouts")


@dataclass(frozen=True)
class Ruling:
    """A verdict, the code of one that is `not testable`, and the reason in sentences.

    `compatible` is whether a number of one published run lies in the central 95 % of ours; None
    where that was not asked.
    """

    verdict: Verdict
    code: ReasonCode | None
    sentences: tuple[str, ...]
    compatible: bool | None = None


@dataclass(frozen=True)
class Published:
    """A number of one published run, half its last digit, and the bound that goes with it."""

    value: float
    half_ulp: float
    factor: float
    counts: bool

    def is_near(self, mean: float) -> bool:
        """Return whether a mean of ours is within the bound."""
        if self.counts and abs(mean - self.value) <= COUNT_SLACK:
            return True
        low, high = sorted((abs(mean), abs(self.value)))
        return mean * self.value >= 0 and reaches(self.factor * low, high - self.half_ulp)

    def bound(self, show: Callable[[float], str]) -> str:
        """Return the bound in words."""
        or_two = f" or {COUNT_SLACK:g}" if self.counts else ""
        return f"a factor of {self.factor:g}{or_two} from the published {show(self.value)}"


def judge_published(
    published: Published,
    values: npt.ArrayLike,
    runs: Sequence[Hashable],
    show: Callable[[float], str],
) -> Ruling:
    """Judge a number of one published run by our runs; the rule is in the module's docstring.

    `values` has one for each run that has it, at least one; `runs` is what tells each run from
    others (`fingerprints`); `show` puts a value in words.
    """
    sample = np.sort(np.asarray(values, dtype=float))
    mean, distinct = float(sample.mean()), len(set(runs))
    near, bound = published.is_near(mean), published.bound(show)
    said = f"Mean {show(mean)}, {'within' if near else 'beyond'} {bound}."
    if len(runs) < LEAST_RUNS:
        few = f"{len(runs)} of the {LEAST_RUNS} runs that it takes to know their spread."
        return Ruling(Verdict.NOT_TESTABLE, ReasonCode.TOO_FEW_RUNS, (few, said))
    if distinct < LEAST_DISTINCT * len(runs):
        alike = f"The {len(runs)} runs give only {distinct} distinct results"
        sentences: tuple[str, ...] = (f"{alike}, so they are not independent.", said)
        if near:
            return Ruling(Verdict.NOT_TESTABLE, ReasonCode.RUNS_DO_NOT_VARY, sentences)
        return Ruling(Verdict.NOT_REPRODUCED, None, sentences)
    low, high = (float(end) for end in np.quantile(sample, CENTRAL, method="weibull"))
    spread = f"95 % of {len(sample)} runs lie between {show(low)} and {show(high)}"
    if not low - published.half_ulp <= published.value <= high + published.half_ulp:
        outside = (f"{spread}: it is outside.", said)
        return Ruling(Verdict.NOT_REPRODUCED, None, outside, compatible=False)
    gap = []
    if (groups := two_outcomes(sample)) is not None:
        below, above = (float(end) for end in sample[groups.low_count - 1 :][:2])
        if below < published.value < above:
            between = f"between {show(below)} and {show(above)}"
            gap = [f"No run gives a value {between}, where it lies."]
    sentences = (f"{spread}.", *gap, said)
    if near:
        return Ruling(Verdict.REPRODUCED, None, sentences, compatible=True)
    code = ReasonCode.RUNS_SPREAD_TOO_WIDELY
    return Ruling(Verdict.NOT_TESTABLE, code, sentences, compatible=True)


def fingerprints(
    results: Results, engine: str, quantities: Sequence[Quantity], replicates: Collection[int]
) -> list[Hashable]:
    """Return what each replicate's runs counted, flow by flow, at the points of the quantities.

    The same runs are independent or not in every table.
    """
    found: dict[int, list[tuple[object, ...]]] = {number: [] for number in sorted(replicates)}
    names = ["replicate", "point", "flow", *_COUNTED]
    for wanted in quantities:
        runs = results.runs(wanted.experiment, wanted.where, engine)
        rows = runs.merge(results.flows, on=["scenario", "engine"]).sort_values(["point", "flow"])
        for number, *counted in rows[names].itertuples(index=False, name=None):
            if number in found:
                found[number].append(tuple(counted))
    return [tuple(counted) for counted in found.values()]
