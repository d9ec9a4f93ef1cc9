"""Runtimes: how a simulator process is started, confined and watched.

`native` starts the program itself (`native`): in a user and network namespace of its own where the
kernel allows that (no privileges, no network), always without new privileges and under limits of
memory, CPU time and wall time. The others start it in a container of the engine's image
(`container`). A runner (`runner`), the same code in both, starts, limits and measures it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from replication.engines.lowering import PLAN_FILE
from replication.run.process import STDERR, Limits, Usage
from replication.study.errors import REMEDIES, RunError

_SIGKILL = 9
#: What the C library's loader ends a program with.
_CANNOT_LOAD = 127
#: How C++, Python, Tcl and the C library say that there is no more memory.
_NO_MEMORY = ("bad_alloc", "MemoryError", "unable to alloc", "unable to realloc", "allocate memory")

#: What helps if a program, its library or its kernel was damaged after it was built.
REBUILD = "if it was built and is damaged, remove data/reproduced/engines and run again"
_DAMAGED = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, _CANNOT_LOAD)
#: What crun says on a machine with both versions of control groups, and what helps there.
_HYBRID = "cgroups in hybrid mode"
_USE_RUNC = (
    "podman's crun does not work on a machine with both versions of control groups: "
    'apt-get install runc, write the lines [engine] and runtime = "runc" into '
    "/etc/containers/containers.conf (an ordinary user: ~/.config/containers/containers.conf), "
    "and run again"
)
#: Less than this is a full disk to a simulator.
_ROOM_BYTES = 1 << 16


class Runtime(Protocol):
    """Runs an engine's program on the scenarios of a batch, one after the other."""

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the program on the plan in `work`, to its end; the tables appear there too.

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


def program_command(program: str, work: str, trace: bool) -> list[str]:
    """Return the command line of an engine's program on the plan in folder `work`."""
    words = [program, "--plan", f"{work}/{PLAN_FILE}", "--output", work]
    return [*words, "--trace", f"{work}/trace.csv"] if trace else words


def container_hint(said: str) -> str:
    """Return what helps against what a container engine said, with a separator; or nothing."""
    return f"; {_USE_RUNC}" if _HYBRID in said else ""


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
        hint = f"; {REBUILD}"
    raise RunError(f"{Path(program).name} failed: {cause}: {last}{hint}")
