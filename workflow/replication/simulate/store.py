"""The store of finished runs, which makes no run twice; and the progress of a workflow's jobs.

A store is named by engine and generation, a run in it by its scenario, so an old result is never
taken for a new one. A run is a ZIP archive of its tables and its usage, which gets its name when it
is complete. One that is damaged, or that says it is of another scenario or engine, is run again.
"""

import json
import lzma
import math
import os
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from replication.base.files import atomic, private_prefix, write_text
from replication.engines.input_file import INPUT_FILE, input_text
from replication.engines.model import Engine
from replication.study.scenario import Scenario

TABLES = ("flows.csv", "series.csv", "run.json")
_USAGE = "usage.json"
#: Ending of the file with the scenario of a failed run, which `replicate run` repeats.
FAILED = ".failed.json"
_PRINT_EVERY_S = 20.0
#: Errors of reading an archive; one whose flag says "encrypted" raises RuntimeError.
_DAMAGED = (
    *(OSError, EOFError, KeyError, TypeError, ValueError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


@dataclass(frozen=True)
class Store:
    """The finished runs of one generation of an engine; `engine` is needed to read them."""

    folder: Path
    engine: str = ""

    def entry(self, scenario_id: str) -> Path:
        """Return the archive of a run."""
        return self.folder / f"{scenario_id}.zip"

    def finished(self) -> set[str]:
        """Return the scenarios with a finished run, without checking its files."""
        # Every call of the workflow reads thousands of names, and paths take three times as long.
        names = os.listdir(self.folder) if self.folder.is_dir() else []  # noqa: PTH208
        return {name.removesuffix(".zip") for name in names if name.endswith(".zip")}

    def usage(self, scenario_id: str) -> dict[str, Any] | None:
        """Return time and memory that a run used; None unless it is complete and intact."""
        files = self._files(scenario_id)
        return None if files is None else json.loads(files[_USAGE])

    def tables(self, scenario_id: str) -> dict[str, bytes] | None:
        """Return the tables of a run by name; None unless it is complete and intact."""
        files = self._files(scenario_id)
        return None if files is None else {name: files[name] for name in TABLES}

    def _files(self, scenario_id: str) -> dict[str, bytes] | None:
        path = self.entry(scenario_id)
        try:
            with zipfile.ZipFile(path) as archive:
                files = {name: archive.read(name) for name in (*TABLES, _USAGE)}
            run = json.loads(files["run.json"])
            identity = run["scenario"], run["engine"]
        except FileNotFoundError:
            return None
        except _DAMAGED:
            print(f"{path}: is damaged, so it is run again", file=sys.stderr)
            return None
        if identity != (scenario_id, self.engine):
            is_of = " on ".join(map(str, identity))
            print(f"{path}: is the run of {is_of}, so it is run again", file=sys.stderr)
            return None
        return files

    def begin(self, scenario_id: str, scenario: Scenario, engine: Engine) -> Path:
        """Make a private working folder that holds the engine's input file."""
        text = input_text(scenario, engine)
        self.folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=private_prefix(scenario_id), dir=self.folder))
        (work / INPUT_FILE).write_text(text, encoding="utf-8")
        return work

    def keep_failed(self, scenario_id: str, scenario: Scenario) -> None:
        """Keep the scenario of a failed run, since that of an exploration is in no design."""
        document = json.dumps({scenario_id: scenario.model_dump(mode="json")})
        write_text(self.folder / f"{scenario_id}{FAILED}", document + "\n")

    def finish(self, scenario_id: str, work: Path, usage: Mapping[str, Any]) -> None:
        """Store the tables in a working folder and what the run used."""
        content = {name: (work / name).read_bytes() for name in TABLES}
        content[_USAGE] = json.dumps(usage, sort_keys=True).encode()
        with atomic(self.entry(scenario_id)) as path, zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        (self.folder / f"{scenario_id}{FAILED}").unlink(missing_ok=True)


#: Store to scenario to its expected CPU seconds.
Totals = dict[Path, dict[str, float]]


@dataclass
class Progress:
    """Prints how much of a workflow's simulation is done; nothing for a job outside of one."""

    totals: Totals = field(default_factory=dict)
    started: float = 0.0
    remaining_at_start_s: float = 0.0
    _last: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file of `write_totals`, if there is one."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            totals = {Path(folder): costs for folder, costs in document["totals"].items()}
            return cls(totals, document["started"], document["remaining_s"])
        except (OSError, ValueError, KeyError):
            return cls()

    def tick(self, force: bool = False) -> None:
        """Print a line, but at most every 20 s unless `force` is set."""
        due = force or time.monotonic() - self._last >= _PRINT_EVERY_S
        if not (due and self.totals):
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
    left_s = []
    for folder, costs in totals.items():
        done = Store(folder).finished()
        left_s += [cost_s for name, cost_s in costs.items() if name not in done]
    total = sum(map(len, totals.values()))
    return total - len(left_s), total, math.fsum(left_s)


def write_totals(path: Path, totals: Totals) -> None:
    """Write the amount of work, from which the jobs of a workflow print their progress."""
    document = {
        "totals": {str(folder): costs for folder, costs in totals.items()},
        "started": time.time(),
        "remaining_s": count_runs(totals)[2],
    }
    write_text(path, json.dumps(document))
