"""The audit under other readings: could a table's numbers be what a cause says they are?

A reading that makes numbers impossible explains nothing; one under which an impossible number could
be is told by the rows that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from replication.judge.audits.audit import CONSISTENT, Finding, audit_study
from replication.judge.cause import Cause, CauseLevel, Reading, as_read, refusal
from replication.measure.cell_map import MappedCell
from replication.study.study import Study

#: Checks of printed digits, which no reading changes.
_OF_DIGITS = ("repeated_in_column", "repeated_in_row", "repeated_across_tables", "monotonic")


def readings_of(causes: Sequence[Cause]) -> Iterator[tuple[str, Cause, CauseLevel, Reading]]:
    """Yield each reading with its name, its cause and its level."""
    for cause in causes:
        for level in cause.levels or []:
            if level.reading is not None:
                yield f"{cause.id}={level.key}", cause, level, level.reading


def audit_readings(
    study: Study, cells: Sequence[MappedCell], causes: Sequence[Cause]
) -> Iterator[Finding]:
    """Yield what the audit finds under each other reading of a table, but what is consistent.

    Parameters
    ----------
    study, cells
        The study and its published numbers, as `measure.cell_map.map_cells` maps them.
    causes
        The study's; only those that read a column otherwise count.
    """
    for name, cause, _, reading in readings_of(causes):
        concerned = [cell for cell in cells if cause.concerns(cell.table, cell.column)]
        read = [as_read(study, c, reading) for c in concerned if not refusal(c, reading)]
        for found in audit_study(study, read):
            if found.finding != CONSISTENT and found.check not in _OF_DIGITS:
                yield replace(found, reading=name)
