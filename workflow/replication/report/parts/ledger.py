"""The ledger: every parameter of a study, where the paper states it or why it was assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from replication.report.drawing.data import levels_in_brief, unsaid_unit
from replication.study.study import Assumed, Experiment, Factor, Parameter, Published, Study


@dataclass(frozen=True)
class Entry:
    """One parameter or factor; `scope` names the experiment it holds for, empty for all."""

    scope: str
    name: str
    value: str
    unit: str
    plausible: str = ""
    reason: str = ""
    source: str = ""
    place: str = ""
    quote: str = ""


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
    assumed: list[Entry] = []
    published: list[Entry] = []
    for scope, name, value, unit, tagged in _tagged(study):
        if tagged.assumed is not None:
            assumed.append(_assumed(scope, name, value, unit, tagged.assumed))
        elif tagged.published is not None:
            published.append(_published(scope, name, value, unit, tagged.published))
    return Ledger(assumed, published, list(_substituted(study)))


def _substituted(study: Study) -> Iterator[SubstitutedValue]:
    for substitution in study.substitutions:
        for name, value in substitution.set.items():
            asked = plain(study.parameters[name].value)
            yield SubstitutedValue(
                substitution.engine, name, asked, plain(value), substitution.reason
            )


def _tagged(study: Study) -> Iterator[tuple[str, str, str, str, Parameter | Factor]]:
    for name, parameter in study.parameters.items():
        yield "", name, plain(parameter.value), parameter.unit, parameter
    for experiment in study.experiments:
        yield from _of_experiment(experiment)


def _of_experiment(
    experiment: Experiment,
) -> Iterator[tuple[str, str, str, str, Parameter | Factor]]:
    for name, parameter in experiment.parameters.items():
        yield experiment.title, name, plain(parameter.value), parameter.unit, parameter
    for factor in experiment.factors:
        how = "averaged over" if factor.averaged else "varied"
        yield (
            experiment.title,
            f"{factor.label} ({how})",
            levels_in_brief(factor),
            unsaid_unit(factor),
            factor,
        )


def _assumed(scope: str, name: str, value: str, unit: str, tag: Assumed) -> Entry:
    if tag.range is not None:
        plausible = f"{plain(tag.range[0])} to {plain(tag.range[1])}"
    else:
        plausible = ", ".join(plain(choice) for choice in tag.choices or [])
    return Entry(scope, name, value, unit, plausible, tag.reason, tag.source)


def _published(scope: str, name: str, value: str, unit: str, tag: Published) -> Entry:
    return Entry(scope, name, value, unit, place=tag.place, quote=tag.quote or "")


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
