"""The life of a workflow: its jobs end with it, and what killed ones left is removed.

It imports little, since no signal is handled before it is imported.
"""

import contextlib
import os
import re
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

#: How the shell of each job starts: Ctrl-C reaches Snakemake alone, which ends its jobs.
SHELL_PREFIX = "set -euo pipefail; trap '' INT; "
#: The variable with the number of the process whose jobs end with it.
_WORKFLOW = "REPLICATION_WORKFLOW"
#: Folders of temporary files, which `study.files.private_prefix` names.
_MADE_IN = ("data/reproduced", "reports", ".cache/downloads", ".cache/ns3")
_PRIVATE = re.compile(r"\..+\.(\d+)@(.+)\.\w+")
#: Time that jobs have to clean up.
_GRACE_S = 3.0
_received: list[int] = []


def be_workflow() -> None:
    """Make this process the one that jobs end with."""
    os.environ[_WORKFLOW] = str(os.getpid())


def end_with_workflow() -> None:
    """Kill this job and its processes when its workflow ends, however it ends."""
    signal.signal(signal.SIGTERM, _exit)
    if workflow := os.environ.get(_WORKFLOW):
        threading.Thread(target=_kill_after, args=(int(workflow),), daemon=True).start()


def handle_signals() -> None:
    """Let the usual signals end this process and its jobs, after they have cleaned up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Ignored are the signals of a command in the background or under nohup.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)


def signal_received() -> int | None:
    """Return the signal that ends this process, if any."""
    return _received[0] if _received else None


def _end(number: int, frame: FrameType | None) -> None:
    # A further signal would interrupt what Snakemake does after the first.
    if not _received:
        _received.append(number)
        threading.Thread(target=_end_jobs, daemon=True).start()
        _exit(number, frame)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _end_jobs() -> None:
    jobs = _descendants(os.getpid())
    _send(signal.SIGTERM, jobs)
    time.sleep(_GRACE_S)
    _send(signal.SIGKILL, {*jobs, *_descendants(os.getpid())})


def _kill_after(workflow: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(workflow)], [], [])
    _send(signal.SIGKILL, _descendants(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


def _send(number: int, processes: Iterable[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        # A process may end while we look.
        with contextlib.suppress(OSError):
            child = int(path.name)
            children.setdefault(int(_stat(child)[1]), []).append(child)
    below = [process]
    for parent in below:
        below += children.get(parent, [])
    return below[1:]


def remove_leftovers(root: Path) -> None:
    """Remove the temporary files and folders that killed jobs left in the project."""
    for path in _leftovers(root):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _leftovers(root: Path) -> Iterator[Path]:
    # Processes of other machines may be alive.
    for top in _MADE_IN:
        for folder, folders, files in os.walk(root / top):
            for name in [*folders, *files]:
                made = _PRIVATE.fullmatch(name)
                if made and made[2] == os.uname().nodename and not _is_alive(int(made[1])):
                    yield Path(folder, name)


def _is_alive(process: int) -> bool:
    try:
        state = _stat(process)[0]
    except OSError:
        return False
    # One that has ended stays a zombie until its parent notices.
    return state not in "ZX"


def _stat(process: int) -> list[str]:
    """Return the fields of a process after its name: its state, its parent, ..."""
    text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    return text.rpartition(")")[2].split()
