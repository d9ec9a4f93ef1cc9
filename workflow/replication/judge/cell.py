"""Verdicts on published cells: each number of a table against the runs it stands for.

A cell is `reproduced` if the mean over replicates lies within the preset tolerance of the
published value widened by half its last printed digit. That is all that can be asked: the papers
print no variance, so equality cannot be tested. A value that the audit finds to break a physical
bound is `impossible`; one whose points were not run is `not testable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from replication.judge.comparison import complete
from replication.judge.coverage import Coverage
from replication.measure.cell_map import MappedCell
from replication.measure.metric import quantity
from replication.measure.metric_model import COUNTS
from replication.measure.results import Results
from replication.measure.statistic import Estimate, estimate, relative_deviation
from replication.study.study import Study, Tolerance
from replication.study.verdict import Verdict


def evaluate_cells(
    cells: list[MappedCell],
    study: Study,
    results: Results,
    impossible: Mapping[tuple[str, str, str], str],
) -> Iterator[dict[str, object]]:
    """Judge every mapped cell on every engine, as rows of cells.csv.

    Parameters
    ----------
    cells
        What `map_cells` returns.
    study, results
        The study and what was run for it.
    impossible
        (table, row, column) to the reason, for values that the audit finds impossible.
    """
    coverage = Coverage(study, results)
    for cell in cells:
        values = quantity(results, cell.quantity)
        for engine in results.engines:
            ours = values[values["engine"] == engine].drop(columns="engine")
            ours = ours.dropna(subset="value")
            # A cell over several points is their mean, taken within each replicate.
            means = pd.Series(dtype=float)
            if not ours.empty:
                means = complete(ours).groupby("replicate")["value"].mean()
            found = estimate(means.to_numpy(dtype=float))
            why_not = _why_not(coverage, engine, cell, found.n > 0)
            note = coverage.note(engine, cell.quantity)
            broken = impossible.get(cell.key, "")
            yield judge_cell(study.id, cell, engine, found, why_not, broken, note)


def _why_not(coverage: Coverage, engine: str, cell: MappedCell, measured: bool) -> str:
    """Return why a cell cannot be tested; empty if it can."""
    note = coverage.note(engine, cell.quantity)
    if not measured:
        return f"no run gives {cell.quantity.metric}. {note}".strip()
    short, full = coverage.shortened(engine, cell.quantity)
    if cell.quantity.metric in COUNTS and short < full:
        return f"a count over {short:g} s says nothing of {full:g} s."
    return ""


def judge_cell(
    study: str,
    cell: MappedCell,
    engine: str,
    found: Estimate,
    why_not: str = "",
    impossible: str = "",
    note: str = "",
) -> dict[str, object]:
    """Return the row of cells.csv for one cell on one engine.

    Parameters
    ----------
    study, cell, engine
        What is judged.
    found
        Mean over replicates and interval; n = 0 where nothing was run.
    why_not
        Why what was run decides nothing, or an empty text.
    impossible
        Why the published value cannot be, or an empty text.
    note
        What was not run of the cell's points, or an empty text.
    """
    margin = half_width(cell.cell.tolerance, cell.value)
    low, high = cell.band
    inside = found.n > 0 and low - margin <= found.mean <= high + margin
    verdict = Verdict.REPRODUCED if inside else Verdict.NOT_REPRODUCED
    if not found.n or why_not:
        verdict = Verdict.NOT_TESTABLE
    if impossible:
        verdict = Verdict.IMPOSSIBLE
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
        "inside": inside if found.n else None,
        "verdict": verdict,
        "reason": " ".join(
            part
            for part in (
                impossible,
                f"Not testable: {why_not}" if why_not else "",
                _deviation(cell, found, margin) if found.n and not why_not else "",
                note if not why_not else "",
            )
            if part
        ),
    }


def half_width(tolerance: Tolerance, value: float) -> float:
    """Return the tolerance in the unit of the published `value`."""
    if tolerance.absolute is not None:
        return tolerance.absolute
    assert tolerance.relative is not None  # the model demands one of the two
    return tolerance.relative * abs(value)


def _deviation(cell: MappedCell, found: Estimate, margin: float) -> str:
    tolerance = cell.cell.tolerance
    unit = "" if cell.unit == "1" else f" {cell.unit}"
    allowed = f"{margin:g}{unit}"
    if tolerance.relative is not None:
        allowed = f"{100 * tolerance.relative:g} %"
    size = f"{found.mean - cell.value:+.4g}{unit}"
    if cell.value and tolerance.relative is not None:
        size = f"{100 * relative_deviation(found.mean, cell.value):+.1f} %"
    return (
        f"Deviation {size}, tolerance {allowed} and half the last printed digit. "
        "The paper gives no variance: equality cannot be tested."
    )
