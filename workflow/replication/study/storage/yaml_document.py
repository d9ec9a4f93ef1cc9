"""YAML as people mean it: the values of JSON, anchors and merge keys, within bounds.

Numbers, truth values and null are those that YAML 1.2 shares with JSON, and a number may have a
sign, a bare point or an exponent. All else is text: ``yes``, ``010`` and ``1:30`` too, of which
YAML 1.1 makes True, 8 and 90.

The document is built from the parser's events in one pass without recursion, and counted while it
is read: an alias counts as all that it stands for, so that no text is too deep or too large for
what is made of it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from replication.study.errors import InputError

#: Larger than the largest study by an order of magnitude.
MOST_BYTES = 2**20
MOST_DEPTH = 50
MOST_NODES = 200_000
#: Characters of a number: no float has more digits that count.
MOST_DIGITS = 40

_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(\.\d*)?|(\.\d+))([eE][-+]?\d+)?", re.ASCII)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
#: Stand for "no key yet" and for the key ``<<``, which no text equals.
_NO_KEY, _MERGE = object(), object()


def parse_yaml(raw: bytes) -> Any:
    """Return the document that a file's bytes hold: dicts, lists, texts, numbers, bools, None.

    Raises
    ------
    InputError
        It is not YAML in UTF-8, has more than one document, a tag, a key twice or a key that is
        not text, a number that no float holds, or goes beyond a bound of this module.
    """
    if len(raw) > MOST_BYTES:
        raise InputError(f"is larger than {MOST_BYTES} bytes; no study needs that")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text") from None
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.YAMLError as error:
        detail = " ".join(str(error).split())
        raise InputError(f"is not valid YAML: {detail}") from None
    return builder.document


@dataclass
class _Open:
    """A mapping or a list whose end has not been read."""

    value: dict[str, Any] | list[Any]
    line: int
    anchor: str | None
    nodes_before: int
    key: Any = _NO_KEY
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Builds a document of a parser's events."""

    def __init__(self) -> None:
        self.document: Any = None
        self._documents = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def take(self, event: Any) -> None:
        """Take the next event."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise InputError(f"line {line}: holds a second document; keep one")
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise InputError(f"line {line}: *{event.anchor} stands for nothing written before")
            value, size = self._anchors[event.anchor]
            self._count(size, line)
            self._add(value, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(line)
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._count(1, line)
            if event.tag is not None:
                raise InputError(f"line {line}: tag {event.tag} is not read; quote what is text")
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event, line)
            else:
                value = {} if isinstance(event, yaml.MappingStartEvent) else []
                self._open.append(_Open(value, line, event.anchor, self._nodes - 1))
                if len(self._open) > MOST_DEPTH:
                    raise InputError(f"line {line}: brackets or indents deeper than {MOST_DEPTH}")

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise InputError(
                f"line {line}: {self._nodes} values, more than {MOST_NODES}, an alias (*) counted "
                "as all that it stands for; write fewer"
            )

    def _scalar(self, event: Any, line: int) -> None:
        is_plain = event.implicit[0]
        place = self._open[-1] if self._open else None
        is_key = place is not None and isinstance(place.value, dict) and place.key is _NO_KEY
        if is_key and is_plain and event.value == "<<":
            value: Any = _MERGE
        else:
            value = _plain(event.value, line) if is_plain else event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, line)

    def _close(self, line: int) -> None:
        done = self._open.pop()
        if done.merged and isinstance(done.value, dict):
            # What is merged first yields to what is merged later, and both to the mapping's own.
            whole: dict[str, Any] = {}
            for mapping in reversed(done.merged):
                whole |= mapping
            done.value = whole | done.value
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, self._nodes - done.nodes_before)
        self._add(done.value, line)

    def _add(self, value: Any, line: int) -> None:
        """Put a finished value where it belongs."""
        if not self._open:
            self.document = value
            return
        place = self._open[-1]
        if isinstance(place.value, list):
            place.value.append(value)
        elif place.key is _NO_KEY:
            self._take_key(place, value, line)
        elif place.key is _MERGE:
            place.merged = _mappings(value, line)
            place.key = _NO_KEY
        else:
            place.value[place.key] = value
            place.key = _NO_KEY

    @staticmethod
    def _take_key(place: _Open, key: Any, line: int) -> None:
        if key is not _MERGE and not isinstance(key, str):
            shown = "a mapping or list" if isinstance(key, dict | list) else repr(key)
            raise InputError(f"line {line}: key {shown} is not text; put it in quotes")
        if key in place.value or (key is _MERGE and place.merged):
            name = "<<" if key is _MERGE else key
            raise InputError(
                f"line {line}: key {name!r} is given twice in the mapping at line {place.line}"
            )
        place.key = key


def _mappings(value: Any, line: int) -> list[dict[str, Any]]:
    """Return what a merge key brings: a mapping, or several."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in found):
        raise InputError(f"line {line}: << takes a mapping or a list of mappings")
    return found


def _plain(text: str, line: int) -> Any:
    """Return what a text without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        number = read_number(text)
    except InputError as error:
        raise InputError(f"line {line}: {error}") from None
    return text if number is None else number


def read_number(text: str) -> int | float | None:
    """Return the number that a text is, None if it is none.

    Raises
    ------
    InputError
        It has more characters than `MOST_DIGITS`, or no float is as large.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    if len(text) > MOST_DIGITS:
        raise InputError(
            f"a number of {len(text)} characters, more than {MOST_DIGITS}; round it, or put it in "
            "quotes if it is text"
        )
    if not any(found.groups()):
        return int(text)
    number = float(text)
    if math.isinf(number):
        raise InputError(f"number {text} is too large")
    return number
