"""The runner: a small process that runs the simulators of a batch, natively or in a container.

It reads one line of JSON per run from standard input, {command, work, memory_bytes, time_s}, and
answers with {status, wall_s, cpu_s, peak_memory_bytes} or {error}. It exits when its input ends, so
runner, container and simulator end with the job that started them.

Programs in Python are imported once and forked for each run, because starting Python takes 50 ms of
CPU, longer than many runs. The runner is a separate process because a run's peak memory includes
that of the process that forked it. It uses the standard library only: the images contain this file.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

#: Standard error of a program, in its working folder.
STDERR = "stderr.txt"
#: A shell's exit code if it cannot start a program.
CANNOT_START = 127
#: Takes the words of a command line, returns the exit code.
_Main = Callable[[list[str]], int]


@dataclass(frozen=True)
class Limits:
    """Limits of one run: its memory and its wall time."""

    memory_bytes: int
    time_s: float


@dataclass(frozen=True)
class Usage:
    """Wall time, CPU time and peak memory of one run."""

    wall_s: float
    cpu_s: float
    peak_memory_bytes: int


def _isolate() -> bool:
    """Enter a new user and network namespace; return whether the kernel allowed that."""
    refused: int = _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    return not refused


def network_is_isolated() -> bool:
    """Return whether this kernel lets an unprivileged process give up its network."""
    child = os.fork()
    if child == 0:
        os._exit(0 if _isolate() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def written_version(program: Path) -> str:
    """Return the version file in a program's folder, which its build wrote; empty without one."""
    version = program.parent / "version"
    return version.read_text(encoding="utf-8") if version.is_file() else ""


@functools.cache
def _python_main(program: str) -> _Main | None:
    """Return `main` of program/command.py next to a program, if that exists."""
    folder = Path(program).parent / "program"
    # A runner serves one engine: the modules of others have the same names.
    if "command" in sys.modules or not (folder / "command.py").is_file():
        return None
    sys.path.insert(0, str(folder))
    try:
        main: _Main = importlib.import_module("command").main
    except Exception:
        # The program reports the error itself when it is executed.
        return None
    return main


def _run(command: list[str], limits: Limits, work: Path) -> tuple[int, Usage]:
    main = _python_main(command[0])
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_program(command, limits, work, main)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([0, ended], [], [], limits.time_s)
    if 0 in ready:
        # The input has ended, since no request comes during a run; the program dies with us.
        os._exit(1)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.close(ended)
    _, status, used = os.wait4(child, 0)
    usage = Usage(
        wall_s=round(time.monotonic() - start, 4),
        cpu_s=round(used.ru_utime + used.ru_stime, 4),
        peak_memory_bytes=used.ru_maxrss * 1024,
    )
    return os.waitstatus_to_exitcode(status), usage


def _be_program(command: list[str], limits: Limits, work: Path, main: _Main | None) -> None:
    """Become the program in the forked child, confined, with a minimal environment."""
    code = CANNOT_START
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        stderr = os.open(work / STDERR, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, file in enumerate((nothing, nothing, stderr)):
            os.dup2(file, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _confine(limits)
        os.chdir(work)
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(work)}
        if main is None:
            # Python ignores these two signals, and a program would inherit that.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            try:
                os.execve(command[0], command, environment)
            except OSError as error:
                print(f"cannot start: {error.strerror}", file=sys.stderr)
        else:
            code = 1
            os.environ.clear()
            os.environ.update(environment)
            code = main(command[1:])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def _confine(limits: Limits) -> None:
    # The jobs of a workflow ignore Ctrl-C, which ends them by SIGTERM.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    cpu_s = int(limits.time_s) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if "version_of" in request:
        return {"version": written_version(Path(request["version_of"]))}
    limits = Limits(request["memory_bytes"], request["time_s"])
    status, usage = _run(request["command"], limits, Path(request["work"]))
    return {"status": status} | vars(usage)


def _has_network() -> bool:
    devices = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    return bool({line.split(":")[0].strip() for line in devices} - {"lo"})


def _serve(require_no_network: bool) -> None:
    """Answer requests until the input ends; refuse them all if runs would see a network."""
    _isolate()
    refused = require_no_network and _has_network()
    with os.fdopen(os.dup(0), "rb", buffering=0) as requests:
        for line in iter(requests.readline, b""):
            if refused:
                answer = {"error": "the container has a network, and the kernel keeps it"}
            else:
                answer = _answer(json.loads(line))
            print(json.dumps(answer), flush=True)
            # As process 1 of a container the runner reaps what finished programs left running.
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    _serve(require_no_network=sys.argv[1:] != ["native"])
