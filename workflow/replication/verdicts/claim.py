"""Verdicts on claims: each test of a study's claims, on each engine, with interval and reason.

The rule, fixed before any run is looked at:

- `reproduced`: the statistic's mean over replicates satisfies `expect` and so does, with three
  replicates or more, its whole 95 % interval;
- `direction only`: not so, but the mean satisfies `direction` (or `expect`, where no direction is
  given: the mean is right and its spread is not);
- `not reproduced`: anything else, a statistic that is undefined included;
- `not testable`: the paper gives too little, or this engine ran none of the points of a side.

A statistic that is undefined in some replicates (a crossover that does not occur) rules out
`reproduced`, and `direction only` unless it is defined in most.
Where `expect` is a published value (`study.claim_model.AmongReplicates`), its rank among the
replicates takes the place of mean and interval (`metrics.statistic.predictive_p`).
Replicates that lack a point are left out; more than a fifth of them rules out `reproduced`.
A claim of several parts is reproduced if all are, not reproduced if any is not, and else not
testable if any part is not; `direction only` is what remains.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from replication.metrics.metric import quantity
from replication.metrics.metric_model import metric_label
from replication.metrics.results import Results
from replication.metrics.statistic import (
    Estimate,
    estimate,
    least_p,
    predictive_p,
    wilson_interval,
)
from replication.study.claim_model import (
    AllTest,
    AmongReplicates,
    Claim,
    Condition,
    EquivalenceTest,
    NotTestable,
    Quantity,
    SimpleTest,
    sides,
)
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.comparison import (
    Comparison,
    UntestableError,
    compare,
)
from replication.verdicts.sample import Coverage, left_out, outcomes, same_runs, vary
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import Wording, statistic_unit, wording


@dataclass(frozen=True)
class Judgement:
    """One claim on one engine: the last columns of claims.csv, and the reason in its parts.

    `finding` says what was found, without spread and expectation; `reasons` are sentences.
    """

    statistic: str
    observed: float
    low: float
    high: float
    margin: str
    verdict: Verdict
    finding: str
    reasons: list[str]

    @property
    def reason(self) -> str:
        """The reason as one text."""
        return " ".join(self.reasons)


def evaluate_claim(study: Study, claim: Claim, results: Results) -> list[Judged]:
    """Judge a claim of the study on every engine of the design; rows of the typed table."""
    rows: list[Judged] = []
    measurements = _Measurements(study, results)
    for engine in results.engines:
        judgement = _judge_test(measurements, claim, engine)
        rows.append(
            {
                "study": study.id,
                "claim": claim.id,
                "quote": claim.quote,
                "place": claim.place,
                "engine": engine,
                **judgement.__dict__,
                "reason": judgement.reason,
                "statistic_unit": statistic_unit(claim),
                "quantities": [wanted.model_dump_json() for wanted in claim.quantities()],
                "points": measurements.coverage.points(engine, claim.quantities()),
            }
        )
    return rows


class _Measurements:
    """Looks quantities up once for all engines, and remembers what was looked at."""

    def __init__(self, study: Study, results: Results) -> None:
        self.study = study
        self.results = results
        self.coverage = Coverage(study, results)
        self._frames: dict[str, pd.DataFrame] = {}
        self._looked_up: dict[tuple[str, str], tuple[Quantity, pd.DataFrame]] = {}

    def look_up(self, engine: str, side: str, wanted: Quantity) -> pd.DataFrame:
        """Return replicate, factors, value on `engine`; values that are undefined are left out."""
        if side not in self._frames:
            self._frames[side] = quantity(self.results, wanted)
        frame = self._frames[side]
        ours = frame[frame["engine"] == engine]
        self._looked_up[engine, side] = wanted, ours.drop(columns="engine")
        defined = ours[ours["value"].notna()]
        if defined.empty:
            window = wanted.window_s
            span = f" from {window[0]:g} to {window[1]:g} s" if window else ""
            none = f"no run gives a {metric_label(wanted.metric)}{span}."
            raise UntestableError(" ".join([none, *self.coverage.notes(engine, wanted)]))
        return defined.drop(columns="engine")

    def notes(self, engine: str, prefix: str) -> set[str]:
        """Return what is to be said of the values of the sides that begin with `prefix`."""
        sides = [
            looked_up
            for (where, side), looked_up in self._looked_up.items()
            if where == engine and side.startswith(prefix)
        ]
        found = {said for side in sides for said in outcomes(self.study, *side)}
        found |= {" ".join(self.coverage.notes(engine, wanted)) for wanted, _ in sides}
        count = sum(int(values["value"].isna().sum()) for _, values in sides)
        if count:
            found.add(f"{count} undefined value{'s' if count > 1 else ''} left out.")
        return found - {""}

    def distinct(
        self, engine: str, prefix: str, replicates: Collection[int]
    ) -> list[tuple[float, ...]]:
        """Return all that was measured for the sides that begin with `prefix`, by replicate."""
        values: dict[int, list[float]] = {number: [] for number in replicates}
        for (where, side), (_, frame) in self._looked_up.items():
            if where == engine and side.startswith(prefix):
                for number, value in zip(frame["replicate"], frame["value"], strict=True):
                    values.setdefault(int(number), []).append(float(value))
        return [tuple(values[number]) for number in replicates]


def _judge_test(measurements: _Measurements, claim: Claim, engine: str) -> Judgement:
    test = claim.test
    if isinstance(test, NotTestable):
        return _untestable("none", "none", test.reason)
    if not isinstance(test, AllTest):
        return _judge(measurements, test, engine, "")
    parts = [
        _judge(measurements, part, engine, f"part {number} ")
        for number, part in enumerate(test.parts, start=1)
    ]
    return judge_parts(parts)


def judge_parts(parts: list[Judgement]) -> Judgement:
    """Combine the judgements of the parts of a claim; the rule is in the module's docstring."""
    verdicts = [part.verdict for part in parts]
    reproduced = verdicts.count(Verdict.REPRODUCED)
    testable = len(parts) - verdicts.count(Verdict.NOT_TESTABLE)
    counted = f"{reproduced} of {len(parts)} parts reproduced."
    return Judgement(
        statistic="share of the parts that are reproduced",
        observed=reproduced / testable if testable else math.nan,
        low=math.nan,
        high=math.nan,
        margin=f"all {len(parts)} parts",
        verdict=combined(verdicts),
        finding=" ".join([counted, *_told(parts)]),
        reasons=[counted, *(f"({n}) {part.reason}" for n, part in enumerate(parts, start=1))],
    )


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a claim whose parts have these."""
    worst_first = (Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE, Verdict.DIRECTION_ONLY)
    return next((verdict for verdict in worst_first if verdict in verdicts), Verdict.REPRODUCED)


def _told(parts: list[Judgement]) -> Iterator[str]:
    """Yield what was found of the parts up to the first that could be tested."""
    for number, part in enumerate(parts, start=1):
        yield f"({number}) {part.finding}"
        if part.verdict != Verdict.NOT_TESTABLE:
            return


def _judge(measurements: _Measurements, test: SimpleTest, engine: str, prefix: str) -> Judgement:
    expect, direction = conditions(test)
    words = wording(measurements.study, test)
    try:
        comparison = compare(
            measurements.study,
            test,
            lambda side, wanted: measurements.look_up(engine, prefix + side, wanted),
        )
    except UntestableError as error:
        return _untestable(
            words.statistic, words.asked(expect), f"Not testable on {engine}: {error}"
        )
    if isinstance(expect, AmongReplicates):
        runs = measurements.distinct(engine, prefix, comparison.values.index)
        judgement = judge_rank(comparison, expect, direction, words, runs)
    else:
        judgement = judge_statistic(comparison, expect, direction, words)
    gone = left_out(measurements.coverage, engine, sides(test), comparison.values.index)
    verdict = judgement.verdict
    if gone.too_many and verdict == Verdict.REPRODUCED:
        verdict = Verdict.DIRECTION_ONLY
    notes = [*([gone.sentence] if gone.count else []), *sorted(measurements.notes(engine, prefix))]
    return replace(judgement, verdict=verdict, reasons=[*judgement.reasons, *notes])


def judge_statistic(
    comparison: Comparison, expect: Condition, direction: Condition | None, words: Wording
) -> Judgement:
    """Apply the verdict rule of the module's docstring to a statistic."""
    found = estimate(comparison.values, comparison.lowest, comparison.highest)
    undefined = len(comparison.values) - found.n
    points = _counted(comparison, words)
    finding = _finding(comparison, found, undefined, words)
    spread = _spread(comparison, found, undefined, expect, words)
    less = f" (direction: {words.asked(direction, points)})" if direction and found.n else ""
    return Judgement(
        words.statistic,
        found.mean,
        found.low,
        found.high,
        words.asked(expect),
        _verdict(found, undefined, expect, direction),
        finding + (f"{spread}." if not found.has_interval else "."),
        [f"{finding}{spread}; asked for: {words.asked(expect, points)}{less}."],
    )


def judge_rank(
    comparison: Comparison,
    expect: AmongReplicates,
    direction: Condition | None,
    words: Wording,
    runs: Sequence[Hashable],
) -> Judgement:
    """Judge a published value of a statistic by its rank among the replicates'.

    `runs` is what was measured in each replicate: replicates that repeat others are none.
    """
    values = comparison.values.dropna()
    found = estimate(values, comparison.lowest, comparison.highest)
    if least_p(found.n) > expect.level:
        few = f"{_replicates(found.n)} are too few for a rank."
        return _untestable(words.statistic, words.asked(expect), few)
    if not vary(runs):
        return _untestable(words.statistic, words.asked(expect), same_runs(runs))
    p = predictive_p(values, expect.published)
    verdict = Verdict.REPRODUCED if p > expect.level else Verdict.NOT_REPRODUCED
    if verdict == Verdict.NOT_REPRODUCED and direction and direction.holds(found.mean):
        verdict = Verdict.DIRECTION_ONLY
    finding = _finding(comparison, found, len(comparison.values) - found.n, words)
    less = f" (direction: {words.asked(direction)})" if direction else ""
    ends = words.interval(float(values.min()), float(values.max()))
    reason = (
        f"{finding}, {ends} in {_replicates(found.n)}; the published "
        f"{words.value(expect.published)} has p = {p:.3g}; asked for: {words.asked(expect)}{less}."
    )
    asked = words.asked(expect)
    return Judgement(
        words.statistic, found.mean, found.low, found.high, asked, verdict, f"{finding}.", [reason]
    )


def _verdict(
    found: Estimate, undefined: int, expect: Condition, direction: Condition | None
) -> Verdict:
    if found.n <= undefined:
        return Verdict.NOT_REPRODUCED
    ends = (found.low, found.high) if found.has_interval else ()
    if not undefined and all(expect.holds(value) for value in (found.mean, *ends)):
        return Verdict.REPRODUCED
    is_right = (direction or expect).holds(found.mean)
    return Verdict.DIRECTION_ONLY if is_right else Verdict.NOT_REPRODUCED


def _finding(comparison: Comparison, found: Estimate, undefined: int, words: Wording) -> str:
    if not found.n:
        return f"{words.statistic}: undefined in {_replicates(undefined)}{_over(comparison)}"
    # A share of points names their number itself.
    over = "" if words.counts == "points" else _over(comparison)
    return f"{words.statistic}: {words.value(found.mean, _counted(comparison, words))}{over}"


def _over(comparison: Comparison) -> str:
    return f" over {comparison.points} point{'s' if comparison.points != 1 else ''}"


def _counted(comparison: Comparison, words: Wording) -> int:
    """Return how many there are of what a statistic is a share of; 0 if that is not known."""
    return comparison.points if words.counts == "points" else 0


def _spread(
    comparison: Comparison, found: Estimate, undefined: int, expect: Condition, words: Wording
) -> str:
    if not found.n:
        return ""
    total = found.n + undefined
    spread = _replicates(total)
    if found.has_interval:
        met = sum(expect.holds(value) for value in comparison.values.dropna())
        ends = words.interval(found.low, found.high)
        spread = f"95 % interval {ends}; {met} of {spread} meet it"
        if 0 < met < total:
            low, high = wilson_interval(met, total)
            spread += f", Wilson interval {100 * low:.0f} to {100 * high:.0f} %"
    gaps = f"; undefined in {undefined} of them" if undefined else ""
    return f" ({spread}{gaps})"


def _replicates(count: int) -> str:
    return f"{count} replicate{'s' if count > 1 else ''}"


def _untestable(statistic: str, margin: str, reason: str) -> Judgement:
    nan, finding = math.nan, f"{reason.rstrip('.')}."
    return Judgement(statistic, nan, nan, nan, margin, Verdict.NOT_TESTABLE, finding, [reason])


def conditions(test: SimpleTest) -> tuple[Condition | AmongReplicates, Condition | None]:
    """Return what a test expects of its statistic, and what counts as the right direction."""
    if not isinstance(test, EquivalenceTest):
        return test.expect, test.direction
    wider = test.direction_margin
    return Condition(at_most=test.margin), None if wider is None else Condition(at_most=wider)
