"""A study's ledger: its parameters and their sources, its environment, what was changed and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from replication.report.charts.data import levels_in_brief, unsaid_unit
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study

#: One parameter or factor: the experiment it holds for (empty for all), name, value, unit, and it.
Entry = tuple[str, str, str, str, Parameter | Factor]


def ledger(study: Study) -> dict[str, Any]:
    """Return every parameter and factor of `study`, and what engines run in the place of some."""
    entries = list(_entries(study))
    return {
        "assumed": [entry for entry in entries if entry[-1].assumed is not None],
        "published": [entry for entry in entries if entry[-1].published is not None],
        "substituted": [
            (one.engine, name, plain(study.parameters[name].value), plain(value), one.reason)
            for one in study.substitutions
            for name, value in one.set.items()
        ],
    }


def _entries(study: Study) -> Iterator[Entry]:
    for name, parameter in study.parameters.items():
        yield "", name, plain(parameter.value), parameter.unit, parameter
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield experiment.title, name, plain(parameter.value), parameter.unit, parameter
        for factor in experiment.factors:
            name = f"{factor.label} ({'averaged over' if factor.averaged else 'varied'})"
            yield experiment.title, name, levels_in_brief(factor), unsaid_unit(factor), factor


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


def parameter_name(study: Study, key: str) -> str:
    """Return a claim's or parameter's name for people: "initial window", "claim c01"."""
    if key in {sentence.id for sentence in study.sentences}:
        return f"claim {key}"
    return key.rpartition("/")[2].replace("_", " ")
