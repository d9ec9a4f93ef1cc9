"""Evenly spaced numbers, which a file writes as `{first, step, count}`."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, ValidationError

from replication.base.errors import InputError, describe, problems
from replication.base.model import WHOLE, Document

#: Most numbers of a progression.
_MOST_NUMBERS = 100_000


class Progression(Document):
    """The numbers `first`, `first` + `step` and so on, `count` of them."""

    first: int | float
    step: int | float
    count: Annotated[int, Field(ge=1, le=_MOST_NUMBERS), WHOLE]

    def numbers(self) -> list[int | float]:
        """Return the numbers; they are whole if first and step are."""
        # The decimal numbers as written, so that their sums have no rounding.
        first, step = Fraction(repr(self.first)), Fraction(repr(self.step))
        kind = int if first.denominator == step.denominator == 1 else float
        return [kind(first + number * step) for number in range(self.count)]


def expanded(value: Any) -> Any:
    """Return the numbers of a progression, and any other value as it is."""
    if not isinstance(value, dict):
        return value
    try:
        return Progression.model_validate(value).numbers()
    except ValidationError as error:
        raise InputError(describe(error, value), problems(error, value)[0].place) from None
