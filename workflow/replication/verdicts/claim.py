"""Verdicts on claims: each test of a study's claims on each engine, with interval and reason.

"How a verdict is reached" in configs/README.md has the rule, which was fixed before any run was
seen. A run whose statistic is undefined never passes. If `expect` is the value of one published
run, `verdicts.published_run` decides, and a direction may hold as for other claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import scipy

from replication.metrics.metric_model import COUNTS
from replication.metrics.statistic import estimate
from replication.study.claim_model import (
    AllTest,
    Claim,
    Condition,
    EquivalenceTest,
    NotTestable,
    PublishedRun,
    Quantity,
    RatioTest,
    SimpleTest,
    ValueTest,
    sides,
)
from replication.study.study import LEAST_REPEATS
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.bounds_check import Forced, bounds_check
from replication.verdicts.comparison import Comparison, Frames, UntestableError, compare
from replication.verdicts.congestion import compared_points
from replication.verdicts.null_check import null_check
from replication.verdicts.published_run import (
    PASSING_SHARE,
    Published,
    Ruling,
    judge_published,
)
from replication.verdicts.sample import (
    UNDEFINED,
    Coverage,
    left_out,
    outcomes,
    starved,
    starved_note,
)
from replication.verdicts.verdict_table import ClaimRow, Share
from replication.verdicts.wording import Wording, statistic_unit, wording

#: Level of the sign test for a direction.
SIGN_LEVEL = 0.05


@dataclass(frozen=True)
class Judgement(Ruling):
    """The verdict on one claim on one engine, with the statistic."""

    statistic: str = "none"
    margin: str = "none"
    observed: float = math.nan
    low: float = math.nan
    high: float = math.nan
    #: How many single runs pass; for several parts, the smallest share of any part.
    passing: Share | None = None
    #: Whether the set-up forces the claim to hold.
    cannot_fail: bool = False


def evaluate_claim(claim: Claim, coverages: Iterable[Coverage]) -> list[ClaimRow]:
    """Judge a claim on each engine; return rows of the typed table."""
    rows: list[ClaimRow] = []
    for coverage in coverages:
        if isinstance(claim.test, NotTestable):
            code = ReasonCode.PAPER_GIVES_TOO_LITTLE
            judgement = Judgement(Verdict.NOT_TESTABLE, [claim.test.reason], code)
        else:
            parts = [_judge(test, coverage) for test in claim.tests()]
            judgement = judge_parts(parts) if isinstance(claim.test, AllTest) else parts[0]
        rows.append(
            ClaimRow(
                study=coverage.study.id,
                claim=claim.id,
                quote=claim.quote,
                place=claim.place,
                engine=coverage.engine,
                setup=coverage.results.setup,
                statistic=judgement.statistic,
                observed=judgement.observed,
                low=judgement.low,
                high=judgement.high,
                margin=judgement.margin,
                runs_passing=str(judgement.passing or ""),
                counted=claim.is_counted,
                verdict=judgement.verdict,
                reason_code=judgement.reason_code,
                reason=judgement.reason,
                statistic_unit=statistic_unit(claim),
                points=coverage.points(claim.quantities()),
                quantities=[wanted.to_json() for wanted in claim.quantities()],
                reasons=judgement.reasons,
            )
        )
    return rows


def judge_parts(parts: list[Judgement]) -> Judgement:
    """Combine the judgements of a claim's parts; the worst verdict of a part decides.

    A part that cannot fail does not count, unless none can.
    """
    total = len(parts)
    forced = sum(part.cannot_fail for part in parts)
    judged = [part for part in parts if not part.cannot_fail] or parts
    verdicts = [part.verdict for part in judged]
    worst_first = (
        Verdict.IMPOSSIBLE,
        Verdict.NOT_REPRODUCED,
        Verdict.NOT_TESTABLE,
        Verdict.DIRECTION_ONLY,
    )
    verdict = next((word for word in worst_first if word in verdicts), Verdict.REPRODUCED)
    decided = verdict != Verdict.NOT_TESTABLE
    reproduced = verdicts.count(Verdict.REPRODUCED)
    testable = len(judged) - verdicts.count(Verdict.NOT_TESTABLE)
    counted = _counted(verdicts)
    if 0 < forced < total:
        fail = "part that cannot fail is" if forced == 1 else "parts that cannot fail are"
        counted += f" {forced} {fail} not counted."
    # Parts often share a reason.
    numbers: dict[str, list[str]] = {}
    for number, part in enumerate(parts, start=1):
        numbers.setdefault(part.reason, []).append(str(number))
    reasons = [f"({', '.join(of)}) {reason}" for reason, of in numbers.items()]
    passing = [part.passing for part in judged if part.passing and decided]
    codes = [part.reason_code for part in judged if part.reason_code and not decided]
    return Judgement(
        statistic="share of the parts that are reproduced",
        margin={1: "the part", 2: "both parts"}.get(len(judged), f"all {len(judged)} parts"),
        verdict=verdict,
        reasons=[counted, *reasons],
        reason_code=next(iter(codes), ""),
        observed=reproduced / testable if decided else math.nan,
        passing=min(passing, key=lambda share: share.part / share.whole, default=None),
        cannot_fail=forced == total,
    )


def _counted(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the parts that count are reproduced, as a sentence."""
    reproduced = verdicts.count(Verdict.REPRODUCED)
    if len(verdicts) > 1:
        are = "is" if reproduced == 1 else "are"
        return f"{reproduced} of {len(verdicts)} parts {are} reproduced."
    if verdicts == [Verdict.NOT_TESTABLE]:
        return "The one part that counts cannot be tested."
    return f"The one part that counts is {'' if reproduced else 'not '}reproduced."


def _judge(test: SimpleTest, coverage: Coverage) -> Judgement:
    study, engine = coverage.study, coverage.engine
    expect = test.expect
    compared = sides(test)
    words = wording(study, test)

    def untestable(why: str, code: ReasonCode) -> Judgement:
        margin = words.condition(expect)
        return Judgement(Verdict.NOT_TESTABLE, [why], code, None, words.statistic, margin)

    congested = compared_points(coverage, test)
    if congested.too_few:
        why = f"{congested.why} They could with more flows, a larger window or a smaller buffer."
        return untestable(why, ReasonCode.ALTERNATIVES_CANNOT_DIFFER)
    measured = [congested.of(coverage.values(wanted)) for wanted in compared]
    defined = [values.dropna(subset="value") for values in measured]
    try:
        for wanted, values in zip(compared, defined, strict=True):
            if values.empty:
                raise UntestableError(coverage.no_value(wanted))
        comparison = compare(study, test, defined)
    except UntestableError as error:
        return untestable(f"Not testable on {engine}: {error}", coverage.lack(compared))
    if isinstance(expect, PublishedRun):
        judgement = _judge_run(coverage, test, expect, comparison, words)
    else:
        judgement = judge_statistic(test, comparison, words)
    missing = left_out(coverage, compared, comparison.values.index)
    notes = [
        f"{congested.why} These are left out." if congested.left_out else "",
        missing.sentence,
        *sorted(set(_notes(coverage, compared, measured))),
        starved_note(starved(coverage.results, engine, compared)),
    ]
    if missing.too_many and judgement.verdict == Verdict.REPRODUCED:
        judgement = replace(judgement, verdict=Verdict.DIRECTION_ONLY)
    forced = bounds_check(coverage, test, congested, words)
    if forced is None and judgement.verdict == Verdict.REPRODUCED:
        forced = _cannot_fail(coverage, test, words)
    if forced is not None:
        judgement = _forced(judgement, forced)
    return replace(judgement, reasons=judgement.reasons + [note for note in notes if note])


def _cannot_fail(coverage: Coverage, test: SimpleTest, words: Wording) -> Forced | None:
    """Return that a reproduced test cannot fail, by the null check; None if it can."""

    def judge(substitute: SimpleTest, frames: Frames) -> bool | None:
        try:
            comparison = compare(coverage.study, substitute, frames)
        except UntestableError:
            return None
        return judge_statistic(substitute, comparison, words).verdict == Verdict.REPRODUCED

    why = null_check(coverage, test, judge)
    return Forced(True, why) if why else None


def _forced(judgement: Judgement, forced: Forced) -> Judgement:
    """Return a judgement whose verdict the set-up forces."""
    code = ReasonCode.SETUP_FORCES_IT if forced.verdict == Verdict.NOT_TESTABLE else ""
    return replace(
        judgement,
        verdict=forced.verdict,
        reason_code=code,
        reasons=[forced.reason, *judgement.reasons],
        passing=None,
        cannot_fail=forced.holds,
    )


def _notes(
    coverage: Coverage, compared: list[Quantity], measured: list[pd.DataFrame]
) -> Iterator[str]:
    for wanted, values in zip(compared, measured, strict=True):
        yield from outcomes(coverage.study, wanted, values)
        yield from coverage.notes(wanted)
    if count := sum(int(values["value"].isna().sum()) for values in measured):
        why = "".join({UNDEFINED.get(wanted.metric, "") for wanted in compared})
        are = "value is" if count == 1 else "values are"
        yield f"{count} undefined {are} left out{why}."


def judge_statistic(test: SimpleTest, comparison: Comparison, words: Wording) -> Judgement:
    """Judge a statistic by the rule for claims, with the value of a published run as a bound."""
    expect, direction = test.expect, test.direction
    if isinstance(expect, PublishedRun):
        expect = Condition(at_least=expect.published)
    statistic = estimate(comparison.values, comparison.lowest, comparison.highest)
    total = len(comparison.values)
    passing = Share(sum(expect.holds(value) for value in comparison.values.dropna()), total)
    # A single run has no interval.
    has_interval = not math.isnan(statistic.low)
    decisive = [statistic.mean]
    if has_interval and isinstance(test, RatioTest | ValueTest | EquivalenceTest):
        decisive += [statistic.low, statistic.high]
    led = _led(comparison.values, direction or expect, words)
    verdict = Verdict.DIRECTION_ONLY if led else Verdict.NOT_REPRODUCED
    enough = statistic.n > 0 and passing.part >= PASSING_SHARE * total
    if enough and all(expect.holds(value) for value in decisive):
        verdict = Verdict.REPRODUCED
    needed = words.condition(expect, comparison.points)
    spread = ""
    if statistic.n:
        ends = words.interval(statistic.low, statistic.high)
        interval = f"95 % interval {ends}; " if has_interval else ""
        passes = f"passes in {passing} {words.sample}{'s' if total > 1 else ''}"
        undefined = total - statistic.n
        gaps = f"; undefined in {undefined} of them" if undefined else ""
        spread = f" ({interval}{passes}{gaps})"
        if direction:
            needed += f" (direction: {words.condition(direction, comparison.points)})"
    reasons = [f"{_finding(comparison, statistic.mean, words)}{spread}; the claim needs {needed}."]
    if verdict == Verdict.DIRECTION_ONLY and total < LEAST_REPEATS:
        reasons.append(f"The direction rests on {_runs(total)} only.")
    return Judgement(
        statistic=words.statistic,
        margin=words.condition(expect),
        verdict=verdict,
        reasons=reasons,
        observed=statistic.mean,
        low=statistic.low,
        high=statistic.high,
        passing=passing,
    )


def _judge_run(
    coverage: Coverage,
    test: SimpleTest,
    expect: PublishedRun,
    comparison: Comparison,
    words: Wording,
) -> Judgement:
    """Judge a statistic against its value in one published run."""
    values = comparison.values.dropna()
    measured = judge_statistic(test, comparison, words)
    if values.empty:
        return measured
    counts = isinstance(test, ValueTest) and test.of.metric in COUNTS
    published = Published(expect.published, 0.0, expect.factor, counts)
    ruling = judge_published(published, values, coverage.fingerprints(sides(test)), words.value)
    verdict = ruling.verdict
    near = sum(published.is_near(value) for value in values)
    has_direction = test.direction is not None and _led(values, test.direction, words)
    if verdict == Verdict.NOT_REPRODUCED and has_direction:
        verdict = Verdict.DIRECTION_ONLY
    return replace(
        measured,
        margin=words.condition(expect),
        verdict=verdict,
        reasons=[f"{_finding(comparison, measured.observed, words)}.", *ruling.reasons],
        reason_code=ruling.reason_code,
        passing=Share(near, len(comparison.values)),
    )


def _led(values: pd.Series[float], direction: Condition, words: Wording) -> bool:
    """Return whether a direction holds in more runs than chance predicts."""

    def leads(value: float) -> bool:
        beyond_half = value > 0.5 if direction.at_least is not None else value < 0.5
        return direction.holds(value) and (beyond_half or not words.is_share)

    holds = sum(leads(value) for value in values)
    if len(values) < LEAST_REPEATS:
        # One run where nothing is random, or a run of a quick tier or of a search.
        return 0 < len(values) == holds
    return float(scipy.special.bdtrc(holds - 1, len(values), 0.5)) <= SIGN_LEVEL


def _finding(comparison: Comparison, mean: float, words: Wording) -> str:
    value = words.value(mean, comparison.points)
    if math.isnan(mean):
        value = f"undefined in {_runs(len(comparison.values))}"
    elif words.is_share:
        return f"{words.statistic}: {value}"
    over = f" over {comparison.points} point{'s' if comparison.points != 1 else ''}"
    return f"{words.statistic}: {value}{over}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count > 1 else ''}"
