"""Runtimes: how a simulator process is started, confined and watched.

`native` starts the program itself: in a user and network namespace of its own where the kernel
allows that (no privileges, no network), always without new privileges and under limits of
memory, CPU time and wall time. The others start it in a container of the engine's image
(`container`), in which the same code sets the same limits.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from replication.errors import REMEDIES, RunError
from replication.process import STDERR, Limits, Usage, run_confined

_SIGKILL = 9
#: What the C library's loader ends a program with.
_CANNOT_LOAD = 127
#: How C++, Python, Tcl and the C library say that there is no more memory.
_NO_MEMORY = ("bad_alloc", "MemoryError", "unable to alloc", "unable to realloc", "allocate memory")

#: What helps if a program, its library or its kernel was damaged after it was built.
_REBUILD = "if it was built and is damaged, remove data/reproduced/engines and run again"
_DAMAGED = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, _CANNOT_LOAD)
#: Less than this is a full disk to a simulator.
_ROOM_BYTES = 1 << 16


class Runtime(Protocol):
    """Runs an engine's program on the scenarios of a batch, one after the other."""

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the program on scenario.json in `work`, to its end; the tables appear there too.

        With `trace`, so does trace.csv, the senders' events.

        Raises
        ------
        RunError
            It could not start, failed, or went over a limit; the message holds its last words.
        """
        ...

    def written_version(self, limits: Limits) -> str:
        """Return what the program's builder wrote beside it, or nothing."""
        ...

    def record(self) -> dict[str, str | None]:
        """Return what ran, for the usage of every result: runtime, and image or None."""
        ...

    def close(self) -> None:
        """End what was started for the batch."""
        ...


@dataclass(frozen=True)
class Native:
    """The program itself, as a process of ours."""

    program: Path
    image: str | None = None

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the program on scenario.json in `work`."""
        command = scenario_command(str(self.program), str(work), trace)
        return run_native(command, limits, work, waiting)

    def written_version(self, limits: Limits) -> str:
        """Return what the program's builder wrote beside it, or nothing."""
        return written_version(self.program)

    def record(self) -> dict[str, str | None]:
        """Return that no container was started, and the image that we are in, if any."""
        return {"runtime": "native", "image": self.image}

    def close(self) -> None:
        """Do nothing: each process has ended with its run."""


def written_version(program: Path) -> str:
    """Return what a program's builder wrote beside it, or nothing."""
    beside = program.parent / "version"
    return beside.read_text(encoding="utf-8") if beside.is_file() else ""


def scenario_command(program: str, work: str, trace: bool) -> list[str]:
    """Return the command line of an engine's program on scenario.json in folder `work`."""
    words = [program, "--scenario", f"{work}/scenario.json", "--output", work]
    return [*words, "--trace", f"{work}/trace.csv"] if trace else words


def run_native(
    command: list[str], limits: Limits, work: Path, waiting: Callable[[], None] = lambda: None
) -> Usage:
    """Run `command` to its end in folder `work`; call `waiting` now and then meanwhile.

    Raises
    ------
    RunError
        It could not start, failed, or went over a limit; the message holds its last words.
    """
    try:
        status, usage = run_confined(command, limits, work, waiting)
    except OSError as error:
        raise RunError(f"{command[0]}: cannot start: {error.strerror}; {_REBUILD}") from None
    check_status(command[0], status, usage, limits, work)
    return usage


def check_status(program: str, status: int, usage: Usage, limits: Limits, work: Path) -> None:
    """Raise RunError, saying why in the program's last words, unless it ended well."""
    if status == 0:
        return
    text = (work / STDERR).read_text(encoding="utf-8", errors="replace").strip()
    last = text.splitlines()[-1] if text else "(it printed nothing)"
    cause = f"exit code {status}" if status > 0 else f"killed by signal {-status}"
    hint = ""
    if not text and shutil.disk_usage(work).free < _ROOM_BYTES:
        # What it said had no room either.
        hint = f"; {os.strerror(errno.ENOSPC)}: {REMEDIES[errno.ENOSPC]}"
    elif usage.wall_s >= limits.time_s or usage.cpu_s >= limits.time_s:
        hint = f"; it ran longer than time_limit_s = {limits.time_s:g} (configs/config.yaml)"
    elif status == -_SIGKILL or any(word in text for word in _NO_MEMORY):
        hint = f"; perhaps memory_limit_bytes = {limits.memory_bytes} (configs/config.yaml) is low"
    elif status in _DAMAGED:
        hint = f"; {_REBUILD}"
    raise RunError(f"{Path(program).name} failed: {cause}: {last}{hint}")
