"""Reading and writing files safely: atomic writes, YAML and models, content hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from replication.study.errors import InputError, describe
from replication.study.storage.yaml_document import MOST_BYTES, parse_yaml

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_yaml(path: Path) -> Any:
    """Return the document in `path`.

    Raises
    ------
    InputError
        The file is missing, not UTF-8, or not what `study.storage.yaml_document` reads.
    """
    try:
        with path.open("rb") as file:
            return parse_yaml(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except InputError as error:
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


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as `sha256sum` gives it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 over names and contents of `paths`, whatever the order they come in."""
    digest = hashlib.sha256()
    # Folders decide between files of one name.
    for path in sorted(paths, key=lambda p: (p.name, p.as_posix())):
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()
