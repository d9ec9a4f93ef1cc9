"""The store of finished runs, which makes no run twice; and the progress of a workflow's jobs.

A store is named by engine and engine fingerprint, a run in it by its scenario, so an old result is
never taken for a new one. A run is a folder until its batch is done, then part of the batch's pack:
an uncompressed ZIP archive, and a list of its runs, which is written last. A run's `usage.json` is
written last and holds the hash of its tables. A run without it, or with other tables, is run again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import lzma
import math
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.engines.input_file import INPUT_FILE, input_text
from replication.engines.model import Engine
from replication.study.files import atomic, digest_of, write_text
from replication.study.scenario import Scenario

TABLES = ("flows.csv", "series.csv", "run.json")
_USAGE = "usage.json"
_PACKS = "packs"
#: A batch with fewer runs is not packed.
_PACKED_FROM = 8
_PRINT_EVERY_S = 20.0
#: Errors of reading a damaged archive; one whose flag says "encrypted" raises RuntimeError.
_DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


@dataclass
class Store:
    """The finished runs of one engine at one fingerprint."""

    folder: Path
    _packs_changed_ns: int = -1
    #: Run to the packs that have it.
    _packs: dict[str, list[Path]] = field(default_factory=dict)

    def entry(self, scenario_id: str) -> Path:
        """Return the folder of a run, which exists unless the run is packed."""
        return self.folder / scenario_id

    def finished(self) -> set[str]:
        """Return the scenarios with a finished run, without checking its files."""
        folders = self.folder.glob("[!.]*")
        return {path.name for path in folders if path.name != _PACKS}.union(self._packed())

    def usage(self, scenario_id: str) -> dict[str, Any] | None:
        """Return time and memory that a run used; None unless it is complete and intact."""
        return next((usage for usage, _ in self._intact(scenario_id)), None)

    def tables(self, scenario_id: str) -> dict[str, bytes] | None:
        """Return the tables of a run by name; None unless it is complete and intact."""
        return next((tables for _, tables in self._intact(scenario_id)), None)

    def _intact(self, scenario_id: str) -> Iterator[tuple[dict[str, Any], dict[str, bytes]]]:
        for files in self._copies(scenario_id):
            try:
                usage = json.loads(files.pop(_USAGE))
                intact = usage["sha256"] == _digest(files)
            except (ValueError, KeyError, TypeError):
                continue
            if intact:
                yield usage, files

    def _copies(self, scenario_id: str) -> Iterator[dict[str, bytes]]:
        with contextlib.suppress(OSError):
            yield _read(self.entry(scenario_id), (*TABLES, _USAGE))
        for path in self._packed().get(scenario_id, []):
            with contextlib.suppress(*_DAMAGED):
                archive = _archive(path, path.stat().st_ino)
                yield {name: archive.read(f"{scenario_id}/{name}") for name in (*TABLES, _USAGE)}

    def _packed(self) -> dict[str, list[Path]]:
        """Return the packs of each packed run; read again when another job has added a pack."""
        folder = self.folder / _PACKS
        changed_ns = folder.stat().st_mtime_ns if folder.is_dir() else self._packs_changed_ns
        if changed_ns != self._packs_changed_ns:
            self._packs_changed_ns = changed_ns
            self._packs.clear()
            for listed in sorted(folder.glob("*.runs")):
                for name in listed.read_text(encoding="utf-8", errors="replace").split():
                    self._packs.setdefault(name, []).append(listed.with_suffix(".zip"))
        return self._packs

    def begin(self, scenario_id: str, scenario: Scenario, engine: Engine) -> Path:
        """Make a private working folder that holds the engine's input file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = input_text(scenario, engine)
        work = Path(tempfile.mkdtemp(prefix=f".{scenario_id}.", dir=self.folder))
        (work / INPUT_FILE).write_text(text, encoding="utf-8")
        return work

    def finish(self, scenario_id: str, work: Path, usage: dict[str, Any]) -> dict[str, Any]:
        """Move a working folder into the store; return the usage of the stored run.

        A damaged entry is replaced. An intact one, which another process made meanwhile, is kept.
        """
        usage = usage | {"sha256": _digest(_read(work, TABLES))}
        (work / _USAGE).write_text(json.dumps(usage, sort_keys=True) + "\n", encoding="utf-8")
        work.chmod(0o755)
        if self.usage(scenario_id) is None:
            shutil.rmtree(self.entry(scenario_id), ignore_errors=True)
        try:
            work.rename(self.entry(scenario_id))
        except OSError:
            kept = self.usage(scenario_id)
            if kept is None:
                raise
            shutil.rmtree(work, ignore_errors=True)
            return kept
        return usage

    def pack(self, scenario_ids: Iterable[str]) -> None:
        """Move the runs that are still folders into a pack, if there are enough."""
        folders = sorted(entry for name in scenario_ids if (entry := self.entry(name)).is_dir())
        if len(folders) < _PACKED_FROM:
            return
        names = "\n".join(folder.name for folder in folders)
        path = self.folder / _PACKS / f"{digest_of(names.encode())[:16]}.zip"
        try:
            with atomic(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
                for folder in folders:
                    for name, content in _read(folder, (INPUT_FILE, *TABLES, _USAGE)).items():
                        archive.writestr(f"{folder.name}/{name}", content)
        except FileNotFoundError:
            # Another job has packed some of the same runs meanwhile.
            return
        write_text(path.with_suffix(".runs"), names + "\n")
        # A process that still reads a folder finds its run in the pack.
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@functools.lru_cache(maxsize=16)
def _archive(path: Path, inode: int) -> zipfile.ZipFile:
    # Kept open for many reads. A pack that is written again has a new inode and is opened again.
    return zipfile.ZipFile(path)


def _read(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(b"%s\0%d\0" % (name.encode(), len(content)))
        digest.update(content)
    return digest.hexdigest()


#: Store to scenario to its expected CPU seconds.
Totals = dict[Path, dict[str, float]]


@dataclass
class Progress:
    """Prints how much of a workflow's simulation is done."""

    totals: Totals
    started: float
    remaining_at_start_s: float
    _last: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: Path) -> Progress | None:
        """Read the file of `write_totals`; None without one, for a job outside a workflow."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            totals = {Path(folder): costs for folder, costs in document["totals"].items()}
            return cls(totals, document["started"], document["remaining_s"])
        except (OSError, ValueError, KeyError):
            return None

    def tick(self, force: bool = False) -> None:
        """Print a line, but at most every 20 s unless `force` is set."""
        if not force and time.monotonic() - self._last < _PRINT_EVERY_S:
            return
        self._last = time.monotonic()
        done, total, remaining_s = count_runs(self.totals)
        line = f"simulate: {done} of {total} scenarios"
        worked_s = self.remaining_at_start_s - remaining_s
        if remaining_s and worked_s > 0:
            wall_s = remaining_s / worked_s * (time.time() - self.started)
            line += f", about {wall_s / 60:.1f} min remaining"
        print(line, file=sys.stderr, flush=True)


def count_runs(totals: Totals) -> tuple[int, int, float]:
    """Return the numbers of finished and of all runs, and the CPU seconds that remain."""
    remaining_s = []
    for folder, costs in totals.items():
        done = Store(folder).finished()
        remaining_s += [cost_s for name, cost_s in costs.items() if name not in done]
    total = sum(map(len, totals.values()))
    return total - len(remaining_s), total, math.fsum(remaining_s)


def write_totals(path: Path, totals: Totals) -> None:
    """Write the amount of work, from which the jobs of a workflow print their progress."""
    document = {
        "totals": {str(folder): costs for folder, costs in totals.items()},
        "started": time.time(),
        "remaining_s": count_runs(totals)[2],
    }
    write_text(path, json.dumps(document))
