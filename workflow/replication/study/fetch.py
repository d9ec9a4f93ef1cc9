"""Fetch: a file from an address, kept only if it has the SHA-256 that was written down for it."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path

from replication.study.errors import InputError
from replication.study.files import atomic, file_sha256

#: Seconds without an answer.
_PATIENCE_S = 60


def fetch(address: str, path: Path, sha256: str) -> None:
    """Fetch `address` (https:// or file://) into `path`, if not there; else InputError."""
    if path.is_file() and file_sha256(path) == sha256:
        return
    if not address.startswith(("https://", "file://")):
        raise InputError(f"{address}: is no address; give one that starts with https:// or file://")
    with atomic(path) as temporary:
        try:
            with (
                urllib.request.urlopen(address, timeout=_PATIENCE_S) as answer,
                temporary.open("wb") as file,
            ):
                shutil.copyfileobj(answer, file)
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise InputError(f"{address}: cannot be fetched ({reason})") from None
        if (found := file_sha256(temporary)) != sha256:
            raise InputError(f"{address}: has SHA-256 {found}, not {sha256}: the file has changed")
