"""The verdict on a number of one published run: could one of our runs give it, and is it close?

"How a verdict is reached" in configs/README.md has the rule. The quantiles are those at rank
p (n + 1), interpolated (definition 6 of Hyndman and Fan 1996, Am. Stat. 50:361); a further run of
the same kind falls between them with a probability of 95 %. There is no correction for the number
of numbers, since it would make agreement easier.

Runs are independent only if what is judged varies. A value that 95 % of the runs share is
deterministic here. Then our runs say nothing of how runs differ, and every published value but this
one would be rejected. So there is no verdict, however near or far the value is; the reason has the
distance.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replication.base.model import reaches
from replication.metrics.statistic import two_outcomes
from replication.study.verdict import ReasonCode, Verdict

#: A claim, or numbers of one sentence, need this share of the runs to pass.
PASSING_SHARE = 0.8
#: The fewest runs whose central 95 % exclude any of them.
LEAST_RUNS = 99
#: The least share of runs that must differ from all others.
LEAST_DISTINCT = 0.9
#: Counts that differ by no more are within the bound.
COUNT_SLACK = 2.0
CENTRAL = (0.025, 0.975)


@dataclass(frozen=True)
class Ruling:
    """A verdict, the reasons in sentences, and its code if it is `not testable`.

    `compatible`: whether a number of one published run lies in our central 95 %; None if untested.
    """

    verdict: Verdict
    reasons: list[str]
    reason_code: ReasonCode | str = ""
    compatible: bool | None = None

    @property
    def reason(self) -> str:
        """The reasons as one text."""
        return " ".join(self.reasons)


def not_testable(code: ReasonCode, *reasons: str) -> Ruling:
    """Return that a number is not testable, and why."""
    return Ruling(Verdict.NOT_TESTABLE, list(reasons), code)


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


def judge_published(
    published: Published,
    values: npt.ArrayLike,
    runs: Sequence[Hashable],
    show: Callable[[float], str],
) -> Ruling:
    """Judge a number of one published run by our runs.

    `values` has the value of each run that has one, at least one; equal `runs` are the same run
    (`Coverage.fingerprints`); `show` formats a value.
    """
    sample = np.sort(np.asarray(values, dtype=float))
    mean, distinct = float(sample.mean()), len(set(runs))
    near = published.is_near(mean)
    bound = f"a factor of {published.factor:g}"
    bound += f", or {COUNT_SLACK:g} counts," if published.counts else ""
    distance = (
        f"Our mean of {show(mean)} is {'' if near else 'not '}within {bound} of the published "
        f"{show(published.value)}."
    )
    if len(runs) < LEAST_RUNS:
        few = f"Their spread takes {LEAST_RUNS} runs; there are {len(runs)}."
        return not_testable(ReasonCode.TOO_FEW_RUNS, few, distance)
    if distinct < LEAST_DISTINCT * len(runs):
        alike = f"The {len(runs)} runs give only {distinct} distinct results"
        alike += ", so they are not independent."
        return not_testable(ReasonCode.RUNS_DO_NOT_VARY, alike, distance)
    low, high = (float(end) for end in np.quantile(sample, CENTRAL, method="weibull"))
    if reaches(low, high):
        equal = sum(show(value) == show(low) for value in sample)
        constant = f"Deterministic here: {equal} of {len(sample)} runs give {show(low)}."
        return not_testable(ReasonCode.RUNS_DO_NOT_VARY, constant, distance)
    spread = f"95 % of {len(sample)} runs lie between {show(low)} and {show(high)}"
    if not low - published.half_ulp <= published.value <= high + published.half_ulp:
        outside = f"{spread}; the published value does not."
        return Ruling(Verdict.NOT_REPRODUCED, [outside, distance], compatible=False)
    reasons = [f"{spread}.", distance]
    if (groups := two_outcomes(sample)) is not None:
        below, above = float(groups[0][-1]), float(groups[1][0])
        if below < published.value < above:
            between = f"between {show(below)} and {show(above)}"
            reasons.insert(1, f"The published value lies {between}, where no run does.")
    if near:
        return Ruling(Verdict.REPRODUCED, reasons, compatible=True)
    return Ruling(Verdict.NOT_TESTABLE, reasons, ReasonCode.RUNS_SPREAD_TOO_WIDELY, compatible=True)
