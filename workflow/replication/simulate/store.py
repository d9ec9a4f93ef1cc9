"""The store: finished runs, kept so that no run is ever made twice.

A store is named by engine and engine fingerprint, a run in it by its scenario, so an old result can
never stand in for a new one. A run is a folder until its batch is done, and then in a pack with the
others of the batch: an uncompressed ZIP archive with a list of its runs, which is written last. A
run's `usage.json` is written last and holds the hash of its tables: a run without it, or whose
tables do not match it, counts as not run.
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
#: Fewer runs than this stay folders.
_PACKED_FROM = 8
#: What reading a damaged archive raises; a flag that says "encrypted" is a RuntimeError.
_DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


@dataclass
class Store:
    """Finished runs of one engine at one fingerprint, in `folder`, whoever made and packed them."""

    folder: Path
    _looked_ns: int = -1
    #: Run to the packs that have it.
    _packs: dict[str, list[Path]] = field(default_factory=dict)

    def entry(self, scenario_id: str) -> Path:
        """Return the folder of a run that is not packed, whether or not it is there."""
        return self.folder / scenario_id

    def finished(self) -> set[str]:
        """Return the scenarios with a finished run, without looking into each."""
        folders = self.folder.glob("[!.]*")
        return {path.name for path in folders if path.name != _PACKS}.union(self._packed())

    def usage(self, scenario_id: str) -> dict[str, Any] | None:
        """Return what the run used, or None unless the run is complete and intact."""
        return next((usage for usage, _ in self._intact(scenario_id)), None)

    def tables(self, scenario_id: str) -> dict[str, bytes] | None:
        """Return the tables of a run by name, or None unless the run is complete and intact."""
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
        """Return the packs of each packed run; what others pack while we look is seen."""
        folder = self.folder / _PACKS
        changed_ns = folder.stat().st_mtime_ns if folder.is_dir() else self._looked_ns
        if changed_ns != self._looked_ns:
            self._looked_ns = changed_ns
            self._packs.clear()
            for listed in sorted(folder.glob("*.runs")):
                for name in listed.read_text(encoding="utf-8", errors="replace").split():
                    self._packs.setdefault(name, []).append(listed.with_suffix(".zip"))
        return self._packs

    def begin(self, scenario_id: str, scenario: Scenario, engine: Engine) -> Path:
        """Make a private working folder with the engine's input for the scenario in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = input_text(scenario, engine)
        work = Path(tempfile.mkdtemp(prefix=f".{scenario_id}.", dir=self.folder))
        # A plain write: the folder is nobody else's, and counts for nothing until it is finished.
        (work / INPUT_FILE).write_text(text, encoding="utf-8")
        return work

    def finish(self, scenario_id: str, work: Path, usage: dict[str, Any]) -> dict[str, Any]:
        """Move the working folder into place; return what the run in the store used.

        A broken entry is replaced. An intact one stays: another process was first; it may be read.
        """
        usage = usage | {"sha256": _digest(_read(work, TABLES))}
        (work / _USAGE).write_text(json.dumps(usage, sort_keys=True) + "\n", encoding="utf-8")
        work.chmod(0o755)
        if self.usage(scenario_id) is None:
            shutil.rmtree(self.entry(scenario_id), ignore_errors=True)
        try:
            work.rename(self.entry(scenario_id))
        except OSError:
            theirs = self.usage(scenario_id)
            if theirs is None:
                raise
            shutil.rmtree(work, ignore_errors=True)
            return theirs
        return usage

    def pack(self, scenario_ids: Iterable[str]) -> None:
        """Put those of the runs that are folders into a pack, if there are enough.

        Another process may be reading the folders: it finds the pack once they are gone.
        """
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
            # Another job, with some of the same runs, was quicker: its pack has those.
            return
        write_text(path.with_suffix(".runs"), names + "\n")
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@functools.lru_cache(maxsize=16)
def _archive(path: Path, inode: int) -> zipfile.ZipFile:
    """Return a pack, which stays open while one run after the other is read.

    A pack that is written again has another `inode`, so that it is opened again.
    """
    return zipfile.ZipFile(path)


def _read(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(b"%s\0%d\0" % (name.encode(), len(content)))
        digest.update(content)
    return digest.hexdigest()


@dataclass
class Progress:
    """Counts finished scenarios in the stores; prints a line at most every `every_s` seconds."""

    goal: dict[Path, dict[str, float]]
    started: float
    left_at_start_s: float
    every_s: float = 20.0
    _last: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: Path) -> Progress | None:
        """Read the goal that `write_goal` left, or None where a job runs on its own."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            goal = {Path(folder): costs for folder, costs in document["goal"].items()}
            return cls(goal, document["started"], document["left_s"])
        except (OSError, ValueError, KeyError):
            return None

    def tick(self, force: bool = False) -> None:
        """Print where the run stands, unless it did so a moment ago."""
        if not force and time.monotonic() - self._last < self.every_s:
            return
        self._last = time.monotonic()
        done, total, left_s = count(self.goal)
        elapsed_s = max(time.time() - self.started, 1e-3)
        whole_s = math.fsum(cost_s for costs in self.goal.values() for cost_s in costs.values())
        line = f"simulate: {done} of {total} scenarios ({1 - left_s / (whole_s or 1):.0%} of the "
        line += f"work), {done / elapsed_s:.1f} per s"
        if left_s < self.left_at_start_s:
            rate = (self.left_at_start_s - left_s) / elapsed_s
            minutes, seconds = divmod(round(left_s / rate), 60)
            line += f", about {minutes} min {seconds:02d} s left"
        print(line, file=sys.stderr, flush=True)


def count(goal: dict[Path, dict[str, float]]) -> tuple[int, int, float]:
    """Return scenarios done and in all, and the expected CPU seconds of those that are left."""
    left_s = []
    for folder, costs in goal.items():
        done = Store(folder).finished()
        left_s += [cost_s for name, cost_s in costs.items() if name not in done]
    total = sum(map(len, goal.values()))
    return total - len(left_s), total, math.fsum(left_s)


def write_goal(path: Path, goal: dict[Path, dict[str, float]]) -> None:
    """Leave for the jobs of this run what there is to do and what is done already."""
    document = {
        "goal": {str(folder): costs for folder, costs in goal.items()},
        "started": time.time(),
        "left_s": count(goal)[2],
    }
    write_text(path, json.dumps(document))
