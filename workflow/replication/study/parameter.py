"""Parameters of a study, each `published` or `assumed`, and the factors that vary them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from replication.study.errors import describe
from replication.study.model import LINE, Document, Identifier, Interval, Label, Text, one_of

#: Most points of an experiment, counted before any of them is made.
MOST_POINTS = 10_000
#: Units that the ends of parameters' names say.
UNITS = {
    "_bps": "bit/s",
    "_bytes": "bytes",
    "_hz": "1/s",
    "_packets": "packets",
    "_s": "s",
    "_segments": "segments",
}


class Published(Document):
    """Where the paper states a value, and its words."""

    place: Text
    quote: Text | None = None


class Assumed(Document):
    """Why a value that the paper does not state was chosen, and what else would be plausible.

    A number has a closed `range`, anything else `choices`; `source` is the documentation or
    practice behind the reason. Each replicate draws anew from `varies`.
    """

    reason: Text
    source: Text
    range: Interval | None = None
    choices: list[JsonValue] | None = None
    varies: Interval | None = None

    _one_kind_of_plausible = one_of("range", "choices")

    @model_validator(mode="after")
    def _ordered(self) -> Assumed:
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError("range must be [low, high]")
        if self.varies is not None:
            low, high = self.range or (math.inf, -math.inf)
            if not low <= self.varies[0] <= self.varies[1] <= high:
                raise ValueError("varies must be [low, high] within the range")
        return self


class _Tagged(Document):
    published: Published | None = None
    """`place` *, `quote`: where the paper states it, in its words."""
    assumed: Assumed | None = None
    """`reason` *, `source` *, and one of `range` ([low, high], in the parameter's unit) and
    `choices` (a list); `varies` ([low, high] within the range): each replicate draws its own
    value from it, unless a level sets the parameter."""

    _one_tag = one_of("published", "assumed")


class Parameter(_Tagged):
    """A named value that templates use; `unit` is for people ("bit/s", "s", "segments")."""

    value: JsonValue
    """A number, text, truth value, null, or a structure such as a queue; may hold references."""
    unit: Annotated[str, LINE] = ""
    """For people; without it the one that the name ends in (`_s`, `_bps`, `_bytes` ...)."""

    @model_validator(mode="after")
    def _default_is_plausible(self) -> Parameter:
        if self.assumed and self.assumed.range:
            low, high = self.assumed.range
            if isinstance(self.value, bool) or not isinstance(self.value, int | float):
                raise ValueError("a range needs a numeric value; use choices")
            if not low <= self.value <= high:
                raise ValueError(f"value {self.value} lies outside its range [{low}, {high}]")
        elif self.assumed and self.value not in (self.assumed.choices or []):
            raise ValueError(f"value {self.value!r} is not among its choices")
        return self


def _with_units(parameters: Any) -> Any:
    if isinstance(parameters, dict):
        parameters = dict(parameters)
        for name, parameter in parameters.items():
            units = [unit for end, unit in UNITS.items() if name.endswith(end)]
            if units and isinstance(parameter, dict):
                parameters[name] = {"unit": units[0]} | parameter
    return parameters


Parameters = Annotated[dict[Identifier, Parameter], BeforeValidator(_with_units)]


class Level(Document):
    """One level of a factor: `set` overrides parameters; `value` is its number on an axis."""

    key: Identifier
    """Key in tables and `where`."""
    label: Label
    """Label in charts."""
    value: float | None = None
    """Its number on an axis; `trend` and `crossover` need it."""
    set: dict[Identifier, JsonValue]
    """Map of parameter to value; the parameters must be declared."""
    quick: bool = False
    """Run in quick tiers too."""


class LevelValues(Document):
    """Levels that are numbers of one parameter: listed, or from one to another a step apart."""

    values: list[int | float] = []
    """The numbers; or else `from`, `to` and `step`."""
    first: int | float | None = Field(default=None, alias="from")
    to: int | float | None = None
    step: Annotated[int | float, Field(gt=0)] | None = None
    set: Identifier
    """The parameter."""
    times: int | float = 1
    """What a number is multiplied by to be the parameter's value."""
    key: str = "{}"
    """Key of a level; `{}` is its number."""
    label: str = "{}"
    """Label of a level, likewise."""
    quick: list[int | float] = []
    """The numbers that are run in quick tiers too."""

    @model_validator(mode="after")
    def _listed(self) -> LevelValues:
        ends = (self.first, self.to, self.step)
        if bool(self.values) == any(end is not None for end in ends) or 0 < ends.count(None) < 3:
            raise ValueError("give either values, or from, to and step")
        if self.step is not None:
            steps = self._steps
            if steps < 0 or steps.denominator > 1:
                raise ValueError(
                    f"from {self.first:g} to {self.to:g} are no whole steps of {self.step:g}; "
                    "let the last step end at `to`"
                )
            if steps >= MOST_POINTS:
                raise ValueError(f"makes more than {MOST_POINTS} levels; vary less")
        return self

    @property
    def _steps(self) -> Fraction:
        return (_exact(self.to) - _exact(self.first)) / _exact(self.step)

    def levels(self) -> Iterator[dict[str, Any]]:
        """Yield the levels as a file would list them; of whole numbers all values are whole."""
        numbers = [_exact(number) for number in self.values]
        if self.step is not None:
            first, step = _exact(self.first), _exact(self.step)
            numbers = [first + number * step for number in range(int(self._steps) + 1)]
        given = [self.times, *(self.values or (self.first, self.step))]
        kind = int if all(isinstance(number, int) for number in given) else float
        quick = {_exact(number) for number in self.quick}
        for number in numbers:
            text = f"{float(number):.12g}"
            yield {
                "key": self.key.replace("{}", text),
                "label": self.label.replace("{}", text),
                "value": float(number),
                "set": {self.set: kind(number * _exact(self.times))},
                "quick": number in quick,
            }


def _exact(number: float | None) -> Fraction:
    # As it is written: 0.1 is a tenth.
    return Fraction(repr(number))


def _generated(levels: Any) -> Any:
    if not isinstance(levels, dict):
        return levels
    try:
        return list(LevelValues.model_validate(levels).levels())
    except ValidationError as error:
        raise ValueError(describe(error)) from None


class Factor(_Tagged):
    """What an experiment varies. Tagged like a parameter, for all its levels at once."""

    id: Identifier
    """Its name."""
    label: Label
    """Its name in charts."""
    unit: Annotated[str, LINE] = ""
    """Of the levels' `value`."""
    levels: Annotated[
        list[Level],
        BeforeValidator(_generated, json_schema_input_type=list[Level] | LevelValues),
        Field(min_length=1),
    ]
    """List of levels; or `{values: [1, 2, 5], set: parameter}`, a level for each number, which the
    parameter takes; or `{from, to, step, set}`."""
    averaged: bool = False
    """The paper prints means over these levels: each is a replicate of every point, and no point of
    its own. Tables and claims cannot name it."""

    @model_validator(mode="after")
    def _unique_levels(self) -> Factor:
        unique((level.key for level in self.levels), f"level of factor {self.id}")
        return self


def unique(names: Iterable[str], what: str) -> None:
    """Raise ValueError naming the first of `names` that occurs twice."""
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"duplicate {what}: {name!r}")


def plain_values(parameters: dict[str, Parameter]) -> dict[str, Any]:
    """Return name to value, without tags."""
    return {name: parameter.value for name, parameter in parameters.items()}
