"""Read and write files: YAML, models, JSON, atomic writes, hashes, downloads."""

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from replication.base.errors import InputError, cut, quoted

_MOST_DIGITS = 1000
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
                    raise _problem(key, f"key {quoted(key.value)} is not text; put it in quotes")
                if key.value in seen:
                    raise _problem(key, f"key {quoted(key.value)} is given twice")
                seen.add(key.value)
        super().flatten_mapping(node)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return a whole number, of which Python reads no more than some thousand digits."""
        if len(node.value) > _MOST_DIGITS:
            raise _problem(node, f"a number has more than {_MOST_DIGITS} digits; shorten it")
        return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _problem(node: yaml.Node | yaml.Event, text: str) -> yaml.MarkedYAMLError:
    mark: Any = node.start_mark
    return yaml.constructor.ConstructorError(None, None, text, mark)


_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(\.\d*)?|(\.\d+))([eE][-+]?\d+)?", re.ASCII)
for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", [*"~nN", ""]),
    ("bool", "^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", f"^{_NUMBER.pattern}$", list("-+.0123456789")),
    ("merge", "^<<$", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


#: Most values of a document with its aliases expanded, and the deepest nesting.
_MOST_VALUES, _DEEPEST = 200_000, 100
#: Brackets, and the indicators of nested blocks at the start of a line.
_ALIAS = re.compile(rb"\*[^\s*]")
_BRACKET, _INDICATORS = re.compile(rb"[\[\]{}]"), re.compile(rb"^[ ?:-]{100,}", re.MULTILINE)


def parse_yaml(text: str | bytes) -> Any:
    """Return the document in a text; InputError names the line of an error."""
    with _yaml_errors(text):
        _check_depth(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _ALIAS.search(text if isinstance(text, bytes) else text.encode()):
                _check_expanded(node, {})
            return loader.construct_document(node)
        finally:
            loader.dispose()


def compose_yaml(text: str | bytes) -> yaml.Node | None:
    """Return the nodes of a text, which have lines; InputError as `parse_yaml`."""
    with _yaml_errors(text):
        _check_depth(text)
        return yaml.compose(text, Loader=_Loader)


@contextlib.contextmanager
def _yaml_errors(text: str | bytes) -> Iterator[None]:
    try:
        yield
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n" if isinstance(text, str) else b"\n") + 1  # type: ignore[arg-type]
        raise InputError(f"line {line}: is not UTF-8 text without control characters") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        problem = cut(str(error.problem or error.context), 200)
        raise InputError(f"{where}{problem}") from None
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"is not YAML: {cut(' '.join(str(error).split()), 200)}") from None


def _check_depth(text: str | bytes) -> None:
    """Refuse a text that is nested too deeply for libyaml, which would end the process."""
    content = text.encode() if isinstance(text, str) else text
    depth = deepest = 0
    for bracket in _BRACKET.findall(content):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest <= _DEEPEST and not _INDICATORS.search(content):
        return
    # Brackets may be text. Events are exact, slower, and not nested themselves.
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _problem(event, f"is nested more than {_DEEPEST} levels deep; write it flat")


def _check_expanded(node: yaml.Node, sizes: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node with its aliases expanded."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if node in sizes:
        if not sizes[node]:
            raise _problem(node, "contains itself; remove the alias")
        return sizes[node]
    sizes[node] = 0
    size = 1
    for entry in node.value:
        parts = entry if isinstance(entry, tuple) else (entry,)
        size += sum(_check_expanded(part, sizes) for part in parts)
    if size > _MOST_VALUES:
        raise _problem(node, f"has more than {_MOST_VALUES} values; use fewer aliases")
    sizes[node] = size
    return size


def read_number(text: str) -> int | float | None:
    """Return the number in a text, None without one; InputError if it is too large."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number = float(text)
    if math.isinf(number):
        raise InputError(f"number {text[:60]} is too large")
    return number if any(match.groups()) else int(text)


def read_yaml(path: Path) -> Any:
    """Return the document in `path`; InputError if it is missing or invalid."""
    try:
        return parse_yaml(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except InputError as error:
        separator = ", " if str(error).startswith("line ") else ": "
        raise InputError(f"{path}{separator}{error}") from None


def read_mapping(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    """Return the mapping in `path`; InputError if it is none, with examples of its keys."""
    document = read_yaml(path)
    if not isinstance(document, dict):
        kind = {list: "a list", type(None): "empty"}.get(type(document), "a single value")
        examples = ", ".join(itertools.islice(keys, 3))
        raise InputError(f"{path}, line 1: is {kind}; it must have keys, such as {examples}")
    return document


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
    """Return how the name of a temporary file or folder starts; it names the owner.

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


def fetch(address: str, path: Path, sha256: str, size: int | None = None) -> None:
    """Download `address` (https:// or file://) to `path`.

    InputError: the file has a different SHA-256 or not `size` bytes, of which no more are read.
    """
    import urllib.request  # slow to import, and few runs need it

    if path.is_file() and size in (None, path.stat().st_size) and file_sha256(path) == sha256:
        return
    if not address.startswith(("https://", "file://")):
        raise InputError(f"{address}: is no address; give one that starts with https:// or file://")
    with atomic(path) as temporary:
        try:
            with urllib.request.urlopen(address, timeout=_DOWNLOAD_TIMEOUT_S) as answer:
                temporary.write_bytes(answer.read(None if size is None else size + 1))
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"{address}: cannot be fetched ({reason})") from None
        if size is not None and temporary.stat().st_size != size:
            raise InputError(f"{address}: does not have {size} bytes: the file has changed")
        fetched = file_sha256(temporary)
        if fetched != sha256:
            text = f"{address}: has SHA-256 {fetched}, not {sha256}: the file has changed"
            raise InputError(text)


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
    files = [path for path in paths if path.is_file()]
    for path in sorted(files, key=lambda p: (p.name, p.as_posix())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest() if files else ""
