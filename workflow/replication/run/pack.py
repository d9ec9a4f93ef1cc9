"""Packs: the finished runs of a batch in one file, so that a store is not a folder for each run.

A pack is an uncompressed ZIP archive with a folder a run, and beside it a list of the runs in it,
which is written last: an archive without its list is not there.
"""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replication.study.files import atomic, write_text

#: Archives that stay open while one run after the other is read.
_MOST_OPEN = 16
#: What reading a damaged archive raises; a flag that says "encrypted" is a RuntimeError.
DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


@dataclass
class Packs:
    """The packs in `folder`, whoever wrote them; what is added while we look is seen."""

    folder: Path
    _changed_ns: int = -1
    _places: dict[str, list[Path]] = field(default_factory=dict)
    _open: dict[Path, zipfile.ZipFile] = field(default_factory=dict)

    def names(self) -> Iterable[str]:
        """Return the runs in the packs."""
        self._look()
        return self._places.keys()

    def copies(self, name: str, files: Iterable[str]) -> Iterator[dict[str, bytes]]:
        """Yield the `files` of a run by their names, from each pack that has it and can be read."""
        self._look()
        for path in self._places.get(name, []):
            try:
                archive = self._archive(path)
                yield {file: archive.read(f"{name}/{file}") for file in files}
            except DAMAGED:
                self._close(path)

    def add(self, folders: list[Path], files: Sequence[str]) -> None:
        """Write the `files` of the runs in `folders`, one each, into a pack; the folders stay.

        Raises
        ------
        OSError
            It cannot be written.
        """
        names = sorted(folder.name for folder in folders)
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        path = self.folder / f"{digest}.zip"
        self._close(path)
        with atomic(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for folder in sorted(folders):
                for file in files:
                    archive.writestr(f"{folder.name}/{file}", (folder / file).read_bytes())
        write_text(path.with_suffix(".runs"), "\n".join(names) + "\n")

    def _look(self) -> None:
        try:
            changed_ns = self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if changed_ns == self._changed_ns:
            return
        self._changed_ns = changed_ns
        self._places.clear()
        for listed in sorted(self.folder.glob("*.runs")):
            for name in listed.read_text(encoding="utf-8", errors="replace").split():
                self._places.setdefault(name, []).append(listed.with_suffix(".zip"))

    def _archive(self, path: Path) -> zipfile.ZipFile:
        if path not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            self._open[path] = zipfile.ZipFile(path)
        return self._open[path]

    def _close(self, path: Path) -> None:
        if path in self._open:
            self._open.pop(path).close()
