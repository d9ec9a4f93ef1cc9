"""Strict reader of scenario files: every refusal names the field, its value and the remedy.

Shared by the engines whose program is Python; it is laid beside their own modules when they are
built, and needs nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_LARGEST_FILE_BYTES = 256 << 20
REQUIRED: Any = object()


class InputError(Exception):
    """The scenario or the command line is bad, or asks for what the engine does not have."""


def refuse(path: str, what: object, remedy: str) -> NoReturn:
    """Raise the error that says what is wrong where, and what to do."""
    raise InputError(f"{path}: {what}: {remedy}")


def show(value: Any) -> str:
    """Return a short, printable form of a JSON value."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 66 else text[:63] + '..."'


def _constant(name: str) -> NoReturn:
    raise InputError(f"{name}: not a number: give a finite one")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{show(twice)}: is there twice: keep one")
    return document


def parse(path: str) -> Any:
    """Read a JSON document; NaN, repeated keys and trailing text are refused."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_FILE_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}): give a scenario file") from None
    try:
        return json.loads(content, parse_constant=_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise InputError("nested too deeply: give a scenario file") from None
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"is not JSON ({reason}): give a scenario file") from None


def sha256_of(document: Any) -> str:
    """Return the hash of the one JSON text that stands for a document whose fields were checked."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Fields:
    """The members of one JSON object, each asked for once; `finish` refuses what is left."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            refuse(path or "document", show(value), "give an object")
        self._value: dict[str, Any] = value
        self._prefix = f"{path}." if path else ""
        self._asked: set[str] = set()

    def path(self, key: str) -> str:
        """Return where `key` is in the document."""
        return self._prefix + key

    def take(self, key: str, default: Any = REQUIRED) -> Any:
        """Return a member as it is."""
        self._asked.add(key)
        if key in self._value:
            return self._value[key]
        if default is REQUIRED:
            refuse(self.path(key), "missing", "add it")
        return default

    def number(
        self, key: str, low: float, high: float, default: Any = REQUIRED, *, above: bool = False
    ) -> float:
        """Return a number in [low, high], or in (low, high] with `above`."""
        value = self.take(key, default)
        # A boolean is an int to Python, not to JSON.
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not (low < value if above else low <= value) or not value <= high:
            least = "above" if above else "from"
            refuse(self.path(key), show(value), f"give a number {least} {low:g} to {high:g}")
        return float(value)

    def nanoseconds(self, key: str, default: Any = REQUIRED, *, positive: bool = True) -> int:
        """Return a time, given in seconds, in nanoseconds: the resolution of all times."""
        value = self.number(key, 0, 1e6, default, above=positive)
        nanoseconds = round(value * 1e9)
        if positive and nanoseconds == 0:
            refuse(self.path(key), show(value), "give at least 1e-9")
        return nanoseconds

    def integer(self, key: str, low: int, high: int, default: Any = REQUIRED) -> int:
        """Return a whole number in [low, high]."""
        value = self.number(key, low, high, default)
        if value != math.floor(value):
            refuse(self.path(key), show(value), f"give an integer from {low} to {high}")
        return int(value)

    def count(self, key: str, default: Any = REQUIRED) -> int:
        """Return a whole number from 1."""
        return self.integer(key, 1, 1_000_000_000, default)

    def optional_count(self, key: str) -> int | None:
        """Return a whole number from 1, or None for null or nothing."""
        return None if self.take(key, None) is None else self.count(key)

    def boolean(self, key: str, default: Any = REQUIRED) -> bool:
        """Return true or false."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            refuse(self.path(key), show(value), "give true or false")
        return value

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.take(key)
        if not isinstance(value, str):
            refuse(self.path(key), show(value), "give a string")
        return value

    def choice(self, key: str, known: Sequence[str], default: Any = REQUIRED) -> str:
        """Return one of the known words."""
        value = self.take(key, default)
        if not isinstance(value, str) or value not in known:
            refuse(self.path(key), show(value), f"give one of {', '.join(known)}")
        return value

    def identifier(self, key: str) -> str:
        """Return a name that is safe in any file."""
        return identifier(self.take(key), self.path(key))

    def items(self, key: str, least: int, default: Any = REQUIRED) -> list[Any]:
        """Return a list of at least so many items."""
        value = self.take(key, default)
        if not isinstance(value, list):
            refuse(self.path(key), show(value), "give a list")
        if len(value) < least:
            refuse(self.path(key), f"{len(value)} items", f"give at least {least}")
        return value

    def inner(self, key: str) -> Fields:
        """Return the members of an object."""
        return Fields(self.take(key), self.path(key))

    def optional_inner(self, key: str) -> Fields | None:
        """Return the members of an object, or None for null or nothing."""
        return None if self.take(key, None) is None else self.inner(key)

    def finish(self) -> None:
        """Refuse members that nobody asked for."""
        for key in self._value:
            if key not in self._asked:
                known = ", ".join(sorted(self._asked))
                refuse(self.path(key[:64]), "unknown", f"remove it; known here: {known}")


def identifier(value: Any, path: str) -> str:
    """Return `value` if it is a safe name."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        refuse(path, show(value), "give 1 to 64 of a-z 0-9 _ . -, first a letter or digit")
    return value


def resolve(name: str, known: dict[str, int], path: str, what: str) -> int:
    """Return the index of a name that must be known."""
    if name not in known:
        refuse(path, f"'{name}'", f"name a {what} of the scenario")
    return known[name]


def register(names: Sequence[str], paths: Sequence[str]) -> dict[str, int]:
    """Return the index of each name; a second one of the same name is refused."""
    index: dict[str, int] = {}
    for name, path in zip(names, paths, strict=True):
        if name in index:
            refuse(path, f"'{name}'", "is there already: give each its own")
        index[name] = len(index)
    return index


def index_names(items: list[Any], what: str) -> dict[str, int]:
    """Return the index of each item, all of which are names."""
    paths = [f"{what}[{i}]" for i in range(len(items))]
    return register([identifier(v, p) for v, p in zip(items, paths, strict=True)], paths)


def index_ids(items: list[Any], what: str) -> dict[str, int]:
    """Return the index of each item, all of which are objects with an id."""
    names = [Fields(item, f"{what}[{i}]").identifier("id") for i, item in enumerate(items)]
    return register(names, [f"{what}[{i}].id" for i in range(len(items))])
