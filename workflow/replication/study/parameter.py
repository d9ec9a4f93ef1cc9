"""Parameters of a study, each published or assumed, and the factors that vary them."""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from replication.base.errors import InputError, describe, problems, quoted
from replication.base.model import LINE, Document, Identifier, Interval, Label, Text, one_of
from replication.study.progression import Progression, expanded

#: Most points of an experiment.
MOST_POINTS = 10_000
#: Endings of parameters' names, and their units.
_UNITS = {
    "_bps": "bit/s",
    "_bytes": "bytes",
    "_hz": "1/s",
    "_packets": "packets",
    "_s": "s",
    "_segments": "segments",
}


class Published(Document):
    """Place and words of a value in the paper."""

    place: Text
    quote: Text | None = None


class Assumed(Document):
    """Reason for a value that the paper does not state, and its plausible range or choices.

    `source` is the documentation or practice behind the reason. Each replicate draws its value from
    `varies`, if given.
    """

    reason: Text
    source: Text
    range: Interval | None = None
    choices: list[JsonValue] | None = None
    varies: Interval | None = None

    _one_kind_of_plausible = one_of("range", "choices")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError("range must be [low, high]")
        if self.varies is not None:
            low, high = self.range or (math.inf, -math.inf)
            if not low <= self.varies[0] <= self.varies[1] <= high:
                raise ValueError("varies must be [low, high] within the range")
        return self


class _Tagged(Document):
    published: Published | None = None
    """`place` * and `quote` of the value in the paper."""
    assumed: Assumed | None = None
    """`reason` *, `source` *, and one of `range` ([low, high], in the parameter's unit) and
    `choices` (a list). With `varies` ([low, high] within the range) each replicate draws a value,
    unless a level sets the parameter."""

    _one_tag = one_of("published", "assumed")


class Parameter(_Tagged):
    """A named value that templates use."""

    value: JsonValue
    """A number, text, truth value, null, or a structure such as a queue; may contain references."""
    unit: Annotated[str, LINE] = ""
    """Unit for readers; by default that of the name's ending (`_s`, `_bps`, `_bytes` ...)."""

    @model_validator(mode="after")
    def _default_is_plausible(self) -> Self:
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
            units = [unit for end, unit in _UNITS.items() if name.endswith(end)]
            if units and isinstance(parameter, dict):
                parameters[name] = {"unit": units[0]} | parameter
    return parameters


Parameters = Annotated[dict[Identifier, Parameter], BeforeValidator(_with_units)]


class Level(Document):
    """One level of a factor."""

    key: Identifier
    """Key in tables and `where`."""
    label: Label
    """Label in charts."""
    value: float | None = None
    """Number on an axis; `trend` and `crossover` need it."""
    set: dict[Identifier, JsonValue]
    """Map of declared parameter to its value at this level."""
    quick: bool = False
    """Whether quick tiers run the level too."""


class LevelValues(Document):
    """Levels that are numbers of one parameter."""

    values: Annotated[
        list[int | float],
        BeforeValidator(expanded, json_schema_input_type=list[int | float] | Progression),
        Field(min_length=1),
    ]
    """List of numbers, or `{first, step, count}` of evenly spaced ones."""
    set: Identifier
    """The parameter."""
    times: int | float = 1
    """Factor between a number and the parameter's value."""
    key: str = "{}"
    """Key of a level; `{}` is its number."""
    label: str = "{}"
    """Label of a level; `{}` is its number."""
    quick: list[int | float] = []
    """Numbers that quick tiers run too."""

    @model_validator(mode="after")
    def _quick_levels_exist(self) -> Self:
        for number in self.quick:
            if number not in self.values:
                there = ", ".join(f"{value:g}" for value in self.values[:20])
                text = f"quick: {number:g} is none of the values; there are {there}"
                raise InputError(text, ("quick", str(number)))
        return self

    def levels(self) -> Iterator[dict[str, Any]]:
        """Yield the levels as a file would list them; values of whole numbers are whole."""
        kind = int if all(isinstance(n, int) for n in (self.times, *self.values)) else float
        for number in self.values:
            text = f"{number:.12g}"
            yield {
                "key": self.key.replace("{}", text),
                "label": self.label.replace("{}", text),
                "value": float(number),
                # The decimal numbers as written, so that their product has no rounding.
                "set": {self.set: kind(Fraction(repr(number)) * Fraction(repr(self.times)))},
                "quick": number in self.quick,
            }


def _generated(levels: Any) -> Any:
    if not isinstance(levels, dict):
        return levels
    try:
        return list(LevelValues.model_validate(levels).levels())
    except ValidationError as error:
        raise InputError(describe(error, levels), problems(error, levels)[0].place) from None
    except OverflowError:
        raise InputError("values and times: a number is too large", ("values",)) from None


class Factor(_Tagged):
    """A factor that an experiment varies; published or assumed for all its levels at once."""

    id: Identifier
    label: Label
    """Name in charts."""
    unit: Annotated[str, LINE] = ""
    """Unit of the levels' `value`."""
    levels: Annotated[
        list[Level],
        BeforeValidator(_generated, json_schema_input_type=list[Level] | LevelValues),
        Field(min_length=1),
    ]
    """List of levels; or `{values: [1, 2, 5], set: parameter}`, a level per number."""

    @model_validator(mode="after")
    def _unique_levels(self) -> Self:
        unique((level.key for level in self.levels), f"level of factor {self.id}", "levels")
        return self


def unique(names: Iterable[str], what: str, *place: str | int) -> None:
    """Raise InputError if one of `names`, those of the list at `place`, occurs twice."""
    seen = set()
    for number, name in enumerate(names):
        if name in seen:
            raise InputError(f"duplicate {what}: {quoted(name)}", (*place, number))
        seen.add(name)
