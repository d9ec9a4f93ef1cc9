"""Read documents as models; file and line of a value are looked up when an error is described."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from replication.base.errors import (
    InputError,
    Place,
    Problem,
    describe,
    in_one_line,
    problems,
    quoted,
)
from replication.base.files import compose_yaml, read_mapping

ModelT = TypeVar("ModelT", bound=BaseModel)

#: Keys that name an entry of a list.
_IDS = ("id", "key", "engine", "link", "date")


class Lines:
    """Finds lines in files that are read as one document; each key is in one of them."""

    def __init__(self, *files: Path) -> None:
        self._roots = {path: _composed(path) for path in files}

    def position(self, place: Place) -> str:
        """Return "file, line N" of a place.

        Parts of the place that the files do not have are skipped: the line is that of what
        surrounds them. A place in none of the files is at the start of the first.
        """
        for path, root in self._roots.items():
            if place and root is not None and (start := _step(root, place[0])) is not None:
                return f"{path}, line {_line(*start, place[1:])}"
        path, root = next(iter(self._roots.items()))
        return f"{path}" if root is None else f"{path}, line {root.start_mark.line + 1}"


def read_model(path: Path, model: type[ModelT], *more: Path) -> ModelT:
    """Read `path` and the keys of `more` files as `model`; InputError names file and line."""
    document: dict[str, Any] = {}
    sources: dict[str, Path] = {}
    for file in (path, *more):
        fields = model.model_fields
        keys = read_mapping(file, [file.stem] if file.stem in fields else fields)
        for key in sorted(keys.keys() & sources.keys()):
            where = f"{Lines(file).position((key,))}: {quoted(key)}"
            raise InputError(f"{where} is in {sources[key].name} already; keep one")
        sources |= dict.fromkeys(keys, file)
        document |= keys
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InputError(describe_at((path, *more), error, document)) from None


def read_models(path: Path, model: type[ModelT]) -> dict[str, ModelT]:
    """Read the mapping in `path`, whose values are all of one `model`; errors as `read_model`."""
    document = read_mapping(path, ["the name of an entry"])
    try:
        return TypeAdapter(dict[str, model]).validate_python(document)  # type: ignore[valid-type]
    except ValidationError as error:
        raise InputError(describe_at([path], error, document)) from None


@contextlib.contextmanager
def located(*files: Path) -> Iterator[None]:
    """Add file and line to the block's errors whose place is in `files`, read as one document."""
    try:
        yield
    except ValidationError as error:
        raise InputError(f"{files[0]}: {describe(error)}") from None
    except InputError as error:
        if error.place is None:
            raise
        raise InputError(f"{Lines(*files).position(error.place)}: {error}") from None


@contextlib.contextmanager
def within(*place: str | int, words: str = "") -> Iterator[None]:
    """Put the places of the block's errors into a surrounding document, which `words` name."""
    try:
        yield
    except InputError as error:
        raise error.under(*place, words=words) from None


def describe_at(files: Sequence[Path], error: ValidationError, document: Any) -> str:
    """Return the problems of a document in one line, each with its file and line."""
    # The uses of an anchor are one place in the file.
    distinct: dict[tuple[str, str], Problem] = {}
    lines = Lines(*files)
    for problem in problems(error, document):
        distinct.setdefault((lines.position(problem.place), problem.text), problem)
    return in_one_line([f"{at}: {problem}" for (at, _), problem in distinct.items()])


def _composed(path: Path) -> yaml.Node | None:
    try:
        return compose_yaml(path.read_bytes())
    except (OSError, InputError):
        return None


def _line(key: yaml.Node, node: yaml.Node, place: Place) -> int:
    for part in place:
        if (step := _step(node, part)) is not None:
            key, node = step
    return int(key.start_mark.line) + 1


def _step(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return where a part of a node starts, and the part."""
    if isinstance(node, yaml.SequenceNode):
        entries = [e for n, e in enumerate(node.value) if part == n or _is_called(e, part)]
        return (entries[0], entries[0]) if entries else None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    for key, value in pairs:
        if key.value == part:
            return key, value
    merged = [value for key, value in pairs if key.value == "<<"]
    return next((step for value in merged if (step := _step(value, part)) is not None), None)


def _is_called(entry: yaml.Node, name: str | int) -> bool:
    if isinstance(entry, yaml.MappingNode):
        names = {key.value: value.value for key, value in entry.value}
        return any(names.get(key) == name for key in _IDS)
    return bool(entry.value == name)
