"""The store: finished runs, kept so that no run is ever made twice.

A store is named by engine and engine fingerprint, a run in it by its scenario, so an old result can
never stand in for a new one. A run is a folder until its batch is done, and then in a pack with the
others of the batch: an uncompressed ZIP archive with a list of its runs, which is written last. A
run's `usage.json` is written last and holds the hash of its tables: a run without it, or whose
tables do not match it, counts as not run.
"""

from __future__ import annotations

import contextlib
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
from functools import cached_property
from pathlib import Path
from typing import Any

from replication.engines.lowering import PLAN_FILE, lower
from replication.engines.model import Engine
from replication.study.files import atomic, write_text
from replication.study.scenario import Scenario

TABLES = ("flows.csv", "series.csv", "run.json")
_USAGE = "usage.json"
#: Fewer runs than this stay folders.
_PACKED_FROM = 8
#: Packs that stay open while one run after the other is read.
_MOST_OPEN = 16
#: What reading a damaged archive raises; a flag that says "encrypted" is a RuntimeError.
_DAMAGED = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


@dataclass
class _Packs:
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
            except _DAMAGED:
                self._close(path)

    def add(self, folders: list[Path]) -> None:
        """Write the runs in `folders`, one each, into a pack; the folders stay."""
        names = sorted(folder.name for folder in folders)
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        path = self.folder / f"{digest}.zip"
        self._close(path)
        with atomic(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for folder in sorted(folders):
                for file in (PLAN_FILE, *TABLES, _USAGE):
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


@dataclass(frozen=True)
class Store:
    """Finished runs of one engine at one fingerprint, in `folder`."""

    folder: Path

    @cached_property
    def _packs(self) -> _Packs:
        return _Packs(self.folder / "packs")

    def entry(self, scenario_id: str) -> Path:
        """Return the folder of a run that is not packed, whether or not it is there."""
        return self.folder / scenario_id

    def finished(self) -> set[str]:
        """Return the scenarios with a finished run, without looking into each."""
        try:
            found = {p.name for p in self.folder.iterdir() if not p.name.startswith(".")}
        except FileNotFoundError:
            return set()
        return (found - {self._packs.folder.name}).union(self._packs.names())

    def usage(self, scenario_id: str) -> dict[str, Any] | None:
        """Return what the run used, or None unless the run is complete and intact."""
        return next((usage for usage, _ in self._intact(scenario_id)), None)

    def tables(self, scenario_id: str) -> dict[str, bytes] | None:
        """Return the tables of a run by name, or None unless the run is complete and intact."""
        return next((tables for _, tables in self._intact(scenario_id)), None)

    def _intact(self, scenario_id: str) -> Iterator[tuple[dict[str, Any], dict[str, bytes]]]:
        """Yield usage and tables of each copy of a run that is complete and intact."""
        for files in self._copies(scenario_id):
            try:
                usage = json.loads(files.pop(_USAGE))
                intact = usage["sha256"] == _digest(files)
            except (ValueError, KeyError, TypeError):
                continue
            if intact:
                yield usage, files

    def _copies(self, scenario_id: str) -> Iterator[dict[str, bytes]]:
        names = (*TABLES, _USAGE)
        with contextlib.suppress(OSError):
            yield _read(self.entry(scenario_id), names)
        yield from self._packs.copies(scenario_id, names)

    def begin(self, scenario_id: str, scenario: Scenario, engine: Engine) -> Path:
        """Make a private working folder with the scenario's plan in it.

        Raises
        ------
        InputError
            The engine refuses the scenario.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        plan = lower(scenario, engine)
        work = Path(tempfile.mkdtemp(prefix=f".{scenario_id}.", dir=self.folder))
        # A plain write: the folder is nobody else's, and counts for nothing until it is finished.
        (work / PLAN_FILE).write_text(plan, encoding="utf-8")
        return work

    def finish(self, scenario_id: str, work: Path, usage: dict[str, Any]) -> dict[str, Any]:
        """Move the working folder into place; return what the run in the store used.

        A broken entry is replaced. An intact one stays: another process finished the same scenario
        first, and its result, which is the same, may be being read.

        Raises
        ------
        OSError
            It cannot be written or moved.
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
        folders = [entry for name in scenario_ids if (entry := self.entry(name)).is_dir()]
        if len(folders) < _PACKED_FROM:
            return
        try:
            self._packs.add(folders)
        except FileNotFoundError:
            # Another job, with some of the same runs, was quicker: its pack has those.
            return
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


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
    done_at_start_s: float
    every_s: float = 20.0
    _last: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: Path) -> Progress | None:
        """Read the goal that `write_goal` left, or None where a job runs on its own."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            goal = {Path(folder): costs for folder, costs in document["goal"].items()}
            return cls(goal, float(document["started"]), float(document["done_cost_s"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def tick(self, force: bool = False) -> None:
        """Print where the run stands, unless it did so a moment ago."""
        if not force and time.monotonic() - self._last < self.every_s:
            return
        self._last = time.monotonic()
        done, total, cost_done, cost_total = count(self.goal)
        elapsed = max(time.time() - self.started, 1e-3)
        fresh = cost_done - self.done_at_start_s
        left = (
            f", about {_clock((cost_total - cost_done) * elapsed / fresh)} left"
            if fresh > 0
            else ""
        )
        share = cost_done / cost_total if cost_total else 1.0
        print(
            f"simulate: {done} of {total} scenarios ({share:.0%} of the work), "
            f"{done / elapsed:.1f} per s{left}",
            file=sys.stderr,
            flush=True,
        )


def count(goal: dict[Path, dict[str, float]]) -> tuple[int, int, float, float]:
    """Return scenarios done and in all, and their expected CPU seconds."""
    done = total = 0
    cost_done = cost_total = 0.0
    for folder, costs in goal.items():
        finished = costs.keys() & Store(folder).finished()
        done += len(finished)
        total += len(costs)
        cost_done += math.fsum(costs[scenario] for scenario in finished)
        cost_total += math.fsum(costs.values())
    return done, total, cost_done, cost_total


def write_goal(path: Path, goal: dict[Path, dict[str, float]]) -> None:
    """Leave for the jobs of this run what there is to do and what is done already."""
    document = {
        "goal": {str(folder): costs for folder, costs in goal.items()},
        "started": time.time(),
        "done_cost_s": count(goal)[2],
    }
    write_text(path, json.dumps(document))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
