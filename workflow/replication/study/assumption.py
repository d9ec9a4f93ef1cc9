"""Assumptions: what a paper does not state, as axes of plausible values.

A study gives each assumed parameter a default, and a range or choices.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from replication.study.errors import InputError
from replication.study.parameter import Assumed
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import whole_flow
from replication.study.variation import Range, parameters

#: From this ratio of its ends on, a range is walked by factors (log-uniform), not by differences.
LOG_RATIO = 10.0
_REFERENCE = re.compile(r"\$([a-z0-9][a-z0-9_.-]*)")


@dataclass(frozen=True)
class Assumption:
    """One assumed parameter.

    Attributes
    ----------
    key
        The name, with its experiment in front where it has one.
    default, unit, tag
        As the study has them.
    """

    key: str
    default: JsonValue
    unit: str
    tag: Assumed

    @property
    def alternatives(self) -> list[JsonValue]:
        """The plausible values to try one at a time: ends or choices, without the default."""
        if self.tag.range is not None:
            ends: list[JsonValue] = [self._range.at(share) for share in (0, 1)]
            return [end for end in ends if end != self.default]
        return [choice for choice in self.tag.choices or [] if not _same(choice, self.default)]

    @property
    def _range(self) -> Range:
        low, high = self.tag.range or (0.0, 0.0)
        whole = isinstance(self.default, int) and float(low).is_integer() and high.is_integer()
        is_log = low > 0 and high / low >= LOG_RATIO
        return Range.model_construct(low=low, high=high, log=is_log, whole=whole)

    def at(self, position: float, without: list[JsonValue] | None = None) -> JsonValue:
        """Return the plausible value at `position` in [0, 1), leaving out the choices `without`."""
        if self.tag.range is None:
            choices = [c for c in self.tag.choices or [] if not _among(c, without or [])]
            return choices[min(int(position * len(choices)), len(choices) - 1)]
        own = self._range
        if own.whole and not own.log and own.low < own.high:
            # Every whole number is as likely as any other, the ends included.
            steps = own.high - own.low
            position = min(math.floor(position * (steps + 1)), steps) / steps
        return own.at(position)

    def position(self, value: JsonValue) -> float:
        """Return where `value` lies between the ends or among the choices, 0 to 1."""
        if self.tag.range is None:
            choices = self.tag.choices or []
            index = next((i for i, choice in enumerate(choices) if _same(choice, value)), 0)
            return index / max(len(choices) - 1, 1)
        own = self._range
        assert isinstance(value, int | float)
        return own.position(value) if own.low < own.high else 0.0

    def allows(self, value: JsonValue) -> bool:
        """Return whether `value` is plausible by the ledger."""
        if self.tag.range is None:
            return _among(value, self.tag.choices or [])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.tag.range[0] <= float(str(value)) <= self.tag.range[1]


def _same(one: JsonValue, other: JsonValue) -> bool:
    # In JSON 1 and true differ, in Python they do not.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _among(value: JsonValue, choices: list[JsonValue]) -> bool:
    return any(_same(value, choice) for choice in choices)


def assumptions(study: Study) -> list[Assumption]:
    """Return every assumed parameter of a study, the shared ones first."""
    return [
        Assumption(key, parameter.value, parameter.unit, parameter.assumed)
        for key, parameter in parameters(study)
        if parameter.assumed is not None
    ]


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
        whole = isinstance(parameter.value, int)
        found[name] = Range.model_construct(low=low, high=high, whole=whole).at(share)
    return found


def check_ledger(study: Study) -> None:
    """Check that a template reads every parameter: a dead entry looks tested and is not.

    Raises
    ------
    InputError
        Names the study and its first dead entry.
    """
    alive = set().union(*(_read(study, experiment) for experiment in study.experiments))
    for key, _ in parameters(study):
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
