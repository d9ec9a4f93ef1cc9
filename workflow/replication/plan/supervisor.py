"""The supervisor: a command that ends, with all that it has started, when make does.

    python -m replication.plan.supervisor COMMAND [WORD...]

make passes SIGTERM on to its children alone, nothing else to any, and nothing at all when it is
killed. Here the command runs in a process group of its own, which is interrupted as by Ctrl-C in a
terminal, so that Snakemake removes what is half written, and killed if it does not heed that.
Standard library alone: it starts before all else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
#: Signals that make passes on to nobody while it waits for its children to end.
_KEPT_BY_MAKE = 1 << signal.SIGINT - 1 | 1 << signal.SIGHUP - 1
#: How often we look whether make is ending; the end of the command is noticed at once.
_PAUSE_S = 0.25
#: How long the interrupted may take before they are killed.
GRACE_S = 30.0
_libc = ctypes.CDLL(None, use_errno=True)


def supervise(command: Sequence[str]) -> int:
    """Run `command` to its end, or until we are told to end; return its exit code.

    The code of an ended command is 128 and the signal's number, as a shell has it.
    """
    make = _Make()
    # Killed without a word, make takes us with it; orphans of ours become our children.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    heeded = {s for s in _ENDING if signal.getsignal(s) is not signal.SIG_IGN}
    waited = heeded | {signal.SIGTERM, signal.SIGCHLD, signal.SIGTSTP}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    process = subprocess.Popen(command, preexec_fn=lambda: _begin(waited))
    while process.poll() is None:
        got = signal.sigtimedwait(waited, _PAUSE_S)
        number = got.si_signo if got else signal.SIGCHLD
        if number == signal.SIGTSTP:
            _pause(process.pid)
        elif number != signal.SIGCHLD or make.ends():
            ended_by = signal.SIGINT if number == signal.SIGCHLD else signal.Signals(number)
            _end(process.pid)
            print(f"ended by {ended_by.name}; what is finished is kept", file=sys.stderr)
            return 128 + ended_by
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


class _Make:
    """The make that started us, if one did: it gives its signal handlers up when it is to end."""

    def __init__(self) -> None:
        self.status = Path(f"/proc/{os.getppid()}/status")
        self.caught = self._caught()

    def ends(self) -> bool:
        """Return whether it waits for us in order to end."""
        return bool(self.caught & ~self._caught())

    def _caught(self) -> int:
        with contextlib.suppress(OSError):
            text = self.status.read_text(encoding="ascii", errors="replace")
            found = re.match(r"Name:\s+g?make\n.*^SigCgt:\s+(\w+)$", text, re.DOTALL | re.MULTILINE)
            return int(found[1], 16) & _KEPT_BY_MAKE if found else 0
        return 0


def _begin(waited: set[signal.Signals]) -> None:
    """Run in the child before exec: a group of its own, and every signal as it is by default."""
    os.setpgid(0, 0)
    for number in _ENDING:
        if number is not signal.SIGHUP:  # nohup
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def _pause(group: int) -> None:
    """Stop the group and ourselves, as Ctrl-Z does, until we are continued."""
    os.killpg(group, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.killpg(group, signal.SIGCONT)


def _end(group: int) -> None:
    """Interrupt the group, and kill what is left of it after the grace."""
    deadline = time.monotonic() + GRACE_S
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.killpg(group, signal.SIGINT)
        while time.monotonic() < deadline:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        while os.waitpid(-group, 0)[0]:
            pass


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
