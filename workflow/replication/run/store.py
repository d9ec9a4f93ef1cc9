"""The store: finished runs, one folder a scenario, kept so that no run is ever made twice.

A folder is named by engine, engine fingerprint and scenario, so an old result can never stand in
for a new one. `usage.json` is written last and holds the hashes of the tables: a folder without
it, or whose tables do not match it, counts as not run.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.lowering import write_inputs
from replication.engines.model import Engine
from replication.study.errors import InputError
from replication.study.files import sha256_of
from replication.study.scenario import Scenario

TABLES = ("flows.csv", "series.csv", "run.json")


@dataclass(frozen=True)
class Store:
    """Finished runs of one engine at one fingerprint, below `folder`."""

    folder: Path

    def entry(self, scenario_id: str) -> Path:
        """Return the folder of a scenario, whether or not it is there."""
        return self.folder / scenario_id

    def finished(self) -> set[str]:
        """Return the scenarios with a finished run: one look at the folder, however many."""
        try:
            return {p.name for p in self.folder.iterdir() if not p.name.startswith(".")}
        except FileNotFoundError:
            return set()

    def usage(self, scenario_id: str) -> dict[str, Any] | None:
        """Return what the run used, or None unless the run is complete and intact."""
        entry = self.entry(scenario_id)
        try:
            usage: dict[str, Any] = json.loads((entry / "usage.json").read_text(encoding="utf-8"))
            intact = usage["sha256"] == sha256_of(*(entry / name for name in TABLES))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return usage if intact else None

    def begin(self, scenario_id: str, scenario: Scenario, engine: Engine) -> Path:
        """Make a private working folder with scenario.json and its plan in it.

        Raises
        ------
        InputError
            The engine refuses the scenario.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{scenario_id}.", dir=self.folder))
        try:
            write_inputs(work, scenario, engine)
        except InputError:
            work.rmdir()
            raise
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
        usage = usage | {"sha256": sha256_of(*(work / name for name in TABLES))}
        text = json.dumps(usage, sort_keys=True) + "\n"
        (work / "usage.json").write_text(text, encoding="utf-8")
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
