"""What was changed after results were seen: what the studies' files say, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from replication.study.change import Change
from replication.study.study import Study


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
    """Return the changes to a study: its claims, then tables and parameters."""
    found = [
        Changed(f"Claim {claim.id}", claim.quote, f"claim-{claim.id}", change)
        for claim in study.claims
        for change in study.changes_to("claims", claim.id)
    ]
    found += [
        Changed(f"Table {table.id}", "", "", change)
        for table in study.tables
        for change in study.changes_to("tables", table.id)
    ]
    parameters = {name: f"Parameter {name}" for name in study.parameters}
    for experiment in study.experiments:
        for name in experiment.parameters:
            parameters[f"{experiment.id}/{name}"] = f"Parameter {name} of {experiment.id}"
    found += [
        Changed(what, "", "parameters", change)
        for key, what in parameters.items()
        for change in study.changes_to("parameters", key)
    ]
    return found
