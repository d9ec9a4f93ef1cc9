"""Strict reading of the scenario's JSON: typed fields, and refusals that name field and remedy."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_DEEPEST = 32


class InputError(Exception):
    """Bad input, or a feature that Linux does not have: exit code 2."""


def refuse(field: str, value: object, remedy: str) -> NoReturn:
    """Raise the one-line complaint of a field."""
    raise InputError(f"{field}: {value}: {remedy}")


def describe(value: object) -> str:
    """Return a short text of a JSON value."""
    text = json.dumps(value) if not isinstance(value, (dict, list)) else type(value).__name__
    return text[:64]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise InputError(f"not valid JSON: duplicate key {key[:64]!r}")
        document[key] = value
    return document


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"not valid JSON: {name} is not a finite number")


def parse(text: str) -> dict[str, Any]:
    """Parse a whole document; no NaN, no duplicate keys, bounded depth."""
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}") from None
    if not isinstance(document, dict):
        refuse("document", describe(document), "give an object")
    return document


class Fields:
    """The members of one object; each is read once, and `finish` refuses what is left."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            refuse(path or "document", describe(value), "give an object")
        self._value = value
        self._path = path
        self._known: list[str] = []

    def path(self, key: str) -> str:
        """Return the full name of a member."""
        return f"{self._path}.{key}" if self._path else key

    def has(self, key: str) -> bool:
        """Return whether a member is there and not null."""
        return self._value.get(key) is not None

    def _find(self, key: str, kinds: tuple[type, ...], what: str, fallback: Any) -> Any:
        self._known.append(key)
        if key not in self._value:
            if fallback is None:
                refuse(self.path(key), "missing", f"give {what}")
            return fallback
        value = self._value[key]
        # A boolean is an int to Python, not to JSON.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            refuse(self.path(key), describe(value), f"give {what}")
        return value

    def number(
        self, key: str, low: float, high: float, *, above: bool = False, default: Any = None
    ) -> float:
        """Return a number of at least (or above) `low` and at most `high`."""
        value = self._find(key, (int, float), "a number", default)
        if not low <= value <= high or (above and value <= low) or not math.isfinite(value):
            least = "above" if above else "of at least"
            refuse(self.path(key), describe(value), f"give a number {least} {low:g}, to {high:g}")
        return float(value)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number between two bounds."""
        value = self._find(key, (int, float), "an integer", default)
        if not low <= value <= high or value != int(value):
            refuse(self.path(key), describe(value), f"give an integer from {low} to {high}")
        return int(value)

    def count(self, key: str, default: int | None = None) -> int:
        """Return a positive whole number."""
        return self.integer(key, 1, 10**9, default)

    def optional_count(self, key: str) -> int | None:
        """Return a positive whole number, or None where it is null or absent."""
        if not self.has(key):
            self._known.append(key)
            return None
        return self.count(key)

    def nanoseconds(self, key: str, *, positive: bool, default: float | None = None) -> int:
        """Return seconds as whole nanoseconds."""
        seconds = self.number(key, 0, 1e6, above=positive, default=default)
        ns = round(seconds * 1e9)
        if positive and ns == 0:
            refuse(self.path(key), f"{seconds:g}", "give at least 1e-9, the clock's resolution")
        return ns

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """Return true or false."""
        return bool(self._find(key, (bool,), "true or false", default))

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string."""
        return str(self._find(key, (str,), "a string", default))

    def identifier(self, key: str) -> str:
        """Return a string of the form that ids have."""
        return check_identifier(self.text(key), self.path(key))

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of the given strings."""
        text = self.text(key, default)
        if text not in choices:
            refuse(self.path(key), repr(text[:64]), f"give one of {', '.join(choices)}")
        return text

    def items(self, key: str, least: int, *, optional: bool = False) -> list[Any]:
        """Return a list of at least so many items."""
        value: list[Any] = self._find(key, (list,), "a list", [] if optional else None)
        if len(value) < least:
            refuse(self.path(key), f"{len(value)} items", f"give at least {least}")
        return value

    def object(self, key: str, *, nullable: bool = False) -> Any:
        """Return an object, or None where null is allowed."""
        if nullable and not self.has(key):
            self._known.append(key)
            return None
        return self._find(key, (dict,), "an object", None)

    def finish(self) -> None:
        """Refuse members that nothing asked for."""
        for name in self._value:
            if name not in self._known:
                known = ", ".join(sorted(self._known))
                refuse(self.path(name[:64]), "unknown key", f"remove it; known here: {known}")


def check_identifier(text: str, field: str) -> str:
    """Return `text` if it has the form of an id."""
    if not _IDENTIFIER.fullmatch(text):
        refuse(
            field,
            f"{text[:64]!r} is not an identifier",
            "use 1 to 64 of a-z 0-9 _ . - and begin with a letter or digit",
        )
    return text
