"""The base class of all documents, and the types of their fields."""

import math
import re
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

#: The page with every key of every document, and the support of each engine.
REFERENCE = "configs/reference.md"

#: Unicode's control characters (Cc), line and paragraph separators (Zl, Zp).
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def control_character(text: str, allowed: str = "") -> str | None:
    """Return the first control character or line break of a text, or None."""
    return next((c for c in _CONTROLS.findall(text) if c not in allowed), None)


def _without_controls(allowed: str, reason: str) -> AfterValidator:
    def check(text: str) -> str:
        if (control := control_character(text, allowed)) is not None:
            raise ValueError(f"contains {control!r}, {reason}; remove it")
        return text

    return AfterValidator(check)


def _window(window: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= window[0] < window[1]:
        raise ValueError("must be [from, to] with 0 <= from < to")
    return window


def reaches(value: float, bound: float) -> bool:
    """Return whether a value is at least a bound, up to rounding."""
    return value >= bound or math.isclose(value, bound, rel_tol=1e-9, abs_tol=1e-12)


def _whole(value: Any) -> Any:
    # Products in templates give floats, also for counts.
    return int(value) if isinstance(value, float) and value.is_integer() else value


EngineName = Literal["ns3", "ns2", "linux"]
#: A lower-case identifier that is safe in file names, Tcl, C++ and HTML ids.
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Rate = Annotated[float, Field(gt=0, le=1e12)]
Seconds = Annotated[float, Field(ge=0, le=1e6)]
PositiveSeconds = Annotated[float, Field(gt=0, le=1e6)]
WHOLE = BeforeValidator(_whole)
Count = Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE]
Probability = Annotated[float, Field(ge=0, le=1)]
#: [from, to], a list in files.
Interval = Annotated[tuple[float, float], Strict(False)]
#: Part of a run, in s from its start.
Window = Annotated[Interval, AfterValidator(_window)]
PROSE = _without_controls("\n\t", "which neither charts nor pages can show")
LINE = _without_controls("", "but must be one line")
_DECISIVE = {"decisive": True}
_WORDS = PlainSerializer(
    lambda text, info: "" if info.context == _DECISIVE else text, return_type=str
)
#: Words for readers, on which no result depends.
Text = Annotated[str, Field(min_length=1, max_length=2000), PROSE, _WORDS]
#: A text of one line, for an axis, a legend or a cell of a table.
Label = Annotated[str, Field(min_length=1, max_length=2000), LINE, _WORDS]


class Document(BaseModel):
    """A frozen model that rejects unknown keys, NaN and infinities, and converts no types."""

    # The texts below fields are for the schemas (`cli.schema`); pydantic would read all sources for
    # them at each start.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    def decisive(self, **options: Any) -> dict[str, Any]:
        """Return what the document says, without defaults, as plain data for a hash.

        Words for readers are empty.
        """
        return self.model_dump(mode="json", context=_DECISIVE, exclude_defaults=True, **options)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, document: Any) -> Any:
        known = cls.model_fields
        if not isinstance(document, dict) or document.keys() <= known.keys():
            return document
        problems = []
        for key, value in document.items():
            if key not in known:
                words = {"words": no_such_key(str(key), [*known])}
                kind = PydanticCustomError("unknown_key", "{words}", words)
                problems.append(InitErrorDetails(type=kind, loc=(str(key),), input=value))
        raise ValidationError.from_exception_data(cls.__name__, problems)


def one_of(*names: str) -> Any:
    """Return a validator: a document must have exactly one of these keys."""
    message = f"give exactly one of {', '.join(names[:-1])} and {names[-1]}"

    def check(document: Document) -> Document:
        if sum(getattr(document, name) is not None for name in names) != 1:
            raise ValueError(message)
        return document

    return model_validator(mode="after")(check)


def no_such_key(key: str, known: list[str]) -> str:
    """Return the message on an unknown key, with the nearest known one."""
    # A part of a long name, such as `ssthresh`, is not a close match of it.
    near = [name for name in known if key in name] or get_close_matches(key, known)
    nearest = f"nearest: {near[0]}; " if near else ""
    return f"no such key; {nearest}every key: {REFERENCE}"
