"""The audit under other readings: could a table's numbers be what a hypothesis says they are?

A reading that makes numbers impossible explains nothing; one under which an impossible number could
be is told by the rows that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from replication.judge.audit import CONSISTENT, Finding, audit_study
from replication.judge.hypothesis import Hypothesis
from replication.measure.cell_map import MappedCell
from replication.study.study import Study

#: Checks of printed digits, which no reading changes.
_OF_DIGITS = ("repeated_in_column", "repeated_in_row", "repeated_across_tables", "monotonic")


def audit_readings(
    study: Study, cells: Sequence[MappedCell], hypotheses: Sequence[Hypothesis]
) -> Iterator[Finding]:
    """Yield what the audit finds under each other reading of a table, but what is consistent.

    Parameters
    ----------
    study, cells
        The study and its published numbers, as `measure.cell_map.map_cells` maps them.
    hypotheses
        Those on the study; only the ones with a reading count.
    """
    for hypothesis in hypotheses:
        if hypothesis.reading is None:
            continue
        read = [hypothesis.reading.of(cell) for cell in cells if hypothesis.concerns(cell)]
        for found in audit_study(study, read):
            if found.finding != CONSISTENT and found.check not in _OF_DIGITS:
                yield replace(found, reading=hypothesis.id)
