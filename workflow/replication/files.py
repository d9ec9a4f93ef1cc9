"""Reading and writing files safely: atomic writes, YAML without surprises, content hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from replication.errors import InputError, describe

ModelT = TypeVar("ModelT", bound=BaseModel)


class _Loader(yaml.CSafeLoader):
    """Safe YAML that refuses a key given twice (YAML would silently keep the last)."""

    def construct_document(self, node: yaml.Node) -> Any:
        # Checked before merge keys (<<) are unfolded: an entry beside one overrides what it brings.
        _refuse_repeated_keys(node)
        return super().construct_document(node)


def _refuse_repeated_keys(root: yaml.Node) -> None:
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice = {key for key in keys if keys.count(key) > 1}
            if twice:
                line = node.start_mark.line + 1
                raise InputError(f"key {min(twice)!r} is given twice in the mapping at line {line}")
            waiting += [part for pair in node.value for part in pair]


# YAML 1.1 reads 2.0e6 as text unless the exponent is signed; people write 2.0e6 and mean a number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?\d[\d_]*(?:\.\d*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def read_yaml(path: Path) -> Any:
    """Return the document in `path`.

    Raises
    ------
    InputError
        The file is missing, not UTF-8, not YAML, or repeats a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        detail = " ".join(str(error).split())
        raise InputError(f"{path}: is not valid YAML: {detail}") from None
    except (InputError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None


def read_model(path: Path, model: type[ModelT]) -> ModelT:
    """Read the YAML in `path` as `model`; InputError names the file and each wrong field."""
    document = read_yaml(path)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; it takes `path`'s place only if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; results are meant to be read by others.
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` atomically as UTF-8."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of `content`, as `sha256sum` gives it for a file."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 over names and contents of `paths`, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda p: p.name):
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()
