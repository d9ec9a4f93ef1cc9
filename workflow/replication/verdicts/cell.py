"""Verdicts on published cells: each number of a table against the runs it stands for.

A cell is `reproduced` if the mean over replicates lies within the preset tolerance of the
published value widened by half its last printed digit. That is all that can be asked: the papers
print no variance, so equality cannot be tested. Of a printed standard deviation, that of the
replicates takes the mean's place. A value that the audit finds to break a physical bound is
`impossible`; one whose points were not run is `not testable`, and so is one that is inside with
more than a fifth of the replicates left out.

Where the tolerance is a rank, the published value has to be one that the replicates could be
(`metrics.statistic.predictive_p`). The numbers of one table are judged together (Benjamini and
Hochberg 1995, J. R. Stat. Soc. B 57:289): of those outside, at most the stated share is expected
to be there by chance. One run gives several numbers of a table, whose ranks rise and fall
together; the rule holds for such dependence (Benjamini and Yekutieli 2001, Ann. Stat. 29:1165).
A test that could not fail is none: replicates too few for any value to be outside, or of which
more than a tenth repeat another, make it `not testable`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from replication.metrics.cell_map import MappedCell
from replication.metrics.metric import quantity
from replication.metrics.metric_model import COUNTS, display_unit
from replication.metrics.results import Results
from replication.metrics.statistic import (
    MINIMUM_REPLICATES,
    Estimate,
    adjusted,
    deviation_estimate,
    estimate,
    least_p,
    predictive_p,
    relative_deviation,
)
from replication.study.study import Study
from replication.study.table_model import Tolerance
from replication.study.verdict import Verdict
from replication.verdicts.comparison import UntestableError, complete
from replication.verdicts.sample import Coverage, left_out, outcomes, same_runs, vary
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import amount


def evaluate_cells(
    cells: list[MappedCell],
    study: Study,
    results: Results,
    impossible: Mapping[tuple[str, str, str], str],
) -> Iterator[Judged]:
    """Judge every mapped cell on every engine, as rows of the typed table.

    `impossible` has the reasons for the values that the audit finds impossible, by table, row and
    column.
    """
    coverage = Coverage(study, results)
    ranks = {
        engine: _ranks(study, cells, coverage, engine, impossible) for engine in results.engines
    }
    for cell in cells:
        shown = _shown(cell)
        for engine in results.engines:
            ours = _values(results, cell, engine)
            means = replicate_means(ours)
            values = means.to_numpy(dtype=float)
            found = deviation_estimate(values) if cell.is_spread else estimate(values)
            gone = left_out(coverage, engine, [cell.quantity], means.index)
            why_not = untestable(coverage, engine, cell, found.n) or (
                gone.sentence if gone.too_many else ""
            )
            notes = [
                *([gone.sentence] if gone.count and not gone.too_many else []),
                *outcomes(study, cell.quantity, ours),
                *coverage.notes(engine, cell.quantity),
            ]
            broken = impossible.get(cell.key, "")
            rank = ranks[engine].get(cell.key)
            yield {
                **judge_cell(study.id, cell, engine, found, why_not, broken, notes, rank),
                **shown,
                "p": rank.p if rank else math.nan,
                "p_adjusted": rank.p_adjusted if rank else math.nan,
                "points": coverage.points(engine, [cell.quantity]),
            }


def _values(results: Results, cell: MappedCell, engine: str) -> pd.DataFrame:
    values = quantity(results, cell.quantity)
    return values[values["engine"] == engine].drop(columns="engine")


def _ranks(
    study: Study,
    cells: Sequence[MappedCell],
    coverage: Coverage,
    engine: str,
    impossible: Collection[tuple[str, str, str]],
) -> dict[tuple[str, str, str], RankFinding]:
    """Judge what is judged by rank, and can be judged, table by table."""
    groups: dict[str, list[MappedCell]] = {}
    samples = {}
    group_of = {table.id: table.run_of or table.id for table in study.tables}
    for cell in cells:
        if cell.cell.tolerance.rank is None or cell.key in impossible:
            continue
        sample = replicate_means(_values(coverage.results, cell, engine))
        if not untestable(coverage, engine, cell, len(sample)):
            samples[cell.key] = sample
            groups.setdefault(group_of[cell.table], []).append(cell)
    return {
        key: finding
        for group in groups.values()
        for key, finding in judge_ranks(group, samples).items()
    }


def replicate_means(values: pd.DataFrame) -> pd.Series[float]:
    """Return the mean over a cell's points in each replicate that has all of them.

    `values` has replicate, factors and value; values that are NaN count as missing.
    """
    known = values.dropna(subset="value")
    try:
        means: pd.Series[float] = complete(known).groupby("replicate")["value"].mean()
    except UntestableError:
        return pd.Series(dtype=float)
    return means


def untestable(
    coverage: Coverage, engine: str, cell: MappedCell, n: int, replicate: int | None = None
) -> str:
    """Return why a cell with `n` values cannot be tested on what was run; empty if it can."""
    if cell.not_comparable:
        return cell.not_comparable
    if cell.is_spread and n < MINIMUM_REPLICATES:
        return f"a standard deviation takes {MINIMUM_REPLICATES} replicates; there are {n}."
    if not n:
        return f"no run gives {cell.quantity.metric}."
    if cell.quantity.metric in COUNTS:
        short, full = coverage.shortened(engine, cell.quantity, replicate)
        if short < full:
            return f"a count over {short:g} s says nothing of {full:g} s."
    return ""


def _shown(cell: MappedCell) -> Judged:
    """Return what of a row is the same on every engine and no column of cells.csv."""
    unit, factor = display_unit(cell.unit)
    return {
        "row_label": cell.row_label,
        "column_label": cell.column_label,
        "display_unit": unit,
        "display_factor": factor,
        "accepted_margin": half_width(cell.cell.tolerance, cell.value) + cell.half_ulp,
        # Charts draw it beside single runs, and no single run has a spread.
        "quantities": [] if cell.is_spread else [cell.quantity.model_dump_json()],
    }


def judge_cell(
    study: str,
    cell: MappedCell,
    engine: str,
    found: Estimate,
    why_not: str = "",
    impossible: str = "",
    notes: Sequence[str] = (),
    rank: RankFinding | None = None,
) -> Judged:
    """Return the columns of cells.csv for one cell on one engine, and the reason in sentences.

    `found` has n = 0 where nothing was run, `why_not` and `impossible` are empty where runs decide
    and the value can be, `notes` say what was not run, and `rank` where the value stands.
    """
    margin = half_width(cell.cell.tolerance, cell.value)
    low, high = cell.band
    ranked = cell.cell.tolerance.rank is not None
    inside = found.n > 0 and low - margin <= found.mean <= high + margin
    if ranked and not impossible:
        inside = rank is not None and rank.inside
        why_not = why_not or (rank.why_not if rank else "a rank takes many replicates.")
    is_decided = not math.isnan(found.mean) and not (ranked and (why_not or impossible))
    verdict = Verdict.REPRODUCED if inside else Verdict.NOT_REPRODUCED
    if why_not or not found.n:
        verdict = Verdict.NOT_TESTABLE
    if impossible:
        verdict = Verdict.IMPOSSIBLE
    reasons = [impossible] if impossible else []
    if why_not:
        # Notes on runs that lack are left out where other runs gave a value.
        reasons += [f"Not testable: {why_not}", *([] if found.n else notes)]
    else:
        sentences = rank.sentences if rank else _deviation(cell, found, margin) if found.n else []
        reasons += [*sentences, *notes]
    return {
        "study": study,
        "table": cell.table,
        "row": cell.row,
        "column": cell.column,
        "engine": engine,
        "unit": cell.unit,
        "published": cell.value,
        "published_half_ulp": cell.half_ulp,
        "reproduced_mean": found.mean,
        "reproduced_low": found.low,
        "reproduced_high": found.high,
        "n": found.n,
        "relative_deviation": relative_deviation(found.mean, cell.value),
        "inside": inside if is_decided else None,
        "verdict": verdict,
        "reason": " ".join(reasons),
        "reasons": reasons,
    }


def half_width(tolerance: Tolerance, value: float) -> float:
    """Return the tolerance in the unit of the published `value`; NaN for a rank, which has none."""
    if tolerance.rank is not None:
        return math.nan
    if tolerance.absolute is not None:
        return tolerance.absolute
    assert tolerance.relative is not None  # the model demands one of the two
    return tolerance.relative * abs(value)


def _deviation(cell: MappedCell, found: Estimate, margin: float) -> list[str]:
    tolerance, off = cell.cell.tolerance, found.mean - cell.value
    size, allowed = amount(cell.quantity, off), amount(cell.quantity, margin)
    if tolerance.relative is not None:
        allowed = f"{100 * tolerance.relative:g} %"
        if cell.value:
            size = f"{100 * relative_deviation(found.mean, cell.value):.1f} %".replace("-", "−")
    return [
        f"Deviation {'+' if off > 0 else ''}{size}, tolerance {allowed} and half the last printed "
        "digit.",
        "No spread of the published value is given: equality cannot be tested.",
    ]


@dataclass(frozen=True)
class RankFinding:
    """Where a published number stands among the replicates.

    `p` is two-sided, `p_adjusted` for the numbers of the table, both NaN where there is no test;
    `inside` says whether the number could be one of ours, `why_not` why the test decides nothing.
    """

    p: float = math.nan
    p_adjusted: float = math.nan
    inside: bool = False
    why_not: str = ""
    sentences: tuple[str, ...] = ()


def judge_ranks(
    cells: Sequence[MappedCell], samples: Mapping[tuple[str, str, str], pd.Series[float]]
) -> dict[tuple[str, str, str], RankFinding]:
    """Judge by rank the numbers of one table, or of tables of one set-up, on one engine.

    Those of a row and column are runs of one set-up; `samples` has one value per replicate.
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
