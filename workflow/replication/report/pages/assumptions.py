"""A study's parameters with their sources."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from replication.report.charts.data import levels_in_brief, unsaid_unit
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study


class Entry(NamedTuple):
    """A parameter or factor with its value in words; `scope` is its experiment, empty for all."""

    scope: str
    name: str
    value: str
    unit: str
    tagged: Parameter | Factor


class Substituted(NamedTuple):
    """A parameter whose value in the study an engine replaces, in words."""

    engine: str
    name: str
    of_study: str
    of_engine: str
    reason: str


@dataclass(frozen=True)
class ParameterTables:
    """The assumed and published parameters of a study, and those that engines substitute."""

    assumed: list[Entry]
    published: list[Entry]
    substituted: list[Substituted]


def parameter_tables(study: Study) -> ParameterTables:
    """Return a study's parameters by their source."""
    entries = list(_entries(study))
    return ParameterTables(
        assumed=[entry for entry in entries if entry.tagged.assumed is not None],
        published=[entry for entry in entries if entry.tagged.published is not None],
        substituted=list(_substituted(study)),
    )


def _substituted(study: Study) -> Iterator[Substituted]:
    for substitution in study.substitutions:
        for name, value in substitution.set.items():
            of_study = plain(study.parameters[name].value)
            yield Substituted(
                substitution.engine, name, of_study, plain(value), substitution.reason
            )


def _entries(study: Study) -> Iterator[Entry]:
    for name, parameter in study.parameters.items():
        yield Entry("", name, plain(parameter.value), _unit(parameter), parameter)
    for experiment in study.experiments:
        scope = experiment.title
        for name, parameter in experiment.parameters.items():
            yield Entry(scope, name, plain(parameter.value), _unit(parameter), parameter)
        for factor in experiment.factors:
            name = f"{factor.label} (varied)" if len(factor.levels) > 1 else factor.label
            yield Entry(scope, name, levels_in_brief(factor), unsaid_unit(factor), factor)


def _unit(parameter: Parameter) -> str:
    """Return a parameter's unit, in the singular after 1."""
    unit = parameter.unit
    is_one = parameter.value == 1 and parameter.value is not True
    is_word = unit.isalpha() and len(unit) > 2
    return unit.removesuffix("s") if is_one and is_word else unit


def plausible(tag: Assumed) -> str:
    """Return the plausible range or the choices of an assumption."""
    if tag.range is not None:
        return f"{plain(tag.range[0])} to {plain(tag.range[1])}"
    return ", ".join(plain(choice) for choice in tag.choices or [])


def plain(value: JsonValue) -> str:
    """Return a parameter's value in words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{round(value):,}" if value == round(value) else f"{value:.12g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
