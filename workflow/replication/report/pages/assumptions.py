"""A study's parameters with their sources."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from replication.report.charts.data import levels_in_brief, unsaid_unit
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study


def parameter_tables(study: Study) -> dict[str, Any]:
    """Return the assumed and published parameters of a study, and substitutions by engines."""
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


def _entries(study: Study) -> Iterator[tuple[str, str, str, str, Parameter | Factor]]:
    """Yield experiment (empty for all), name, value, unit, and the parameter or factor itself."""
    for name, parameter in study.parameters.items():
        yield "", name, plain(parameter.value), _unit(parameter), parameter
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield experiment.title, name, plain(parameter.value), _unit(parameter), parameter
        for factor in experiment.factors:
            name = f"{factor.label} (varied)" if len(factor.levels) > 1 else factor.label
            yield experiment.title, name, levels_in_brief(factor), unsaid_unit(factor), factor


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
