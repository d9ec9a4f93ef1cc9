"""Assumptions: what a paper does not state, as axes of plausible values, and studies along them.

A study's ledger gives each assumed parameter a default and a range or choices. A *variant* of the
study is the same study with some of its defaults replaced, so that everything that designs, runs
and judges a study does so for its variants too.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from replication.study.errors import InputError
from replication.study.study import Assumed, Experiment, Parameter, Study, parameters_of
from replication.study.template import whole_flow

#: From this ratio of its ends on, a range is walked by factors (log-uniform), not by differences.
LOG_RATIO = 10.0
#: Digits kept of a value drawn from a range: a scenario's identity must not hang on rounding noise.
_DIGITS = 6
_REFERENCE = re.compile(r"\$([a-z0-9][a-z0-9_.-]*)")


@dataclass(frozen=True)
class Assumption:
    """One assumed parameter.

    Attributes
    ----------
    scope
        Experiment that it belongs to; empty for all of them.
    name, default, unit, tag
        As in the ledger.
    """

    scope: str
    name: str
    default: JsonValue
    unit: str
    tag: Assumed

    @property
    def key(self) -> str:
        """The name, with its experiment in front where it has one."""
        return f"{self.scope}/{self.name}" if self.scope else self.name

    @property
    def alternatives(self) -> list[JsonValue]:
        """The plausible values to try one at a time: ends or choices, without the default."""
        if self.tag.range is not None:
            ends: list[JsonValue] = [self._number(end) for end in self.tag.range]
            return [end for end in ends if end != self.default]
        return [choice for choice in self.tag.choices or [] if not _same(choice, self.default)]

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers are plausible."""
        ends = self.tag.range or ()
        return isinstance(self.default, int) and all(float(end).is_integer() for end in ends)

    @property
    def _is_log(self) -> bool:
        low, high = self.tag.range or (0.0, 0.0)
        return low > 0 and high / low >= LOG_RATIO

    def at(self, position: float, without: list[JsonValue] | None = None) -> JsonValue:
        """Return the plausible value at `position` in [0, 1), leaving out the choices `without`."""
        if self.tag.range is None:
            choices = [c for c in self.tag.choices or [] if not _among(c, without or [])]
            return choices[min(int(position * len(choices)), len(choices) - 1)]
        low, high = self.tag.range
        if self._is_log:
            value = low * (high / low) ** position
        elif self.is_whole:
            # Every whole number is as likely as any other, the ends included.
            value = low + min(math.floor(position * (high - low + 1)), high - low)
        else:
            value = low + position * (high - low)
        return self._number(min(max(value, low), high))

    def position(self, value: JsonValue) -> float:
        """Return where `value` lies between the ends or among the choices, 0 to 1."""
        if self.tag.range is None:
            choices = self.tag.choices or []
            index = next((i for i, choice in enumerate(choices) if _same(choice, value)), 0)
            return index / max(len(choices) - 1, 1)
        low, high = self.tag.range
        assert isinstance(value, int | float)
        if low == high:
            return 0.0
        if self._is_log:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def allows(self, value: JsonValue) -> bool:
        """Return whether `value` is plausible by the ledger."""
        if self.tag.range is None:
            return _among(value, self.tag.choices or [])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.tag.range[0] <= float(str(value)) <= self.tag.range[1]

    def _number(self, value: float) -> int | float:
        return round(value) if self.is_whole else float(f"{value:.{_DIGITS}g}")


def _same(one: JsonValue, other: JsonValue) -> bool:
    # In JSON 1 and true differ, in Python they do not.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _among(value: JsonValue, choices: list[JsonValue]) -> bool:
    return any(_same(value, choice) for choice in choices)


def assumptions(study: Study) -> list[Assumption]:
    """Return every assumed parameter of a study, the shared ones first."""
    return [
        Assumption(scope, name, parameter.value, parameter.unit, parameter.assumed)
        for scope, name, parameter in _parameters(study)
        if parameter.assumed is not None
    ]


def _parameters(study: Study) -> Iterator[tuple[str, str, Parameter]]:
    for name, parameter in study.parameters.items():
        yield "", name, parameter
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield experiment.id, name, parameter


def drawn(study: Study, experiment: Experiment, replicate: int) -> dict[str, JsonValue]:
    """Return the values that a replicate draws of the parameters that vary.

    The points of an experiment share them (common random numbers), and a parameter's draw does
    not depend on which others vary.
    """
    found: dict[str, JsonValue] = {}
    for name, parameter in parameters_of(study, experiment).items():
        if parameter.assumed is None or parameter.assumed.varies is None:
            continue
        low, high = parameter.assumed.varies
        key = f"{study.id}/{experiment.id}/{replicate}/{name}"
        share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
        value = low + share * (high - low)
        whole = isinstance(parameter.value, int)
        found[name] = round(value) if whole else float(f"{value:.{_DIGITS}g}")
    return found


def variant(study: Study, values: Mapping[str, JsonValue]) -> Study:
    """Return `study` with other defaults.

    Parameters
    ----------
    study
        The study.
    values
        Key of a parameter (see `Assumption.key`) to its value.

    Raises
    ------
    InputError
        The study has no such parameter.
    """
    known = {f"{scope}/{name}" if scope else name for scope, name, _ in _parameters(study)}
    for key in values:
        if key not in known:
            raise InputError(f"study {study.id}: has no parameter {key!r}")
    if not values:
        return study
    experiments = [
        e.model_copy(update={"parameters": _replaced(e.parameters, values, f"{e.id}/")})
        for e in study.experiments
    ]
    shared = _replaced(study.parameters, values, "")
    return study.model_copy(update={"parameters": shared, "experiments": experiments})


def _replaced(
    parameters: dict[str, Parameter], values: Mapping[str, JsonValue], prefix: str
) -> dict[str, Parameter]:
    return {
        name: _set(parameter, values[prefix + name]) if prefix + name in values else parameter
        for name, parameter in parameters.items()
    }


def _set(parameter: Parameter, value: JsonValue) -> Parameter:
    """Return the parameter with another value, which no longer varies."""
    tag = parameter.assumed and parameter.assumed.model_copy(update={"varies": None})
    return parameter.model_copy(update={"value": value, "assumed": tag})


def check_ledger(study: Study) -> None:
    """Check that a template reads every parameter: a dead entry looks tested and is not.

    Raises
    ------
    InputError
        Names the study and its first dead entry.
    """
    alive = set().union(*(_read(study, experiment) for experiment in study.experiments))
    for scope, name, _ in _parameters(study):
        key = f"{scope}/{name}" if scope else name
        if key not in alive:
            raise InputError(
                f"study {study.id}: parameter {key!r} is read by no template; use it in one, "
                "or move it to the notes or to "
                "configs/explanations"
            )


def _read(study: Study, experiment: Experiment) -> set[str]:
    """Return the keys of the parameters that an experiment's templates lead to."""
    parameters = parameters_of(study, experiment)
    values: dict[str, list[Any]] = {name: [p.value] for name, p in parameters.items()}
    for factor in experiment.factors:
        for level in factor.levels:
            for name, value in level.set.items():
                values[name].append(value)
    found: set[str] = set()
    templates = experiment.model_dump(exclude={"parameters", "factors", "flows"})
    flows = [whole_flow(flow, values) for flow in experiment.flows]
    waiting = [*_references(templates), *_references(flows)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(values.get(name, []))
    return {f"{experiment.id}/{n}" if n in experiment.parameters else n for n in found}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, str):
        yield from _REFERENCE.findall(value)
