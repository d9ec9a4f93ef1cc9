"""The agreement's tables: rates, pairs, contrasts and known differences, for the report and others.

What disagrees is looked at in groups: a claim, or the cells of one column of a table. Each group is
given what both engines measured at its points, and the known differences that concern its runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from replication.compare.agreement import Pair, StudyVerdicts, rates
from replication.compare.contrast import contrasts, scenarios_of, sides
from replication.compare.engine_difference import EngineDifferences, load_differences
from replication.judge.verdict_table import read_verdicts
from replication.measure.results import Results
from replication.plan.config import load_study
from replication.study.storage.table import (
    AGREEMENT_COLUMNS,
    CAUSE_COLUMNS,
    CONTRAST_COLUMNS,
    DESIGN_COLUMNS,
    PAIR_COLUMNS,
    read_rows,
    write_table,
)
from replication.study.study import Study

#: The tables by the names of their files.
TABLES = {
    "agreement.csv": AGREEMENT_COLUMNS,
    "agreement_pairs.csv": PAIR_COLUMNS,
    "agreement_contrasts.csv": CONTRAST_COLUMNS,
    "agreement_causes.csv": CAUSE_COLUMNS,
}
Rows = list[dict[str, object]]


def read_judged(root: Path, data: Path, study: str) -> StudyVerdicts:
    """Read a study's verdicts on every engine.

    Raises
    ------
    InputError
        A file is missing or malformed; the message names it and what to run.
    """
    folder = data / "evaluation" / study
    return StudyVerdicts(
        load_study(root, study),
        read_rows(data / "design" / f"{study}.csv", DESIGN_COLUMNS),
        read_verdicts(folder / "claims.parquet"),
        read_verdicts(folder / "cells.parquet"),
    )


def write_agreement(root: Path, data: Path, studies: Sequence[str]) -> None:
    """Write the tables of `TABLES` below `data` for the studies in the order given."""
    judged = [read_judged(root, data, study) for study in studies]
    pairs = [list(study.pairs()) for study in judged]
    known = load_differences(root)
    measured: Rows = []
    causes: Rows = []
    for study, ours in zip(judged, pairs, strict=True):
        groups = disagreements(ours)
        if groups:
            results = Results.load(data, study.study.id)
            measured += [row for group in groups for row in _measured(study.study, results, group)]
            causes += [
                row for group in groups for row in _causes(study.study, results, group, known)
            ]
    everything = [pair for ours in pairs for pair in ours]
    tables: dict[str, Rows] = {
        "agreement.csv": [rate.row() for rate in rates(judged, everything)],
        "agreement_pairs.csv": [pair.row() for pair in everything],
        "agreement_contrasts.csv": measured,
        "agreement_causes.csv": causes,
    }
    for name, columns in TABLES.items():
        write_table(data / name, tables[name], columns)


def disagreements(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Return the pairs that disagree, those that are explained together in a list each."""
    groups: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in pairs:
        if pair.compared and not pair.agrees:
            key = pair.kind, pair.group, pair.left, pair.right
            groups.setdefault(key, []).append(pair)
    return list(groups.values())


def _name(group: Sequence[Pair]) -> dict[str, object]:
    first = group[0]
    return {
        "study": first.study,
        "group": first.group,
        "left": first.left,
        "right": first.right,
    }


def _measured(study: Study, results: Results, group: Sequence[Pair]) -> Iterator[dict[str, object]]:
    for side in sides(study, group):
        for contrast in contrasts(results, side, group[0].left, group[0].right):
            yield {**_name(group), **contrast.row()}


def _causes(
    study: Study, results: Results, group: Sequence[Pair], known: EngineDifferences
) -> Iterator[dict[str, object]]:
    left, right = group[0].left, group[0].right
    runs = [
        run for side in sides(study, group) for run in scenarios_of(results, side, (left, right))
    ]
    for difference in known.concerning(left, right, runs):
        yield {**_name(group), "difference": difference.id}
