"""The store: finished runs, kept so that no run is ever made twice.

A store is named by engine and engine fingerprint, a run in it by its scenario, so an old result can
never stand in for a new one. A run is a folder until its batch is done, and then in a pack with the
others of the batch. Its `usage.json` is written last and holds the hashes of the tables: a run
without it, or whose tables do not match it, counts as not run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from replication.engines.lowering import PLAN_FILE, lower
from replication.engines.model import Engine
from replication.run.pack import Packs
from replication.study.scenario import Scenario

TABLES = ("flows.csv", "series.csv", "run.json")
_USAGE = "usage.json"
#: Fewer runs than this stay folders.
_PACKED_FROM = 8


@dataclass(frozen=True)
class Store:
    """Finished runs of one engine at one fingerprint, below `folder`."""

    folder: Path

    @cached_property
    def _packs(self) -> Packs:
        return Packs(self.folder / "packs")

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
        """Seal the working folder and move it into place; return what the run in the store used.

        A broken entry gives way. An intact one stays: another process finished the same scenario
        first, and its result, which is the same, may be being read.

        Raises
        ------
        OSError
            It cannot be written or moved.
        """
        usage = usage | {"sha256": _digest(_read(work, TABLES))}
        text = json.dumps(usage, sort_keys=True) + "\n"
        (work / _USAGE).write_text(text, encoding="utf-8")
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
        """Put those of the runs that are folders into a pack, if it is worth one.

        Another process may be reading the folders: it finds the pack once they are gone.
        """
        folders = [entry for name in scenario_ids if (entry := self.entry(name)).is_dir()]
        if len(folders) < _PACKED_FROM:
            return
        try:
            self._packs.add(folders, (PLAN_FILE, *TABLES, _USAGE))
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
