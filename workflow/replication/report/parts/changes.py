"""What was changed after results were seen: what the studies' files say, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replication.study.change import Change
from replication.study.study import Study
from replication.study.table_model import Table


@dataclass(frozen=True)
class Changed:
    """One change.

    Attributes
    ----------
    what, quote
        What was changed, and the paper's words where it is a claim.
    anchor
        Where the study's page shows it; empty where nowhere by itself.
    change
        The entry of the file.
    """

    what: str
    quote: str
    anchor: str
    change: Change

    @property
    def verdicts(self) -> list[tuple[str, str, str]]:
        """Return engine, verdict before and after; either may be empty."""
        before, after = self.change.before, self.change.after
        engines = dict.fromkeys([*before, *after])
        return [(name, before.get(name, ""), after.get(name, "")) for name in engines]


def changes_of(study: Study) -> list[Changed]:
    """Return the changes to a study: its claims, then tables, parameters and factors."""
    found = [
        Changed(f"Claim {claim.id}", claim.quote, f"claim-{claim.id}", change)
        for claim in study.claims
        for change in claim.changed
    ]
    for table in study.tables:
        found += _of_table(table)
    for name, parameter in study.parameters.items():
        found += [Changed(f"Parameter {name}", "", "parameters", c) for c in parameter.changed]
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            what = f"Parameter {name} of {experiment.id}"
            found += [Changed(what, "", "parameters", c) for c in parameter.changed]
        for factor in experiment.factors:
            what = f"Factor {factor.id} of {experiment.id}"
            found += [Changed(what, "", f"experiment-{experiment.id}", c) for c in factor.changed]
    return found


def _of_table(table: Table) -> Iterator[Changed]:
    what = f"Table {table.id}"
    for change in table.changed:
        yield Changed(what, "", "", change)
    cells = dict(table.columns or {})
    if table.cell is not None:
        cells[""] = table.cell
    for column, cell in cells.items():
        named = f", {column.replace('_', ' ')}" if column else ""
        for change in cell.tolerance.changed:
            yield Changed(f"Tolerance of table {table.id}{named}", "", "", change)
