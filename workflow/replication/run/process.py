"""Processes: one program run to its end, confined, limited and measured.

Standard library alone: the images of the engines hold this file too, so that a simulator is
started, limited and measured by the same code inside a container and outside.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from replication.run.resident import Main, fork

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
#: How often `waiting` is called while a program runs; its end is noticed at once.
_PAUSE_S = 0.05
_libc = ctypes.CDLL(None, use_errno=True)

#: Where a program's last words go, in its working folder.
STDERR = "stderr.txt"


@dataclass(frozen=True)
class Limits:
    """What one simulator process may use."""

    memory_bytes: int
    time_s: float


@dataclass(frozen=True)
class Usage:
    """What one simulator process used; wall and CPU seconds, peak resident bytes."""

    wall_s: float
    cpu_s: float
    peak_memory_bytes: int

    def as_dict(self) -> dict[str, float | int]:
        """Return the fields as plain data."""
        return asdict(self)


def run_confined(
    command: list[str],
    limits: Limits,
    work: Path,
    waiting: Callable[[], None],
    main: Main | None = None,
) -> tuple[int, Usage]:
    """Run `command` to its end in folder `work`; return exit code (or -signal) and usage.

    It gets no new privileges, a bare environment and the limits; `waiting` is called now and then
    meanwhile. `isolate` takes the network from it. Where there is a `main`, a fork calls it with
    the command's words in the place of executing its program.

    Raises
    ------
    OSError
        It cannot be started.
    """
    # Blocked, the end of a child is a signal to wait for; one that came before is not missed.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    start = time.monotonic()
    with (work / STDERR).open("wb") as stderr:
        pid = _start(command, limits, work, stderr, main)
    status, used = _wait(pid, limits.time_s, waiting)
    usage = Usage(
        wall_s=round(time.monotonic() - start, 4),
        cpu_s=round(used.ru_utime + used.ru_stime, 4),
        peak_memory_bytes=used.ru_maxrss * 1024,
    )
    return status, usage


def _start(
    command: list[str], limits: Limits, work: Path, stderr: IO[bytes], main: Main | None
) -> int:
    """Start what `run_confined` runs; return its id."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(work)}
    if main is not None:

        def confined(words: list[str]) -> int:
            _confine(limits)
            os.chdir(work)
            return main(words)

        return fork(confined, command[1:], environment, stderr.fileno())
    process = subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        preexec_fn=lambda: _confine(limits),
    )
    # We wait for it ourselves, for its usage; so that nobody else does.
    process.returncode = 0
    return process.pid


def isolate() -> bool:
    """Enter a user and network namespace of its own, as all that is started from here on does.

    Return whether the kernel allowed that.
    """
    refused: int = _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    return not refused


def network_is_isolated() -> bool:
    """Return whether this kernel lets an unprivileged process give up its network."""
    child = os.fork()
    if child == 0:
        os._exit(0 if isolate() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _confine(limits: Limits) -> None:
    """Run in the child before exec: drop privileges, set limits."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    cpu_s = int(limits.time_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(
    child: int, time_s: float, waiting: Callable[[], None]
) -> tuple[int, resource.struct_rusage]:
    """Reap the process with its own resource usage; kill it at the wall time limit."""
    deadline = time.monotonic() + time_s
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), used
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        waiting()
        signal.sigtimedwait({signal.SIGCHLD}, _PAUSE_S)
