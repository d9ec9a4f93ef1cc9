"""Base of every validated document: strict types, no unknown keys, finite numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

#: Lower-case identifier that is safe in file names, Tcl, C++ and HTML ids.
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Rate = Annotated[float, Field(gt=0, le=1e12)]
Seconds = Annotated[float, Field(ge=0, le=1e6)]
PositiveSeconds = Annotated[float, Field(gt=0, le=1e6)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Document(BaseModel):
    """A frozen model that refuses unknown keys, NaN and infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=False)
