"""Verdicts on claims: each test of a study's claims, on each engine, with interval and reason.

The rule, fixed before any run is looked at:

- `reproduced`: the statistic's mean over replicates satisfies `expect`, and so do at least 80 % of
  the runs on their own (of fewer than five all). Of a ratio, a value and an equivalence over five
  runs or more the whole 95 % interval has to as well;
- `direction only`: not so, but `direction` (or `expect`, where no direction is given) holds in more
  runs than chance gives (one-sided sign test at 5 %; of fewer than five runs in all). A share has a
  direction only on its side of half;
- `not reproduced`: anything else; a run whose statistic is undefined passes nothing;
- `not testable`: the paper gives too little, this engine ran none of the points of a side, or the
  alternatives that are compared cannot differ for lack of congestion (`verdicts.congestion`).

Where `expect` is the value of one published run, `verdicts.published_run` decides, and a direction
may hold as above. Replicates that lack a point are left out; more than a fifth of them rules out
`reproduced`. A claim of several parts is reproduced if all are, not reproduced if any is not, and
else not testable if any part is not; `direction only` is what remains.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import scipy

from replication.metrics.metric_model import COUNTS, metric_label
from replication.metrics.results import Results
from replication.metrics.statistic import Estimate, estimate
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
from replication.study.study import Study
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.comparison import Comparison, UntestableError, compare
from replication.verdicts.congestion import Places, compared_places
from replication.verdicts.counts import Share
from replication.verdicts.published_run import Published, fingerprints, judge_published
from replication.verdicts.sample import (
    UNDEFINED,
    Coverage,
    left_out,
    outcomes,
    starved,
    starved_note,
    values_on,
)
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import Wording, statistic_unit, wording

#: What share of the runs must pass on their own, and of how few all.
PASSING_SHARE, FEW_RUNS = 0.8, 5
#: Level of the sign test for a direction.
SIGN_LEVEL = 0.05
#: Tests whose interval decides as well.
INTERVAL_DECIDES = (RatioTest, ValueTest, EquivalenceTest)


@dataclass(frozen=True)
class Judgement:
    """One claim on one engine: the last columns of claims.csv, and the reason in its parts."""

    statistic: str
    observed: float
    low: float
    high: float
    margin: str
    verdict: Verdict
    #: What was found, without spread and expectation.
    finding: str
    #: Sentences.
    reasons: list[str]
    reason_code: ReasonCode | str = ""
    #: How many runs pass on their own; of several parts that with the least share.
    passing: Share | None = None

    @property
    def reason(self) -> str:
        """The reason as one text."""
        return " ".join(self.reasons)


def evaluate_claim(study: Study, claim: Claim, results: Results) -> list[Judged]:
    """Judge a claim of the study on every engine of the design; rows of the typed table."""
    rows: list[Judged] = []
    coverage = Coverage(study, results)
    for engine in results.engines:
        judgement = _judge_claim(study, claim, coverage, engine)
        rows.append(
            {
                **{"study": study.id, "claim": claim.id, "engine": engine},
                **{"quote": claim.quote, "place": claim.place, "counted": claim.is_counted},
                **judgement.__dict__,
                "reason": judgement.reason,
                "runs_passing": str(judgement.passing or ""),
                "statistic_unit": statistic_unit(claim),
                "quantities": [wanted.model_dump_json() for wanted in claim.quantities()],
                "points": coverage.points(engine, claim.quantities()),
            }
        )
    return rows


class _Measurements:
    """Looks quantities up for the tests of one claim, and remembers what was looked at."""

    def __init__(self, study: Study, results: Results, coverage: Coverage, engine: str) -> None:
        self.study = study
        self.results = results
        self.coverage = coverage
        self.engine = engine
        self._looked_up: dict[str, tuple[Quantity, pd.DataFrame]] = {}

    def look_up(self, side: str, wanted: Quantity, places: Places | None = None) -> pd.DataFrame:
        """Return replicate, factors, value; values that are undefined are left out.

        Of a comparison of alternatives those at places with congestion.
        """
        ours = values_on(self.results, self.engine, wanted)
        if places is not None:
            ours = places.congested(ours)
        self._looked_up[side] = wanted, ours
        defined = ours[ours["value"].notna()]
        if defined.empty:
            window = wanted.window_s
            span = f" from {window[0]:g} to {window[1]:g} s" if window else ""
            why = UNDEFINED.get(wanted.metric, "")
            none = f"no run gives a {metric_label(wanted.metric)}{span}{why}."
            raise UntestableError(" ".join([none, *self.coverage.notes(self.engine, wanted)]))
        return defined

    def notes(self) -> set[str]:
        """Return what is to be said of the values that were looked up."""
        sides = self._looked_up.values()
        found = {said for side in sides for said in outcomes(self.study, *side)}
        found |= {n for wanted, _ in sides for n in self.coverage.notes(self.engine, wanted)}
        count = sum(int(values["value"].isna().sum()) for _, values in sides)
        if count:
            why = "".join({UNDEFINED.get(wanted.metric, "") for wanted, _ in sides})
            found.add(f"{count} undefined value{'s' if count > 1 else ''} left out{why}.")
        return found


def _judge_claim(study: Study, claim: Claim, coverage: Coverage, engine: str) -> Judgement:
    test = claim.test
    if isinstance(test, NotTestable):
        return _untestable("none", "none", ReasonCode.PAPER_GIVES_TOO_LITTLE, test.reason)
    parts = [
        _judge(_Measurements(study, coverage.results, coverage, engine), part)
        for part in claim.tests()
    ]
    return judge_parts(parts) if isinstance(test, AllTest) else parts[0]


def judge_parts(parts: list[Judgement]) -> Judgement:
    """Combine the judgements of the parts of a claim; the rule is in the module's docstring."""
    verdicts = [part.verdict for part in parts]
    worst_first = (Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE, Verdict.DIRECTION_ONLY)
    verdict = next((word for word in worst_first if word in verdicts), Verdict.REPRODUCED)
    decided = verdict != Verdict.NOT_TESTABLE
    reproduced = verdicts.count(Verdict.REPRODUCED)
    testable = len(parts) - verdicts.count(Verdict.NOT_TESTABLE)
    counted = f"{reproduced} of {len(parts)} parts reproduced."
    # What was found is told of the parts up to the first that could be tested.
    last = next((n for n, word in enumerate(verdicts) if word != Verdict.NOT_TESTABLE), len(parts))
    told = [f"({n}) {part.finding}" for n, part in enumerate(parts[: last + 1], start=1)]
    # Parts often have one reason in common.
    numbers: dict[str, list[str]] = {}
    for number, part in enumerate(parts, start=1):
        numbers.setdefault(part.reason, []).append(str(number))
    passing = [part.passing for part in parts if part.passing and decided]
    codes = [part.reason_code for part in parts if part.reason_code and not decided]
    return Judgement(
        statistic="share of the parts that are reproduced",
        observed=reproduced / testable if decided else math.nan,
        low=math.nan,
        high=math.nan,
        margin=f"all {len(parts)} parts",
        verdict=verdict,
        finding=" ".join([counted, *told]),
        reasons=[counted, *(f"({', '.join(of)}) {reason}" for reason, of in numbers.items())],
        reason_code=next(iter(codes), ""),
        passing=min(passing, key=lambda one: one.part / one.whole, default=None),
    )


def _judge(measurements: _Measurements, test: SimpleTest) -> Judgement:
    study, results, engine = measurements.study, measurements.results, measurements.engine
    coverage, compared = measurements.coverage, sides(test)
    expect, direction = conditions(test)
    words = wording(study, test)
    places = compared_places(study, test, results, engine)
    if places is not None and places.too_few:
        why = (
            f"Congestion at only {places}. Elsewhere no packet is lost, and either the window "
            "limits every flow or the queue is empty, so the alternatives cannot differ. They "
            "could with more flows, a larger window or a smaller buffer."
        )
        return _untestable(words.statistic, words.asked(expect), ReasonCode.NO_CONGESTION, why)
    try:
        look_up = functools.partial(measurements.look_up, places=places)
        comparison = compare(study, test, look_up)
    except UntestableError as error:
        why = f"Not testable on {engine}: {error}"
        lack = coverage.lack(engine, compared)
        return _untestable(words.statistic, words.asked(expect), lack, why)
    if isinstance(expect, PublishedRun):
        runs = fingerprints(results, engine, compared, coverage.replicates(engine, compared))
        counts = all(one.metric in COUNTS for one in compared) and isinstance(test, ValueTest)
        judgement = _judge_run(comparison, expect, direction, words, runs, counts)
    else:
        decides = isinstance(test, INTERVAL_DECIDES)
        judgement = judge_statistic(comparison, expect, direction, words, decides)
    gone = left_out(coverage, engine, compared, comparison.values.index)
    verdict = judgement.verdict
    if gone.too_many and verdict == Verdict.REPRODUCED:
        verdict = Verdict.DIRECTION_ONLY
    notes = [*([gone.sentence] if gone.count else []), *sorted(measurements.notes())]
    if places is not None and places.left_out:
        notes.insert(0, f"Taken over {places}: the others have no congestion.")
    if note := starved_note(starved(results, engine, compared)):
        notes.append(note)
    return replace(judgement, verdict=verdict, reasons=[*judgement.reasons, *notes])


def judge_statistic(
    comparison: Comparison,
    expect: Condition,
    direction: Condition | None,
    words: Wording,
    interval_decides: bool = True,
) -> Judgement:
    """Apply the verdict rule of the module's docstring to a statistic."""
    found = estimate(comparison.values, comparison.lowest, comparison.highest)
    total = len(comparison.values)
    passing = Share(sum(map(expect.holds, comparison.values.dropna())), total)
    enough = passing.part == total if total < FEW_RUNS else passing.part >= PASSING_SHARE * total
    ends = (found.low, found.high) if interval_decides and found.n >= FEW_RUNS else ()
    led = _led(comparison.values, direction or expect, words)
    verdict = Verdict.DIRECTION_ONLY if led else Verdict.NOT_REPRODUCED
    if found.n and enough and all(expect.holds(value) for value in (found.mean, *ends)):
        verdict = Verdict.REPRODUCED
    finding = _finding(comparison, found, words)
    interval = f"95 % interval {words.interval(found.low, found.high)}; "
    passes = f"passes in {passing} {words.sample}{'s' if total > 1 else ''}"
    gaps = f"; undefined in {total - found.n} of them" if total > found.n else ""
    spread = f" ({interval if found.has_interval else ''}{passes}{gaps})" if found.n else ""
    points = comparison.points if words.counts == "points" else 0
    less = f" (direction: {words.asked(direction, points)})" if direction and found.n else ""
    few = []
    if verdict == Verdict.DIRECTION_ONLY and total < FEW_RUNS:
        few = [f"The direction rests on {_runs(total)} only."]
    return Judgement(
        words.statistic,
        found.mean,
        found.low,
        found.high,
        words.asked(expect),
        verdict,
        finding + ("." if found.has_interval else f"{spread}."),
        [f"{finding}{spread}; the claim needs {words.asked(expect, points)}{less}.", *few],
        passing=passing,
    )


def _judge_run(
    comparison: Comparison,
    expect: PublishedRun,
    direction: Condition | None,
    words: Wording,
    runs: Sequence[object],
    counts: bool,
) -> Judgement:
    """Judge the value of a statistic in one published run; `runs` tell ours apart."""
    values = comparison.values.dropna()
    if values.empty:
        return judge_statistic(comparison, Condition(at_least=expect.published), None, words)
    found = estimate(values, comparison.lowest, comparison.highest)
    published = Published(expect.published, 0.0, expect.factor, counts)
    ruling = judge_published(published, values, runs, words.value)
    verdict, near = ruling.verdict, sum(published.is_near(value) for value in values)
    if verdict == Verdict.NOT_REPRODUCED and direction and _led(values, direction, words):
        verdict = Verdict.DIRECTION_ONLY
    finding = f"{_finding(comparison, found, words)}."
    return Judgement(
        words.statistic,
        found.mean,
        found.low,
        found.high,
        words.asked(expect),
        verdict,
        finding,
        [finding, *ruling.sentences],
        ruling.code or "",
        Share(near, len(comparison.values)),
    )


def _led(values: pd.Series[float], direction: Condition, words: Wording) -> bool:
    """Return whether a direction holds in more runs than chance gives."""

    def leads(value: float) -> bool:
        beyond_half = value > 0.5 if direction.at_least is not None else value < 0.5
        return direction.holds(value) and (beyond_half or not words.counts)

    holds = sum(map(leads, values))
    if len(values) < FEW_RUNS:
        return 0 < len(values) == holds
    return float(scipy.stats.binom.sf(holds - 1, len(values), 0.5)) <= SIGN_LEVEL


def _finding(comparison: Comparison, found: Estimate, words: Wording) -> str:
    over = f" over {comparison.points} point{'s' if comparison.points != 1 else ''}"
    if not found.n:
        return f"{words.statistic}: undefined in {_runs(len(comparison.values))}{over}"
    if words.counts == "points":
        # A share of points names their number itself.
        return f"{words.statistic}: {words.value(found.mean, comparison.points)}"
    return f"{words.statistic}: {words.value(found.mean)}{over}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count > 1 else ''}"


def _untestable(statistic: str, margin: str, code: ReasonCode, reason: str) -> Judgement:
    nan, finding = math.nan, f"{reason.rstrip('.')}."
    return Judgement(
        statistic, nan, nan, nan, margin, Verdict.NOT_TESTABLE, finding, [reason], code
    )


def conditions(test: SimpleTest) -> tuple[Condition | PublishedRun, Condition | None]:
    """Return what a test expects of its statistic, and what counts as the right direction."""
    if not isinstance(test, EquivalenceTest):
        return test.expect, test.direction
    wider = test.direction_margin
    return Condition(at_most=test.margin), None if wider is None else Condition(at_most=wider)
