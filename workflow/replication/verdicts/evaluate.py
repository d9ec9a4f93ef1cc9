"""Evaluation of a study: cells, claims and audit, written as tables.

Every file is written atomically, in a fixed order and number format: the same results give the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from replication.design.study_check import check_study
from replication.metrics.results import Results
from replication.study.storage.table import (
    AUDIT_COLUMNS,
    SELF_CONSISTENCY_COLUMNS,
    merge_tables,
    write_table,
)
from replication.study.study import Study
from replication.verdicts.audit import audit_study, check_decimals, impossible_cells
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.counts import COUNT_COLUMNS, COUNTS, count_rows
from replication.verdicts.verdict_table import merge_verdicts, read_verdicts, write_verdicts


def evaluate_study(study: Study, published: Path, results: Results, out_dir: Path) -> None:
    """Judge one study and write its cells, claims and audit."""
    cells = check_study(study, published)
    audit = [*audit_study(study, cells), *check_decimals(study, cells)]
    claims = [row for claim in study.claims for row in evaluate_claim(study, claim, results)]
    judged = evaluate_cells(cells, study, results, impossible_cells(audit))
    write_verdicts(out_dir, judged, claims)
    write_table(out_dir / "audit.csv", (f.__dict__ for f in audit), AUDIT_COLUMNS)


def merge(evaluations: Sequence[Path], primary: Mapping[str, str], out_dir: Path) -> None:
    """Put the studies' verdicts, self-consistency and audits together in the order given; count.

    Each folder has what `evaluate_study` and `self_consistency.write_self_consistency` wrote;
    `primary` is of each study the engine whose verdicts are its headline. InputError where a file
    is missing or of another version.
    """
    tables = {"self_consistency": SELF_CONSISTENCY_COLUMNS, "audit": AUDIT_COLUMNS}
    merge_tables(evaluations, tables, out_dir)
    merge_verdicts(evaluations, out_dir)
    cells, claims = (read_verdicts(out_dir, kind) for kind in ("cells", "claims"))
    write_table(out_dir / COUNTS, count_rows(cells, claims, primary), COUNT_COLUMNS)
