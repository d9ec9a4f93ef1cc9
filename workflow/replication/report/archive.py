"""Archives: files by name, packed to the same bytes every time and unpacked with suspicion.

An archive is made here and carried by git, yet whoever opens one need not know who made it: nothing
in it decides where anything is written, and it is bounded before any of it is looked at.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from replication.study.errors import InputError

#: What an archive may hold unpacked: ten times the tables of every study on every engine.
LIMIT_BYTES = 200_000_000
#: What unpacking may take for xz's own dictionary; our archives need 8 MiB.
DICTIONARY_BYTES = 2**27


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a tar.xz of `files` by name; the same files give the same bytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return lzma.compress(content.getvalue(), preset=6)


def unpack(packed: bytes) -> dict[str, bytes]:
    """Return the files of a tar.xz by name.

    Raises
    ------
    InputError
        It is damaged, holds more than `LIMIT_BYTES`, or has an entry other than a file with a
        plain relative name of its own.
    """
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompressed(packed)), mode="r:") as archive:
            for entry in archive:
                _refuse(entry, files)
                content = archive.extractfile(entry)
                files[entry.name] = content.read() if content else b""
        folders = {str(folder) for name in files for folder in PurePosixPath(name).parents}
        for name in folders & files.keys():
            raise ValueError(f"entry {name!r} is a file and a folder")
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        raise InputError(f"is damaged ({error})") from None
    return files


@contextlib.contextmanager
def folder_of(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Give a folder that holds `files`, which is gone after the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        yield folder


def _decompressed(packed: bytes) -> bytes:
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DICTIONARY_BYTES)
    content = reader.decompress(packed, max_length=LIMIT_BYTES + 1)
    if len(content) > LIMIT_BYTES:
        raise ValueError(f"holds more than {LIMIT_BYTES / 1e6:g} MB")
    if not reader.eof:
        raise ValueError("ends too early")
    if reader.unused_data:
        raise ValueError("goes on after its end")
    return content


def _refuse(entry: tarfile.TarInfo, seen: Mapping[str, bytes]) -> None:
    """Raise ValueError unless an entry is a file with a plain relative name that is new."""
    path = PurePosixPath(entry.name)
    if entry.type != tarfile.REGTYPE or entry.issparse():
        problem = "is no plain file"
    elif (
        path.is_absolute()
        or ".." in path.parts
        or path.as_posix() != entry.name
        or not entry.name.isprintable()
    ):
        problem = "has no plain relative name"
    elif entry.name in seen:
        problem = "is there twice"
    elif not 0 <= entry.size <= LIMIT_BYTES:
        problem = f"claims {entry.size} bytes"
    else:
        return
    raise ValueError(f"entry {entry.name!r} {problem}")
