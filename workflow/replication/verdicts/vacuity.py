"""Vacuity: whether a verdict rests on comparisons that could not have come out otherwise.

The rule, on one engine, with the idle pairs of `verdicts.pair`:

- a positive verdict (`reproduced`, `direction only`) is vacuous if without the idle pairs it is
  lower or nothing is left to judge, or if more than half of its pairs are idle and a tie would
  pass the test;
- so is one on a value other than zero that all levels of the factors which the test names have,
  within 0.5 %: nothing is told apart;
- a negative one (`not reproduced`) is vacuous if all pairs are idle, or it is higher without them;
- a claim of several parts is if any of them is and the verdict is positive, or if all that are not
  reproduced are.

A verdict that half rests on idle pairs and would stand without them is not vacuous; the evidence
says how many they are. How the paper's own data fare is the other flag of a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from replication.metrics.metric_model import METRICS, display_unit
from replication.metrics.results import Results
from replication.study.claim_model import (
    AmongReplicates,
    Condition,
    CrossoverTest,
    OrderingTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    StepsTest,
    TrendTest,
    ValueTest,
)
from replication.study.storage.table import (
    FLAG_COLUMNS,
    OWN_DATA_COLUMNS,
    VACUITY_COLUMNS,
    Row,
    read_rows,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.claim import combined, conditions, judge_rank, judge_statistic
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.pair import (
    CARRIED,
    REASONS,
    TIE,
    Frames,
    compared_pairs,
    frames_on,
    run_pressure,
)
from replication.verdicts.self_consistency import OWN_DATA
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import wording

POSITIVE = (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY)
#: Verdicts by how much they say in favour of a claim.
_RANK = {
    Verdict.NOT_TESTABLE: -1,
    Verdict.NOT_REPRODUCED: 0,
    Verdict.DIRECTION_ONLY: 1,
    Verdict.REPRODUCED: 2,
}
#: The flags of all studies, and what of them the runs of one decide.
FLAGS = "claim_flags.csv"
VACUITY = "vacuity.csv"


@dataclass(frozen=True)
class Vacuity:
    """Whether a verdict is vacuous: what was compared could not differ.

    `evidence` says how many of the pairs are idle and why; empty where none is.
    """

    verdict: Verdict
    vacuous: bool
    evidence: str


def vacuity_of_parts(parts: Sequence[Vacuity]) -> Vacuity:
    """Combine the parts of a claim; the rule is in the module's docstring."""
    if len(parts) == 1:
        return parts[0]
    verdict = combined([part.verdict for part in parts])
    if verdict in POSITIVE:
        vacuous = any(part.vacuous for part in parts)
    else:
        failed = [part.vacuous for part in parts if part.verdict == Verdict.NOT_REPRODUCED]
        vacuous = bool(failed) and all(failed)
    shown = [f"({n}) {part.evidence}" for n, part in enumerate(parts, start=1) if part.evidence]
    return Vacuity(verdict, vacuous, " ".join(shown))


def vacuity(study: Study, test: SimpleTest, frames: Frames) -> Vacuity:
    """Return whether the verdict of one test on the engine of `frames` is vacuous."""
    verdict = _verdict(study, test, frames)
    if verdict == Verdict.NOT_TESTABLE:
        return Vacuity(verdict, False, "")
    if verdict in POSITIVE and (evidence := _nothing_told_apart(test, frames)):
        return Vacuity(verdict, True, evidence)
    pairs = _over_replicates(compared_pairs(study, test, frames))
    idle = pairs["reason"] != ""
    if not idle.any():
        return Vacuity(verdict, False, "")
    without = None
    # A curve or an order is made of all its values: no point can be left out of it.
    if not isinstance(test, TrendTest | StepsTest | OrderingTest):
        without = _verdict(study, test, frames, _idle_points(pairs))
    if verdict in POSITIVE:
        hollow = float(idle.mean()) > 0.5 and _tie_passes(test)
        vacuous = hollow or (without is not None and _RANK[without] < _RANK[verdict])
    else:
        vacuous = bool(idle.all()) or (without is not None and _RANK[without] > _RANK[verdict])
    return Vacuity(verdict, vacuous, _evidence(test, pairs, without))


def _verdict(
    study: Study, test: SimpleTest, frames: Frames, without: Mapping[str, set[str]] | None = None
) -> Verdict:
    """Return the verdict of a test, without the points that are given for each of its sides."""

    def look_up(side: str, wanted: Quantity) -> pd.DataFrame:
        frame = frames(wanted)
        kept = frame[~frame["point"].isin((without or {}).get(side, set()))]
        if kept.empty:
            raise UntestableError("every point is idle.")
        return kept.drop(columns=list(CARRIED))

    try:
        comparison = compare(study, test, look_up)
    except UntestableError:
        return Verdict.NOT_TESTABLE
    expect, direction = conditions(test)
    words = wording(study, test)
    if isinstance(expect, AmongReplicates):
        # Whether the replicates vary is the official verdict's business.
        runs = range(len(comparison.values))
        return judge_rank(comparison, expect, direction, words, runs).verdict
    return judge_statistic(comparison, expect, direction, words).verdict


def _over_replicates(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return each pair once: idle if it is in most replicates, for the commonest reason."""
    points = ["point_left", "point_right"]

    def commonest(reasons: pd.Series[str]) -> str:
        idle = reasons[reasons != ""]
        return str(idle.mode().iloc[0]) if len(idle) > len(reasons) / 2 else ""

    grouped = pairs.groupby(points, sort=False)
    spans = {
        f"{name}_{end}": pd.NamedAgg(f"{name}_{end}", how)
        for name, how in (("drops", "max"), ("at_window", "min"), ("queue_packets", "max"))
        for end in ("left", "right")
    }
    return grouped.agg(reason=pd.NamedAgg("reason", commonest), **spans).reset_index()


def _idle_points(pairs: pd.DataFrame) -> dict[str, set[str]]:
    """Return the points of each side most of whose pairs are idle."""
    found = {}
    for end in ("left", "right"):
        share = (pairs["reason"] != "").groupby(pairs[f"point_{end}"]).mean()
        found[end] = set(share.index[share > 0.5])
    return {**found, "of": found["left"]}


def _tie_passes(test: SimpleTest) -> bool:
    """Return whether the test would pass, or hold in direction, if the two sides were equal."""
    if isinstance(test, CrossoverTest):
        return False
    statistic = 0.0
    if isinstance(test, RatioTest):
        statistic = 1.0
    elif isinstance(test, ShareTest):
        below, above = test.factor * (1 - test.tie), test.factor * (1 + test.tie)
        statistic = float(above < 1 if test.relation == "above" else below > 1)
    elif isinstance(test, TrendTest | StepsTest | OrderingTest | ValueTest):
        return True
    return any(bound.holds(statistic) for bound in _bounds(test))


def _bounds(test: SimpleTest) -> list[Condition]:
    return [bound for bound in conditions(test) if isinstance(bound, Condition)]


def _nothing_told_apart(test: SimpleTest, frames: Frames) -> str:
    """Return the evidence that a value is that of all levels of the factors which a test names."""
    if not isinstance(test, ValueTest) or not test.of.where:
        return ""
    named = list(test.of.where)
    every = frames(test.of.model_copy(update={"where": {}}))
    how = {"mean": "mean", "minimum": "min", "maximum": "max"}[test.reduce]
    values = every.groupby([*named, "replicate"])["value"].agg(how).groupby(named).mean()
    if len(values) == len(frames(test.of).groupby(named)):
        return ""
    low, high = float(values.min()), float(values.max())
    # A count that is zero everywhere, in spite of losses, could have been another.
    if not high:
        return ""
    if high - low > TIE * abs(high) or not any(
        bound.holds(low) and bound.holds(high) for bound in _bounds(test)
    ):
        return ""
    unit, factor = display_unit(METRICS[test.of.metric].unit)
    span = _span(factor * low, factor * high, digits=5)
    return (
        f"All {len(values)} levels of {' and '.join(named)} give it within 0.5 %: "
        f"{span}{'' if unit == '1' else f' {unit}'}."
    )


def _evidence(test: SimpleTest, pairs: pd.DataFrame, without: Verdict | None) -> str:
    """Return how many pairs are idle, why, what the runs show, and what is left without them."""
    idle = pairs[pairs["reason"] != ""]
    what = "points" if isinstance(test, ValueTest) else "compared pairs"
    counts = idle["reason"].value_counts()
    why = "; ".join(
        f"{f'{counts[key]}: ' if len(counts) > 1 else ''}{words}"
        for key, words in REASONS.items()
        if key in counts
    )
    drops = idle[["drops_left", "drops_right"]].to_numpy(dtype=float).max()
    shown = [f"{drops:.0f} drops"]
    for name, words, scale in (
        ("at_window", "at the window in {} % of samples", 100),
        ("queue_packets", "a mean queue of {} packets", 1),
    ):
        values = scale * idle[[f"{name}_left", f"{name}_right"]].to_numpy(dtype=float)
        if np.isfinite(values).any():
            shown.append(words.format(_span(np.nanmin(values), np.nanmax(values))))
    left = "" if without is None else f"; without them: {without}"
    return f"{len(idle)} of {len(pairs)} {what} could not differ ({why}): {', '.join(shown)}{left}."


def _span(low: float, high: float, digits: int = 3) -> str:
    first, last = (f"{float(f'{value:.{digits}g}'):g}" for value in (low, high))
    return first if first == last else f"{first} to {last}"


def vacuity_rows(
    study: Study, results: Results, judged: Sequence[Judged]
) -> Iterator[Mapping[str, object]]:
    """Yield whether each claim's verdict is vacuous on each engine: the rows of vacuity.csv.

    `judged` are the verdicts: where there is none, none is vacuous.
    """
    decided = {(row["claim"], row["engine"]) for row in judged if row["verdict"] in DECIDED}
    pressure = run_pressure(results)
    for engine in results.engines:
        frames = frames_on(results, pressure, engine)
        for claim in study.claims:
            tests = claim.tests() if (claim.id, engine) in decided else []
            parts = [vacuity(study, test, frames) for test in tests]
            found = vacuity_of_parts(parts) if parts else None
            yield {
                "study": study.id,
                "claim": claim.id,
                "engine": engine,
                "vacuous": found is not None and found.vacuous,
                "evidence": found.evidence if found else "",
            }


def merge_flags(evaluations: Sequence[Path], out_dir: Path) -> None:
    """Write claim_flags.csv: the flags of the studies in these folders, in the order given."""
    rows = (row for folder in evaluations for row in read_flags(folder))
    write_table(out_dir / FLAGS, rows, FLAG_COLUMNS)


def read_flags(evaluation: Path) -> list[Row]:
    """Return the flags of one study, in the columns of claim_flags.csv."""
    rows = read_rows(evaluation / OWN_DATA, OWN_DATA_COLUMNS)
    own = {row["claim"]: row["own_data"] for row in rows}
    return [
        {**row, "own_data": own[row["claim"]]}
        for row in read_rows(evaluation / VACUITY, VACUITY_COLUMNS)
    ]


def as_shown(claims: Iterable[Judged], flags: Iterable[Row]) -> list[Judged]:
    """Return claims with one verdict each: what could not differ is not testable, and why."""
    why = {
        (row["study"], row["claim"], row["engine"]): row["evidence"]
        for row in flags
        if row["vacuous"] == "true"
    }
    shown = []
    for row in claims:
        evidence = why.get((row["study"], row["claim"], row["engine"]))
        if evidence is not None:
            said = f"What is compared could not differ: {evidence}"
            reasons = [said, *row["reasons"]]
            row = row | {"verdict": Verdict.NOT_TESTABLE, "reasons": reasons}
            row["reason"] = " ".join(reasons)
        shown.append(row)
    return shown
