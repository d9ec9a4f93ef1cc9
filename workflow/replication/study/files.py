"""Read and write files: YAML, models, JSON, atomic writes, hashes, downloads."""

import contextlib
import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from replication.study.errors import InputError, describe

ModelT = TypeVar("ModelT", bound=BaseModel)
_TEXT = "tag:yaml.org,2002:str"
#: Remedy for a generated file that is damaged or of another version.
REMEDY = "remove it and run again"
_DOWNLOAD_TIMEOUT_S = 60


class _Loader(yaml.CSafeLoader):
    """YAML 1.2 with the values of JSON; a key may occur only once.

    ``yes``, ``010`` and ``1:30`` are text, which YAML 1.1 reads as True, 8 and 90.
    """

    yaml_implicit_resolvers: dict[str, list[Any]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check a mapping's keys before merge keys are resolved."""
        checked = self.__dict__.setdefault("checked", set())
        if node not in checked:
            checked.add(node)
            seen = set()
            for key, _ in node.value:
                if key.tag not in (_TEXT, "tag:yaml.org,2002:merge"):
                    raise _problem(key, f"key {key.value!r} is not text; put it in quotes")
                if key.value in seen:
                    raise _problem(key, f"key {key.value!r} is given twice")
                seen.add(key.value)
        super().flatten_mapping(node)


def _problem(node: yaml.Node, text: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(\.\d*)?|(\.\d+))([eE][-+]?\d+)?", re.ASCII)
for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", [*"~nN", ""]),
    ("bool", "^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", f"^{_NUMBER.pattern}$", list("-+.0123456789")),
    ("merge", "^<<$", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def parse_yaml(text: str | bytes) -> Any:
    """Return the document in a text; InputError names the line of an error."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{where}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"is not YAML: {' '.join(str(error).split())}") from None


def read_number(text: str) -> int | float | None:
    """Return the number in a text, None without one; InputError if it is too large."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number = float(text)
    if math.isinf(number):
        raise InputError(f"number {text[:60]} is too large")
    return number if any(found.groups()) else int(text)


def read_yaml(path: Path) -> Any:
    """Return the document in `path`; InputError if it is missing or invalid."""
    try:
        return parse_yaml(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_model(path: Path, model: type[ModelT], *more: Path) -> ModelT:
    """Read `path` and the keys of `more` files as `model`; InputError names file and field."""
    document: Any = read_yaml(path)
    source = dict.fromkeys(document if isinstance(document, dict) else (), path)
    for further in more:
        keys = read_yaml(further)
        if not isinstance(keys, dict):
            raise InputError(f"{further}: must be a mapping")
        for key in keys:
            if key in source:
                raise InputError(f"{further}: {key!r} is in {source[key].name} already; keep one")
        source |= dict.fromkeys(keys, further)
        document |= keys
    try:
        return model.model_validate(document)
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        wrong = source.get(str(place[0]), path) if place else path
        raise InputError(f"{wrong}{_line(wrong, place)}: {describe(error, document)}") from None


def _line(path: Path, place: tuple[int | str, ...]) -> str:
    """Return the line of an error's place in a file, as ", line 3"."""
    node, line = yaml.compose(path.read_bytes(), Loader=_Loader), 1
    for part in place:
        # A part that is the kind of a union is not in the file.
        if isinstance(node, yaml.SequenceNode):
            found = {number: (entry, entry) for number, entry in enumerate(node.value)}
        else:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            found = {key.value: (key, value) for key, value in pairs}
        if part in found:
            start, node = found[part]
            line = start.start_mark.line + 1
    return f", line {line}" if line > 1 else ""


def read_text(path: Path) -> str:
    """Return the text in `path`; InputError, with the remedy, if it is missing or damaged."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = error.strerror
        raise InputError(f"{path}: cannot be read ({reason}); run the workflow first") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not text ({error}); {REMEDY}") from None


def read_json(path: Path) -> Any:
    """Return the document in `path`; InputError if it is missing or damaged."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); {REMEDY}") from None


def private_prefix(name: str) -> str:
    """Return how the name of a temporary file or folder starts, which tells whose it is.

    `simulate.lifetime` removes those of killed processes.
    """
    return f".{name[:100]}.{os.getpid()}@{os.uname().nodename}."


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=private_prefix(path.name), dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private, but other users may read results.
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` atomically as UTF-8."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def fetch(address: str, path: Path, sha256: str) -> None:
    """Download `address` (https:// or file://) to `path`; InputError for another SHA-256."""
    import urllib.request  # slow to import, and few runs need it

    if path.is_file() and file_sha256(path) == sha256:
        return
    if not address.startswith(("https://", "file://")):
        raise InputError(f"{address}: is no address; give one that starts with https:// or file://")
    with atomic(path) as temporary:
        try:
            with urllib.request.urlopen(address, timeout=_DOWNLOAD_TIMEOUT_S) as answer:
                temporary.write_bytes(answer.read())
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"{address}: cannot be fetched ({reason})") from None
        if (found := file_sha256(temporary)) != sha256:
            raise InputError(f"{address}: has SHA-256 {found}, not {sha256}: the file has changed")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of `content` as hex digits."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 over names and contents of those of `paths` that are files."""
    digest = hashlib.sha256()
    found = [path for path in paths if path.is_file()]
    for path in sorted(found, key=lambda p: (p.name, p.as_posix())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest() if found else ""
