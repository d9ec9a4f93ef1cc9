"""A study's ledger: its parameters and their sources, its environment, what was changed and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from replication.engines.catalogue import family_of
from replication.judge.verdict_table import is_supported
from replication.report.charts.data import levels_in_brief, unsaid_unit
from replication.report.pages.source import Source
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study
from replication.study.verdict import Change


@dataclass(frozen=True)
class Entry:
    """One parameter or factor; `scope` names the experiment it holds for, empty for all."""

    scope: str
    name: str
    value: str
    unit: str
    tagged: Parameter | Factor


@dataclass(frozen=True)
class SubstitutedValue:
    """A value that an engine runs in the place of the study's, and why."""

    engine: str
    name: str
    asked: str
    value: str
    reason: str


@dataclass(frozen=True)
class Ledger:
    """The two halves of a study's parameters, and what engines run in the place of some."""

    assumed: list[Entry]
    published: list[Entry]
    substituted: list[SubstitutedValue]


def ledger(study: Study) -> Ledger:
    """Return every parameter and factor of `study`, assumed ones apart from published ones."""
    entries = list(_entries(study))
    return Ledger(
        [entry for entry in entries if entry.tagged.assumed is not None],
        [entry for entry in entries if entry.tagged.published is not None],
        list(_substituted(study)),
    )


def _substituted(study: Study) -> Iterator[SubstitutedValue]:
    for substitution in study.substitutions:
        for name, value in substitution.set.items():
            asked = plain(study.parameters[name].value)
            yield SubstitutedValue(
                substitution.engine, name, asked, plain(value), substitution.reason
            )


def _entries(study: Study) -> Iterator[Entry]:
    for name, parameter in study.parameters.items():
        yield Entry("", name, plain(parameter.value), parameter.unit, parameter)
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            value = plain(parameter.value)
            yield Entry(experiment.title, name, value, parameter.unit, parameter)
        for factor in experiment.factors:
            name = f"{factor.label} ({'averaged over' if factor.averaged else 'varied'})"
            value = levels_in_brief(factor)
            yield Entry(experiment.title, name, value, unsaid_unit(factor), factor)


def plausible(tag: Assumed, unit: str = "") -> str:
    """Return the plausible range of what is assumed, or its choices."""
    if tag.range is not None:
        return f"{plain(tag.range[0])} to {plain(tag.range[1])} {unit}".strip()
    return ", ".join(plain(choice) for choice in tag.choices or [])


def plain(value: JsonValue) -> str:
    """Return a parameter's value for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{round(value):,}" if value == round(value) else f"{value:.12g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def environment_rows(source: Source, study: Study, ledger: Ledger) -> list[tuple[str, str, str]]:
    """Return the rows of a study's table: what the paper says of an aspect, and what was done."""
    stated, assumed = len(ledger.published), len(ledger.assumed)
    return [
        ("System", study.original_system.description, _engines(source, study)),
        (
            "Parameters",
            f"states {stated} of {stated + assumed}",
            f"assumes the other {assumed}, each with a plausible range (see Parameters)",
        ),
        (
            "Repetitions",
            study.original_system.repetitions or "no variance is printed",
            _replicates(source, study),
        ),
    ]


def _engines(source: Source, study: Study) -> str:
    versions = source.provenance.get("engines") or {}
    names = []
    for name in source.shown_engines(study.id):
        version = str((versions.get(name) or {}).get("version", "")).partition("+")[0]
        names.append(f"{family_of(name)} {version}".strip())
    return "; ".join(names) or "nothing was run"


def _replicates(source: Source, study: Study) -> str:
    counted = Counter(
        (row["experiment"], row["point"], row["engine"])
        for row in source.design(study.id)
        if is_supported(row)
    )
    if not counted:
        return "–"
    low, high = min(counted.values()), max(counted.values())
    runs = f"{low}" if low == high else f"{low} to {high}"
    return f"{runs} with other seeds and start times at each point; intervals from three on"


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
