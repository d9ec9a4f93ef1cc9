"""Levels of a factor: what each sets, written out one by one or as a range of values."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError, model_validator

from replication.study.errors import describe
from replication.study.model import Document, Identifier, Label

#: Most points of an experiment, counted before any of them is made.
MOST_POINTS = 10_000


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


class LevelRange(Document):
    """Levels a step apart, both ends included; each sets one parameter to its value.

    A level's key and label are its value as it is written.
    """

    first: int | float = Field(alias="from")
    to: int | float
    step: Annotated[int | float, Field(gt=0)]
    set: Identifier

    @model_validator(mode="after")
    def _whole_steps(self) -> LevelRange:
        steps = self._steps()
        if steps < 0 or steps.denominator > 1:
            raise ValueError(
                f"from {self.first:g} to {self.to:g} are no whole steps of {self.step:g}; "
                "let the last step end at `to`"
            )
        if steps >= MOST_POINTS:
            raise ValueError(f"makes more than {MOST_POINTS} levels; vary less")
        return self

    def _steps(self) -> Fraction:
        return (_exact(self.to) - _exact(self.first)) / _exact(self.step)

    def levels(self) -> list[Level]:
        """Return the levels, from the first on; of whole numbers all values are whole."""
        whole = isinstance(self.first, int) and isinstance(self.step, int)
        found = []
        for number in range(int(self._steps()) + 1):
            value = float(_exact(self.first) + number * _exact(self.step))
            key = f"{value:.12g}"
            found.append(
                Level(
                    key=key, label=key, value=value, set={self.set: int(value) if whole else value}
                )
            )
        return found


def _exact(number: float) -> Fraction:
    # As it is written: 0.1 is a tenth.
    return Fraction(repr(number))


def generated(levels: Any) -> Any:
    """Return the levels that a `LevelRange` stands for, and any other levels as they are."""
    if not isinstance(levels, dict):
        return levels
    try:
        return LevelRange.model_validate(levels).levels()
    except ValidationError as error:
        raise ValueError(describe(error)) from None
