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
A claim of several parts is reproduced if all are, not reproduced if any is not, and else not
testable if any part is not; `direction only` is what remains.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from replication.judge.comparison import (
    Comparison,
    UntestableError,
    compare,
    narrow,
)
from replication.judge.coverage import Coverage
from replication.measure.metric import quantity
from replication.measure.metric_model import METRICS
from replication.measure.results import Results
from replication.measure.statistic import Estimate, estimate, wilson_interval
from replication.study.claim_model import (
    AllTest,
    Claim,
    Condition,
    CrossoverTest,
    EquivalenceTest,
    NotTestable,
    OrderingTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    TrendTest,
    ValueTest,
)
from replication.study.study import Study

REPRODUCED = "reproduced"
DIRECTION_ONLY = "direction only"
NOT_REPRODUCED = "not reproduced"
NOT_TESTABLE = "not testable"

EVIDENCE_COLUMNS = ("claim", "side", "engine", "replicate", "factors", "value")


@dataclass(frozen=True)
class Judgement:
    """One claim on one engine: the last columns of claims.csv."""

    statistic: str
    observed: float
    low: float
    high: float
    margin: str
    verdict: str
    reason: str


def evaluate_claim(
    study: Study, claim: Claim, results: Results
) -> tuple[list[dict[str, object]], pd.DataFrame]:
    """Judge a claim on every engine of the design.

    Parameters
    ----------
    study, claim
        The claim is one of the study's.
    results
        What was run.

    Returns
    -------
    rows
        One for each engine, with the columns of claims.csv.
    evidence
        The values the verdicts rest on: claim, side (left, right, of, order n, or part n and one
        of these), engine, replicate, factors (JSON) and value.
    """
    rows: list[dict[str, object]] = []
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
            }
        )
    return rows, measurements.evidence(claim.id)


class _Measurements:
    """Looks quantities up once for all engines, and remembers what was looked at."""

    def __init__(self, study: Study, results: Results) -> None:
        self.study = study
        self.results = results
        self.coverage = Coverage(study, results)
        self._frames: dict[str, pd.DataFrame] = {}
        self._undefined: dict[tuple[str, str], int] = {}

    def look_up(self, engine: str, side: str, wanted: Quantity) -> pd.DataFrame:
        """Return replicate, factors, value on `engine`; values that are undefined are left out."""
        if side not in self._frames:
            self._frames[side] = quantity(self.results, wanted)
        frame = self._frames[side]
        ours = frame[frame["engine"] == engine]
        defined = ours[ours["value"].notna()]
        self._undefined[engine, side] = len(ours) - len(defined)
        if defined.empty:
            window = wanted.window_s
            span = f" from {window[0]:g} to {window[1]:g} s" if window else ""
            note = self.coverage.note(engine, wanted)
            raise UntestableError(f"no run gives {wanted.metric}{span}. {note}".strip())
        return defined.drop(columns="engine")

    def left_out(self, engine: str, prefix: str) -> str:
        """Return how many values of the sides that begin with `prefix` are undefined."""
        count = sum(
            number
            for (where, side), number in self._undefined.items()
            if where == engine and side.startswith(prefix)
        )
        return f"{count} undefined value{'s' if count > 1 else ''} left out." if count else ""

    def evidence(self, claim: str) -> pd.DataFrame:
        """Return the tidy values of every side that was looked up."""
        tables = []
        for side, frame in self._frames.items():
            factors = frame.drop(columns=["engine", "replicate", "value"]).to_dict("records")
            table = frame[["engine", "replicate", "value"]].assign(
                claim=claim,
                side=side,
                factors=[json.dumps(record, sort_keys=True) for record in factors],
            )
            tables.append(table[list(EVIDENCE_COLUMNS)])
        if not tables:
            return pd.DataFrame(columns=list(EVIDENCE_COLUMNS))
        return pd.concat(tables, ignore_index=True)


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
    for verdict in (NOT_REPRODUCED, NOT_TESTABLE, DIRECTION_ONLY, REPRODUCED):
        if verdict in verdicts:
            break
    reproduced = verdicts.count(REPRODUCED)
    testable = len(parts) - verdicts.count(NOT_TESTABLE)
    details = " ".join(f"({n}) {part.reason}" for n, part in enumerate(parts, start=1))
    return Judgement(
        statistic="share of the parts that are reproduced",
        observed=reproduced / testable if testable else math.nan,
        low=math.nan,
        high=math.nan,
        margin=f"all {len(parts)} parts",
        verdict=verdict,
        reason=f"{reproduced} of {len(parts)} parts reproduced. {details}",
    )


def _judge(measurements: _Measurements, test: SimpleTest, engine: str, prefix: str) -> Judgement:
    expect, direction = conditions(test)
    text = describe(test)
    try:
        comparison = compare(
            measurements.study,
            test,
            lambda side, wanted: measurements.look_up(engine, prefix + side, wanted),
        )
    except UntestableError as error:
        return _untestable(text, str(expect), f"Not testable on {engine}: {error}")
    judgement = judge_statistic(comparison, expect, direction, text)
    notes = {measurements.coverage.note(engine, wanted) for wanted in _sides(test)}
    notes |= {measurements.left_out(engine, prefix)}
    return replace(judgement, reason=" ".join([judgement.reason, *sorted(notes - {""})]))


def judge_statistic(
    comparison: Comparison, expect: Condition, direction: Condition | None, text: str
) -> Judgement:
    """Apply the verdict rule of the module's docstring to a statistic.

    Parameters
    ----------
    comparison
        The statistic for each replicate.
    expect, direction
        What is expected, and what still counts as the right direction.
    text
        Name of the statistic.
    """
    values = comparison.values
    found = estimate(values, comparison.lowest, comparison.highest)
    undefined = len(values) - found.n
    verdict = _verdict(found, undefined, expect, direction)
    return Judgement(
        statistic=text,
        observed=found.mean,
        low=found.low,
        high=found.high,
        margin=str(expect),
        verdict=verdict,
        reason=_reason(comparison, found, undefined, expect, direction, text),
    )


def _verdict(
    found: Estimate, undefined: int, expect: Condition, direction: Condition | None
) -> str:
    if found.n <= undefined:
        return NOT_REPRODUCED
    ends = (found.low, found.high) if found.has_interval else ()
    if not undefined and all(expect.holds(value) for value in (found.mean, *ends)):
        return REPRODUCED
    return DIRECTION_ONLY if (direction or expect).holds(found.mean) else NOT_REPRODUCED


def _reason(
    comparison: Comparison,
    found: Estimate,
    undefined: int,
    expect: Condition,
    direction: Condition | None,
    text: str,
) -> str:
    total = found.n + undefined
    replicates = f"{total} replicate{'s' if total > 1 else ''}"
    points = f"{comparison.points} point{'s' if comparison.points != 1 else ''}"
    if not found.n:
        return f"The {text} is undefined in {replicates} over {points}; expected {expect}."
    spread = replicates
    if found.has_interval:
        met = sum(expect.holds(value) for value in comparison.values.dropna())
        spread = f"95 % interval {found.low:.4g} to {found.high:.4g}; {met} of {replicates} meet it"
        if 0 < met < total:
            low, high = wilson_interval(met, total)
            spread += f", Wilson interval {100 * low:.0f} to {100 * high:.0f} %"
    gaps = f"; undefined in {undefined} of them" if undefined else ""
    less = f", direction {direction}" if direction else ""
    return (
        f"The {text} is {found.mean:.4g} over {points} ({spread}{gaps}); expected {expect}{less}."
    )


def _untestable(statistic: str, margin: str, reason: str) -> Judgement:
    nan = math.nan
    return Judgement(statistic, nan, nan, nan, margin, NOT_TESTABLE, reason)


def conditions(test: SimpleTest) -> tuple[Condition, Condition | None]:
    """Return what a test expects of its statistic, and what counts as the right direction."""
    if not isinstance(test, EquivalenceTest):
        return test.expect, test.direction
    wider = test.direction_margin
    return Condition(at_most=test.margin), None if wider is None else Condition(at_most=wider)


def _sides(test: SimpleTest) -> Iterator[Quantity]:
    if isinstance(test, OrderingTest):
        yield from (narrow(test.of, item) for item in test.order)
    elif isinstance(test, TrendTest | ValueTest):
        yield test.of
    else:
        yield from (test.left, test.right)


def describe(test: SimpleTest) -> str:
    """Return the name of a test's statistic, for people."""
    if isinstance(test, RatioTest):
        how = test.reduce.replace("_", " ").replace("ratio of means", "ratio of the means")
        how = how if "ratio" in how else f"{how} ratio"
        return f"{how} of {name(test.left)} to {name(test.right)}"
    if isinstance(test, EquivalenceTest):
        return f"{test.reduce} relative difference of {name(test.left)} from {name(test.right)}"
    if isinstance(test, ShareTest):
        factor = "" if test.factor == 1 else f"{test.factor:g} times "
        return f"share of points with {name(test.left)} {test.relation} {factor}{name(test.right)}"
    if isinstance(test, TrendTest):
        which = "worst" if test.worst else "mean"
        return f"{which} rank correlation of {name(test.of)} with {test.over}"
    if isinstance(test, CrossoverTest):
        return f"{test.over} at which {name(test.left)} and {name(test.right)} cross"
    if isinstance(test, OrderingTest):
        order = " > ".join(_levels(item) for item in test.order)
        return f"rank agreement of {name(test.of)} with the order {order}"
    return f"{test.reduce} of {name(test.of)}"


def name(wanted: Quantity) -> str:
    """Return a quantity in words: metric, flows, levels, window."""
    flows = wanted.flows if isinstance(wanted.flows, str) else ", ".join(wanted.flows)
    parts = [f"{wanted.aggregate} over {flows}"]
    source = METRICS[wanted.metric].source
    if source == "queue":
        parts = []
    elif source == "fairness" or (not isinstance(wanted.flows, str) and len(wanted.flows) == 1):
        parts = [flows]
    if wanted.where:
        parts.append(_levels(wanted.where))
    if wanted.window_s is not None:
        parts.append(f"{wanted.window_s[0]:g} to {wanted.window_s[1]:g} s")
    return f"{wanted.metric} [{'; '.join(parts)}]" if parts else wanted.metric


def _levels(where: dict[str, str | list[str]]) -> str:
    pairs = []
    for factor, levels in where.items():
        keys = levels if isinstance(levels, str) else "|".join(levels)
        pairs.append(f"{factor}={keys}")
    return " ".join(pairs)
