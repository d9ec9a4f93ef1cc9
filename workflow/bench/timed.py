"""Timed runs for the bench: programs on scenarios, by turns, the least of several."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES, NS3
from replication.engines.lowering import write_inputs
from replication.engines.model import Engine
from replication.run.native import Native
from replication.run.process import Limits, Usage
from replication.study.errors import RunError
from replication.study.scenario import Scenario

LIMITS = Limits(memory_bytes=4 * 2**30, time_s=600.0)
#: A bench is read beside a report: what it does is said, not only its end.
Announce = Callable[[str], None]


@dataclass(frozen=True)
class TimedRun:
    """One finished run: what it used, and the engine's own counts."""

    usage: Usage
    counts: dict[str, Any]
    folder: Path

    @property
    def packets(self) -> int:
        """Return data packets that arrived: in a dumbbell, what the bottleneck carried."""
        return int(self.counts["data_packets_received"])

    @property
    def events(self) -> int | None:
        """Return the simulated events, where the engine counts them."""
        return self.counts.get("events")


def engine_of(program: Path) -> Engine:
    """Return the engine of a program; what has another name is a variant of ns-3's."""
    return ENGINES.get(program.name.removeprefix("replicate-"), NS3)


def run(program: Path, scenario: Scenario, folder: Path) -> TimedRun:
    """Run an engine's program on a scenario in `folder`, which is made anew.

    Raises
    ------
    RunError
        It failed; the message holds its last words.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write_inputs(folder, scenario, engine_of(program))
    native = Native(program.resolve())
    try:
        usage = native.run(folder, LIMITS, lambda: None)
    finally:
        native.close()
    return TimedRun(usage, json.loads((folder / "run.json").read_text(encoding="utf-8")), folder)


def least(programs: Sequence[tuple[Path, Scenario]], folder: Path, repeats: int) -> list[TimedRun]:
    """Return for each program the run with the least CPU time of `repeats`.

    They take turns, so that what else the machine does falls on all of them; what is left of it
    can only add time, hence the least.
    """
    rounds = [
        [run(program, scenario, folder / f"{i}-{turn}") for i, (program, scenario) in items]
        for turn in range(repeats)
        for items in [list(enumerate(programs))]
    ]
    return [min(own, key=lambda r: r.usage.cpu_s) for own in zip(*rounds, strict=True)]


@dataclass(frozen=True)
class Timed:
    """A command with all that it started: wall and CPU seconds, and what it printed."""

    wall_s: float
    cpu_s: float
    output: str


def timed(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> Timed:
    """Run a command to its end in `folder` and time it, its children included.

    Raises
    ------
    RunError
        It failed; the message holds its last line.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise RunError(f"{command[0]}: cannot start: {error.strerror}") from None
    wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["(it printed nothing)"])[-1]
        raise RunError(f"{Path(command[0]).name} failed: exit code {done.returncode}: {last}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(round(wall_s, 4), round(cpu_s, 4), done.stdout)
