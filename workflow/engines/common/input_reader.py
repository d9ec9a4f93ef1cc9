"""Strict reader of input files: a file is complete and for this engine, or is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from scenario import (
    DIRECTIONS,
    Cbr,
    CoDel,
    DropTail,
    FqCoDel,
    Head,
    Host,
    InputError,
    Link,
    ListedLoss,
    Monitor,
    Node,
    NoLoss,
    NoShaper,
    Pfifo,
    Pie,
    RandomLoss,
    Red,
    Route,
    Run,
    Scenario,
    Tcp,
    TokenBucket,
    TokenBucketFilter,
)

VERSION = "1"
T = TypeVar("T")
_QUEUES = {
    "droptail": DropTail,
    "pfifo": Pfifo,
    "red": Red,
    "codel": CoDel,
    "fq_codel": FqCoDel,
    "pie": Pie,
}
_LOSSES = {"none": NoLoss, "random": RandomLoss, "listed": ListedLoss}
_SHAPERS = {"none": NoShaper, "token_bucket": TokenBucket, "tbf": TokenBucketFilter}
_FLOWS = {"tcp": Tcp, "cbr": Cbr}


def read_input_file(path: str, engine: str) -> Scenario:
    """Read an input file for `engine`; InputError names the line of a fault."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): give an input file") from None
    except UnicodeDecodeError:
        text = ""
    lines = _Lines(text)
    try:
        return _read(lines, engine)
    except InputError as error:
        remedy = f"give an input file that replicate made for {engine}"
        raise InputError(f"{path}: line {lines.number}: {error}: {remedy}") from None


def _read(lines: _Lines, engine: str) -> Scenario:
    head = lines.next(Head, "input")
    if head.version != VERSION:
        raise InputError(f"an input file of version {head.version}, not {VERSION}")
    if head.engine != engine:
        raise InputError(f"an input file for engine {head.engine}, not {engine}")
    if not re.fullmatch("[0-9a-f]{64}", head.scenario):
        raise InputError("input.scenario: not a hash")
    scenario = Scenario(head.scenario, lines.next(Run, "run"), lines.next(Host, "host"))
    scenario.nodes = list(lines.all(Node, "node"))
    for link in lines.all(Link, "link"):
        link.queues = [lines.next_of(_QUEUES, f"queue_{way}") for way in DIRECTIONS]
        link.losses = [lines.next_of(_LOSSES, f"loss_{way}") for way in DIRECTIONS]
        link.shapers = [lines.next_of(_SHAPERS, f"shaper_{way}") for way in DIRECTIONS]
        scenario.links.append(link)
    while lines.word == "flow":
        scenario.flows.append(lines.next_of(_FLOWS, "flow", 2))
    scenario.monitors = list(lines.all(Monitor, "monitor"))
    scenario.routes = list(lines.all(Route, "route"))
    lines.finish()
    _check_places(scenario)
    return scenario


class _Lines:
    """The lines of an input file, one after the other."""

    def __init__(self, text: str) -> None:
        # A last line without a line end was cut.
        self._lines = [line.split(" ") for line in text.split("\n")[:-1]]
        self.number = 0

    @property
    def word(self) -> str:
        """Return the first word of the next line; empty at the end."""
        return self._lines[self.number][0] if self.number < len(self._lines) else ""

    def next(self, kind: type[T], word: str) -> T:
        """Return the statement of the next line, which must begin with `word`."""
        return _take(kind, word, self._words(word))

    def next_of(self, kinds: dict[str, type[Any]], word: str, at: int = 0) -> Any:
        """Return the statement of the next line; its kind is at position `at`."""
        words = self._words(word)
        if words[at : at + 1] != ["kind"] or words[at + 1 : at + 2] == []:
            raise InputError(f"{word}: without its kind")
        if words[at + 1] not in kinds:
            raise InputError(f"{word}.kind: {words[at + 1]!r} is not one")
        return _take(kinds[words[at + 1]], word, words[:at] + words[at + 2 :])

    def all(self, kind: type[T], word: str) -> Iterator[T]:
        """Yield the statements of the next lines that begin with `word`."""
        while self.word == word:
            yield self.next(kind, word)

    def finish(self) -> None:
        """Require the last line."""
        if self._words("end") or self.number < len(self._lines):
            raise InputError("something follows the end")

    def _words(self, word: str) -> list[str]:
        found = self.word
        self.number += 1
        if found != word:
            raise InputError(f"{found!r} where {word} belongs" if found else "nothing, too early")
        return self._lines[self.number - 1][1:]


def _take(kind: type[T], word: str, words: list[str]) -> T:
    """Return a statement of names and values in the order of its fields.

    The last fields may be missing if they have a default.
    """
    wanted = [
        f
        for f in fields(kind)  # type: ignore[arg-type]
        if f.default_factory is MISSING and (f.default is MISSING or f.name in words[::2])
    ]
    names = [f.name for f in wanted]
    if words[::2] != names or len(words) % 2:
        raise InputError(f"{word}: not {', '.join(names) or 'nothing'}, each with a value")
    values = {}
    for given, text in zip(wanted, words[1::2], strict=True):
        try:
            values[given.name] = _VALUES[str(given.type)](text)
        except ValueError:
            raise InputError(f"{word}.{given.name}: {text!r} is not one") from None
    return kind(**values)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def _optional(text: str) -> int | None:
    return None if text == "none" else _whole(text)


def _flag(text: str) -> bool:
    return bool(("0", "1").index(text))


def _word(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _numbers(text: str) -> list[int]:
    return [_whole(item) for item in text.split(",")]


#: The reader of a value, by the annotation of its field.
_VALUES: dict[str, Any] = {
    "str": _word,
    "int": _whole,
    "float": _number,
    "bool": _flag,
    "int | None": _optional,
    "list[int]": _numbers,
}


def _check_places(scenario: Scenario) -> None:
    """Check that every node, flow and link that is referred to exists."""
    ends = [end for link in scenario.links for end in link.ends]
    ends += [end for flow in scenario.flows for end in (flow.source, flow.destination)]
    ends += [route.to for route in scenario.routes]
    losses = [loss for link in scenario.links for loss in link.losses]
    lost = [loss.flow for loss in losses if isinstance(loss, ListedLoss)]
    watched = [way.link for way in (*scenario.monitors, *scenario.routes)]
    for what, places, size in (
        ("node", ends, len(scenario.nodes)),
        ("flow", lost, len(scenario.flows)),
        ("link", watched, len(scenario.links)),
    ):
        if max(places, default=-1) >= size:
            raise InputError(f"{what} {max(places)} is not there")
    if any(way.direction not in DIRECTIONS for way in (*scenario.monitors, *scenario.routes)):
        raise InputError("a direction is neither ab nor ba")
