"""Variations: a study with other values, whatever they are for.

An assumption at another value, a possible cause of a gap, a point of a region and a paper's set-up
on a modern kernel are each a `Variation`; `apply` returns the study that has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue, model_validator

from replication.study.errors import InputError
from replication.study.model import Document, Identifier
from replication.study.parameter import Level, Parameter
from replication.study.study import Experiment, Study

#: Stands for a number in a variation that takes one.
VALUE = "$value"
#: Digits kept of a value of a range: a scenario's identity must not hang on rounding noise.
DIGITS = 6

Values = dict[str, JsonValue]
Factors = dict[str, Annotated[float, Field(gt=0)]]


class Range(Document):
    """A range of numbers."""

    low: float
    """The least."""
    high: float
    """The greatest."""
    log: bool = False
    """Walked by factors."""
    whole: bool = False
    """Whole numbers only."""

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError("low must be below high, and above zero with log: true")
        return self

    def at(self, share: float, digits: int = DIGITS) -> float:
        """Return the value at a share of the way from the least to the greatest."""
        if self.log:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else rounded(value, digits)

    def position(self, value: float) -> float:
        """Return where a value lies, 0 at the least and 1 at the greatest; NaN where nowhere."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return math.nan
        return math.log(value / self.low) / math.log(self.high / self.low)


def rounded(value: float, digits: int = DIGITS) -> float:
    """Return a value with so many digits."""
    return float(f"{value:.{digits}g}")


class Variation(Document):
    """Other values for a study; at least one of its parts.

    A parameter is named `experiment/name` where it is one of an experiment. Links and flows are
    named as in the templates, `*` for all of them.
    """

    defaults: Values = {}
    """Parameter to its value where no level sets it."""
    parameters: Values = {}
    """Parameter to its value, whatever a level sets."""
    levels: dict[Identifier, dict[Identifier, dict[Identifier, JsonValue]]] = {}
    """Factor to level to the parameters that the level sets instead of its own."""
    links: dict[str, Values] = {}
    """Link to changed keys."""
    rate_factor: Factors = {}
    """Link to what its rate is multiplied by: another meaning of the unit in which it is
    printed."""
    delay_factor: Factors = {}
    """As `rate_factor`, of the link's delay."""
    flows: dict[str, Values] = {}
    """Flow to changed keys."""

    @model_validator(mode="after")
    def _changes_something(self) -> Variation:
        if self == Variation.model_construct():
            raise ValueError(f"give at least one of {', '.join(Variation.model_fields)}")
        return self

    @property
    def values(self) -> Values:
        """Every parameter that it sets, with its value."""
        return {**self.defaults, **self.parameters}

    def at(self, value: float) -> Variation:
        """Return the variation with a number in the place of `$value`."""
        return Variation.model_validate(_put(self.model_dump(), value))


def apply(study: Study, variation: Variation) -> Study:
    """Return `study` with other values.

    Raises
    ------
    InputError
        The study has no parameter of a name.
    """
    known = {key for key, _ in parameters(study)}
    for key in variation.values:
        if key not in known:
            raise InputError(f"study {study.id}: has no parameter {key!r}")
    return study.model_copy(
        update={
            "parameters": _replaced(study.parameters, variation.values, ""),
            "experiments": [_experiment(one, variation) for one in study.experiments],
        }
    )


def parameters(study: Study) -> Iterator[tuple[str, Parameter]]:
    """Yield every parameter of a study by its name in a variation, the shared ones first."""
    yield from study.parameters.items()
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield f"{experiment.id}/{name}", parameter


def _replaced(old: Mapping[str, Parameter], values: Values, prefix: str) -> dict[str, Parameter]:
    return {
        name: _set(parameter, values[prefix + name]) if prefix + name in values else parameter
        for name, parameter in old.items()
    }


def _set(parameter: Parameter, value: JsonValue) -> Parameter:
    """Return the parameter with another value, which no longer varies."""
    tag = parameter.assumed and parameter.assumed.model_copy(update={"varies": None})
    return parameter.model_copy(update={"value": value, "assumed": tag})


def _experiment(experiment: Experiment, variation: Variation) -> Experiment:
    prefix = f"{experiment.id}/"
    # A scoped name goes before the levels of its own experiment alone.
    fixed = {key.removeprefix(prefix) for key in variation.parameters}
    update: dict[str, Any] = {
        "parameters": _replaced(experiment.parameters, variation.values, prefix),
        "flows": [{**f, **_own(variation.flows, str(f["id"]))} for f in experiment.flows],
        "topology": experiment.topology.model_copy(
            update={"links": [_link(link, variation) for link in experiment.topology.links]}
        ),
    }
    if fixed or variation.levels:
        update["factors"] = [
            factor.model_copy(
                update={
                    "levels": [
                        _level(one, variation.levels.get(factor.id, {}), fixed)
                        for one in factor.levels
                    ]
                }
            )
            for factor in experiment.factors
        ]
    return experiment.model_copy(update=update)


def _level(level: Level, own: Mapping[str, Values], fixed: set[str]) -> Level:
    values = {**level.set, **own.get(level.key, {})}
    return level.model_copy(update={"set": {n: v for n, v in values.items() if n not in fixed}})


def _link(link: Mapping[str, Any], variation: Variation) -> dict[str, Any]:
    name = str(link["id"])
    found = {**link, **_own(variation.links, name)}
    for key, factors in (("rate_bps", variation.rate_factor), ("delay_s", variation.delay_factor)):
        factor = factors.get(name, factors.get("*"))
        if factor is not None:
            value = found[key]
            found[key] = f"{value} * {factor:g}" if isinstance(value, str) else value * factor
    return found


def _own(changes: Mapping[str, Values], name: str) -> Values:
    return {**changes.get("*", {}), **changes.get(name, {})}


def _put(value: Any, number: float) -> Any:
    if isinstance(value, dict):
        return {key: _put(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, number) for item in value]
    return number if value == VALUE else value
