"""Strict reader of input files: a file is complete and for this engine, or is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from scenario import (
    DIRECTIONS,
    Cake,
    Cbr,
    Change,
    CoDel,
    DropTail,
    FqCoDel,
    FqPie,
    Host,
    InputError,
    Link,
    ListedLoss,
    Monitor,
    Node,
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

VERSION = 2
T = TypeVar("T")
_QUEUES = {
    "droptail": DropTail,
    "pfifo": Pfifo,
    "red": Red,
    "codel": CoDel,
    "fq_codel": FqCoDel,
    "pie": Pie,
    "fq_pie": FqPie,
    "cake": Cake,
}
_LOSSES = {"random": RandomLoss, "listed": ListedLoss}
_SHAPERS = {"token_bucket": TokenBucket, "tbf": TokenBucketFilter}
_FLOWS = {"tcp": Tcp, "cbr": Cbr}


def read_input_file(path: str, engine: str) -> Scenario:
    """Read an input file for `engine`; InputError names the key of a fault."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): give an input file") from None
    try:
        return _read(_parse(content), engine)
    except InputError as error:
        remedy = f"give an input file that replicate made for {engine}"
        raise InputError(f"{path}: {error}: {remedy}") from None


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise InputError("is not a JSON object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise InputError("a key is given twice")
    return members


def _read(document: dict[str, Any], engine: str) -> Scenario:
    version, made_for = document.pop("version", None), document.pop("engine", None)
    sha256 = document.pop("scenario", None)
    if version != VERSION:
        raise InputError(f"an input file of version {version}, not {VERSION}")
    if made_for != engine:
        raise InputError(f"an input file for engine {made_for}, not {engine}")
    if not isinstance(sha256, str) or not re.fullmatch("[0-9a-f]{64}", sha256):
        raise InputError("scenario: not a hash")
    scenario = _take(Scenario, "input", document | {"sha256": sha256})
    _check_places(scenario)
    return scenario


def _take(kind: type[T], where: str, members: Any) -> T:
    """Return the members of an object as a dataclass; each field has a key of its name.

    A field that has a default may be missing.
    """
    if not isinstance(members, dict):
        raise InputError(f"{where}: not an object")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name in members:
        if name not in known:
            raise InputError(f"{where}.{name}: no such key")
    values = {}
    for name, field in known.items():
        if name in members:
            values[name] = _READERS[str(field.type)](f"{where}.{name}", members[name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{where}.{name}: is missing")
    return kind(**values)


def _is_not_one(where: str, value: Any) -> InputError:
    return InputError(f"{where}: {str(value)[:60]!r} is not one")


def _whole(where: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _is_not_one(where, value)
    return value


def _flag_or_whole(where: str, value: Any) -> int:
    return value if isinstance(value, bool) else _whole(where, value)


def _number(where: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise _is_not_one(where, value)
    return float(value)


def _flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _is_not_one(where, value)
    return value


def _word(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _is_not_one(where, value)
    return value


def _list(reader: Callable[[str, Any], T]) -> Callable[[str, Any], list[T]]:
    def read(where: str, values: Any) -> list[T]:
        if not isinstance(values, list):
            raise _is_not_one(where, values)
        return [reader(f"{where}[{place}]", value) for place, value in enumerate(values)]

    return read


def _optional(reader: Callable[[str, Any], T]) -> Callable[[str, Any], T | None]:
    return lambda where, value: None if value is None else reader(where, value)


def _of(kind: type[T]) -> Callable[[str, Any], T]:
    return lambda where, members: _take(kind, where, members)


def _one_of(kinds: dict[str, type[Any]]) -> Callable[[str, Any], Any]:
    """Return the reader of an object whose `kind` is one of these."""

    def read(where: str, members: Any) -> Any:
        if not isinstance(members, dict) or members.get("kind") not in kinds:
            raise InputError(f"{where}.kind: not one of {', '.join(kinds)}")
        rest = {name: value for name, value in members.items() if name != "kind"}
        return _take(kinds[members["kind"]], where, rest)

    return read


#: The reader of a value, by the annotation of its field.
_READERS: dict[str, Callable[[str, Any], Any]] = {
    "str": _word,
    "int": _whole,
    "float": _number,
    "bool": _flag,
    "bool | int": _flag_or_whole,
    "int | None": _optional(_whole),
    "float | None": _optional(_number),
    "list[int]": _list(_whole),
    "list[int] | None": _optional(_list(_whole)),
    "Run": _of(Run),
    "Host": _of(Host),
    "Queue": _one_of(_QUEUES),
    "Loss | None": _optional(_one_of(_LOSSES)),
    "TokenBucket | None": _optional(_one_of(_SHAPERS)),
    "list[Node]": _list(_of(Node)),
    "list[Link]": _list(_of(Link)),
    "list[Change]": _list(_of(Change)),
    "list[Flow]": _list(_one_of(_FLOWS)),
    "list[Monitor]": _list(_of(Monitor)),
    "list[Route]": _list(_of(Route)),
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
