"""The ledger: every parameter of a study, where the paper states it or why it was assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from replication.report.drawing.data import levels_in_brief, unsaid_unit
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study


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
