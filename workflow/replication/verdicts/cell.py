"""Verdicts on published cells: each number of a table against the runs it describes.

"Tables" and "How a verdict is reached" in configs/README.md have the rules. A printed standard
deviation is compared with that of the replicates. `verdicts.published_run` judges a number of one
published run (a tolerance with a `factor`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd
import scipy

from replication.base.model import reaches
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import COUNTS, display_unit, largest
from replication.metrics.statistic import (
    MINIMUM_REPLICATES,
    Estimate,
    deviation_estimate,
    estimate,
    relative_deviation,
)
from replication.metrics.trace_source import TABLE_PREFIX
from replication.study.published import Tolerance
from replication.study.setup import Setup
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.comparison import UntestableError, complete
from replication.verdicts.published_run import (
    PASSING_SHARE,
    Published,
    Ruling,
    judge_published,
    not_testable,
)
from replication.verdicts.sample import Coverage, left_out, outcomes
from replication.verdicts.verdict_table import CellRow, Share
from replication.verdicts.wording import amount


def evaluate_cells(
    cells: list[MappedCell],
    coverages: Sequence[Coverage],
    impossible: Mapping[tuple[str, str, str], str],
) -> Iterator[CellRow]:
    """Judge every mapped cell on each engine, as rows of the typed table.

    `impossible` has the audit's reason for each impossible value, by table, row and column.
    """
    deviations = {cell.key: cell.value for cell in cells if cell.is_spread}
    by_key = {cell.key: cell for cell in cells}

    def judge(coverage: Coverage, cell: MappedCell) -> CellRow:
        spread = cell.cell.tolerance.spread
        key = (cell.table, cell.row, spread.column if spread else "")
        deviation = deviations.get(key, math.nan)
        return _judge_on(coverage, cell, deviation, impossible.get(cell.key))

    for cell in cells:
        group = [by_key[cell.table, row, column] for row, column in cell.together]
        for coverage in coverages:
            row = judge(coverage, cell)
            if group and row.verdict == Verdict.REPRODUCED:
                others = [judge(coverage, other) for other in group if other is not cell]
                row = _together(row, others, runs_of_all(coverage, group))
            yield row


def _together(row: CellRow, others: Sequence[CellRow], runs: Share | None) -> CellRow:
    """Return the row of a reproduced number, unless the others of its sentence are not."""
    reasons = list(row.reasons)
    verdict = row.verdict
    code = row.reason_code
    worst_first = (Verdict.NOT_REPRODUCED, Verdict.IMPOSSIBLE, Verdict.NOT_TESTABLE)
    failing: list[CellRow] = []
    for word in worst_first:
        failing += [other for other in others if other.verdict == word]
    if failing:
        first = failing[0]
        verdict, code = first.verdict, first.reason_code
        what = f"{first.row_label}, {first.column_label}"
        reasons.append(f"The same sentence gives another number, which is {verdict} ({what}).")
    elif runs is not None and runs.part < PASSING_SHARE * runs.whole:
        verdict = Verdict.NOT_REPRODUCED
        reasons.append(f"All numbers of its sentence are within the tolerance in only {runs} runs.")
    return replace(
        row,
        verdict=verdict,
        reason_code=code,
        reasons=reasons,
        reason=" ".join(reasons),
    )


def runs_of_all(coverage: Coverage, group: Sequence[MappedCell]) -> Share | None:
    """Return in how many runs all numbers of a group are within their tolerances.

    None if fewer than two of them have a tolerance that a single run can meet.
    """
    passing = []
    for cell in group:
        margin = half_width(cell.cell.tolerance, cell.value)
        if not math.isnan(margin) and not cell.is_spread:
            low, high = cell.band[0] - margin, cell.band[1] + margin
            means = replicate_means(coverage.values(cell.quantity))
            passing.append(means.between(low, high))
    if len(passing) < 2:
        return None
    # A run that lacks a number does not pass.
    together = pd.concat(passing, axis=1).eq(True).all(axis=1)
    return Share(int(together.sum()), len(together))


def _judge_on(
    coverage: Coverage, cell: MappedCell, deviation: float, broken: str | None
) -> CellRow:
    """Judge a cell on an engine; `deviation` is the printed one of the published runs, or NaN."""
    wanted, tolerance = cell.quantity, cell.cell.tolerance
    measured = coverage.values(wanted)
    means = replicate_means(measured)
    sample = means.to_numpy(dtype=float)
    if cell.is_spread:
        value = deviation_estimate(sample)
    else:
        value = estimate(sample, highest=largest(wanted.metric, wanted.aggregate))
    missing = left_out(coverage, [wanted], means.index)
    ruling = Ruling(Verdict.IMPOSSIBLE, [broken]) if broken else untestable(coverage, cell, value.n)
    if ruling is None and tolerance.spread and math.isnan(deviation):
        why = "No standard deviation of the published runs is printed."
        ruling = not_testable(ReasonCode.PAPER_GIVES_TOO_LITTLE, why)
    if ruling is None and missing.too_many:
        ruling = not_testable(ReasonCode.TOO_FEW_RUNS, missing.sentence)
    if ruling is None and tolerance.factor is not None:
        ruling = judge_published(
            Published(cell.value, cell.half_ulp, tolerance.factor, wanted.metric in COUNTS),
            means,
            coverage.fingerprints([wanted]),
            lambda value: amount(wanted, value),
        )
    notes = []
    if missing.sentence and not missing.too_many:
        notes.append(missing.sentence)
    notes += outcomes(coverage.study, wanted, measured)
    notes += coverage.notes(wanted)
    if tolerance.spread:
        # The 95 % band of the difference between two means, with the printed deviation for both.
        quantile = float(scipy.special.stdtrit(tolerance.spread.runs - 1, 0.975))
        runs = 1 / tolerance.spread.runs + 1 / max(value.n, 1)
        banded = tolerance.model_copy(update={"absolute": quantile * deviation * math.sqrt(runs)})
        cell = replace(cell, cell=cell.cell.model_copy(update={"tolerance": banded}))
    row = judge_cell(coverage.study.id, cell, coverage.engine, value, ruling, notes)
    return replace(row, setup=coverage.results.setup, points=coverage.points([wanted]))


def replicate_means(values: pd.DataFrame) -> pd.Series[float]:
    """Return the mean over a cell's points in each replicate that has all of them.

    `values` has replicate, factors and value; values that are NaN count as missing.
    """
    try:
        known = complete(values.dropna(subset="value"))
    except UntestableError:
        return pd.Series(dtype=float)
    return known.groupby("replicate")["value"].mean()


def untestable(
    coverage: Coverage, cell: MappedCell, n: int, replicate: int | None = None
) -> Ruling | None:
    """Return why a cell with `n` values cannot be tested; None if it can.

    With `replicate`, only the duration of that replicate's runs counts.
    """
    wanted = cell.quantity
    if cell.not_comparable:
        return not_testable(ReasonCode.PAPER_GIVES_TOO_LITTLE, cell.not_comparable)
    if not n:
        why = f"Not testable on {coverage.engine}: {coverage.no_value(wanted)}"
        return not_testable(coverage.lack([wanted]), why)
    if cell.is_spread and n < MINIMUM_REPLICATES:
        few = f"A standard deviation takes {MINIMUM_REPLICATES} replicates; there are {n}."
        return not_testable(ReasonCode.TOO_FEW_RUNS, few)
    if wanted.metric in COUNTS:
        short, full = coverage.shortened(wanted, replicate)
        if short < full:
            shorter = f"A count over {short:g} s cannot be compared with one over {full:g} s."
            return not_testable(ReasonCode.TOO_FEW_RUNS, shorter)
    return None


def judge_cell(
    study: str,
    cell: MappedCell,
    engine: str,
    value: Estimate,
    ruling: Ruling | None = None,
    notes: Sequence[str] = (),
) -> CellRow:
    """Return a row of the typed table, without its points, for one cell on one engine.

    Our `value` has n = 0 if nothing was run. A `ruling` replaces the verdict by the tolerance;
    `notes` say what was not run.
    """
    margin = half_width(cell.cell.tolerance, cell.value)
    if ruling is None:
        low, high = cell.band
        inside = reaches(value.mean, low - margin) and reaches(high + margin, value.mean)
        verdict = Verdict.REPRODUCED if inside else Verdict.NOT_REPRODUCED
        ruling = Ruling(verdict, [*_deviation(cell, value, margin)])
    # Without a value the ruling already says what was not run.
    ruling = replace(ruling, reasons=[*ruling.reasons, *(notes if value.n else ())])
    unit, factor = display_unit(cell.unit)
    return CellRow(
        study=study,
        table=cell.table,
        row=cell.row,
        column=cell.column,
        kind="trace" if cell.table.startswith(TABLE_PREFIX) else "printed",
        engine=engine,
        setup=Setup.DEFAULTS,
        unit=cell.unit,
        published=cell.value,
        published_half_ulp=cell.half_ulp,
        printed=cell.printed,
        factor=cell.cell.factor,
        reproduced_mean=value.mean,
        reproduced_low=value.low,
        reproduced_high=value.high,
        n=value.n,
        relative_deviation=relative_deviation(value.mean, cell.value),
        verdict=ruling.verdict,
        reason_code=ruling.reason_code,
        reason=ruling.reason,
        row_label=cell.row_label,
        column_label=cell.column_label,
        display_unit=unit,
        display_factor=factor,
        accepted_margin=margin + cell.half_ulp,
        compatible=ruling.compatible,
        points=[],
        # Charts draw it with single runs, and a single run has no spread.
        quantities=[] if cell.is_spread else [cell.quantity.to_json()],
        reasons=ruling.reasons,
    )


def half_width(tolerance: Tolerance, value: float) -> float:
    """Return the tolerance in the unit of the published `value`; NaN if it is of another kind."""
    if tolerance.absolute is not None:
        return tolerance.absolute
    return math.nan if tolerance.relative is None else tolerance.relative * abs(value)


def _deviation(cell: MappedCell, value: Estimate, margin: float) -> Iterator[str]:
    tolerance, off = cell.cell.tolerance, value.mean - cell.value
    size, allowed = amount(cell.quantity, off), amount(cell.quantity, margin)
    sign = "+" if off > 0 else ""
    if tolerance.relative is not None:
        allowed = f"{100 * tolerance.relative:g} %"
        if cell.value:
            share = 100 * relative_deviation(value.mean, cell.value)
            # What is rounded to zero has no sign.
            size = "0.0 %" if abs(share) < 0.05 else f"{share:+.1f} %".replace("-", "−")
            sign = ""
    yield (
        f"Our mean deviates by {sign}{size}; the tolerance is {allowed} plus half the last printed "
        "digit."
    )
    if tolerance.spread is None:
        yield "The paper gives no spread of this value, so equality cannot be tested."
    else:
        yield (
            "The tolerance is the 95 % band of the difference between two means, from the printed "
            f"standard deviation of {tolerance.spread.runs} published runs and our {value.n}."
        )
