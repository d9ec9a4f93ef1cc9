"""Base of every validated document: strict types, no unknown keys, finite numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict


def _whole(value: Any) -> Any:
    """Return a float without a fraction as a whole number: products in templates give floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: Lower-case identifier that is safe in file names, Tcl, C++ and HTML ids.
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Rate = Annotated[float, Field(gt=0, le=1e12)]
Seconds = Annotated[float, Field(ge=0, le=1e6)]
PositiveSeconds = Annotated[float, Field(gt=0, le=1e6)]
WHOLE = BeforeValidator(_whole)
Count = Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE]
Probability = Annotated[float, Field(ge=0, le=1)]
#: [from, to]: a list in a file. Its numbers are as strict as any.
Interval = Annotated[tuple[float, float], Strict(False)]


class Document(BaseModel):
    """A frozen model that refuses unknown keys, NaN and infinities, and converts no types.

    A text or truth value is no number: ``duration_s: true`` is not one second.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
