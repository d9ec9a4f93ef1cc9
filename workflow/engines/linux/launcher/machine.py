"""The machine: boots the kernel on an input, in virtual time, and returns what it wrote.

The kernel's traces depend on its binary, the archive, the command line and the seed, and on nothing
else: the command line is mixed into the guest's random numbers, so it is the same for every run but
for settings that the kernel takes there alone.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from archive import archive
from scenario import InputError

#: Of the kernel that is always there.
DEFAULT_HZ = 250
_MEMORY_BYTES = 512 << 20
_COMMAND_LINE = (
    f"mem={_MEMORY_BYTES >> 20}M",
    "initrd=initrd",
    "hostfs=/proc/self/cwd",  # absolute, or it finds no file; the same for every run
    "time-travel=inf-cpu",
    "time-travel-start=0",
    "con=null",
    "con0=null,fd:1",
    "norandmaps",
    "uml_dir=.",
    "umid=guest",
    "quiet",
    "panic=-1",
)
_ADDR_NO_RANDOMIZE = 0x0040000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(Exception):
    """The guest failed: exit code 3."""


@dataclass(frozen=True)
class Boot:
    """Which kernel is started (ticks a second, with DCTCP), and with what input, seed and words."""

    guest_input: str
    timer_hz: int
    seed: int
    words: list[str]
    dctcp: bool


def _of_kernel(name: str, timer_hz: int) -> str:
    """Return the name of a kernel's file; the default kernel has no suffix."""
    return name if timer_hz == DEFAULT_HZ else f"{name}-{timer_hz}"


def kernel_version(folder: Path, timer_hz: int) -> str:
    """Return release and hashes of the kernels with this timer frequency, and the guest's hash.

    Raises
    ------
    InputError
        No such kernel was built; the message names the command that builds it.
    """
    try:
        return (folder / _of_kernel("version", timer_hz)).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        others = {int(path.name.split("-")[1]) for path in folder.glob("version-*")}
        wanted = ",".join(str(hz) for hz in sorted({DEFAULT_HZ, timer_hz, *others}))
        raise InputError(
            f"host.timer_hz: {timer_hz}: no kernel with this timer frequency was built; run "
            f"workflow/engines/linux/build --hz {wanted} --output {folder}"
        ) from None


def _memory_folder(work: Path) -> Path:
    """Return where the guest's memory can live: a file system in memory that may hold code."""
    shared = Path("/dev/shm")
    try:
        state = os.statvfs(shared)
    except OSError:
        return work
    roomy = state.f_bavail * state.f_frsize >= _MEMORY_BYTES
    executable = not state.f_flag & os.ST_NOEXEC
    return shared if roomy and executable and os.access(shared, os.W_OK | os.X_OK) else work


def _become_kernel(kernel: Path, work: Path, seed: int, words: list[str]) -> None:
    """Turn this (forked) process into the kernel; never returns."""
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _libc.personality(_ADDR_NO_RANDOMIZE)
        os.chdir(work)
        console = os.open("console", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(console, 1)
        os.dup2(console, 2)
        environment = {
            "REPLICATE_SEED": str(seed),
            "GLIBC_TUNABLES": "glibc.pthread.rseq=0",  # rseq does not survive the kernel's tricks
            "TMPDIR": str(_memory_folder(work)),
        }
        os.execve(kernel, ["linux", *_COMMAND_LINE, *words], environment)
    finally:
        os._exit(127)


def run_machine(folder: Path, boot: Boot, scratch: Path) -> str:
    """Boot a kernel of `folder` on the guest's input; return the text of its results."""
    work = Path(tempfile.mkdtemp(prefix=".machine.", dir=scratch))
    try:
        base = (folder / "initrd").read_bytes()
        (work / "initrd").write_bytes(base + archive({"input": boot.guest_input.encode()}))
        child = os.fork()
        if child == 0:
            name = "dctcp-linux" if boot.dctcp else "linux"
            kernel = (folder / _of_kernel(name, boot.timer_hz)).absolute()
            _become_kernel(kernel, work, boot.seed, boot.words)
        _, status = os.waitpid(child, 0)
        return _results(work, status)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _results(work: Path, status: int) -> str:
    failure, results = work / "failure", work / "results"
    if failure.is_file():
        raise MachineError(failure.read_text(errors="replace").strip())
    if results.is_file():
        text = results.read_text()
        if text.endswith("\nend\n"):
            return text
    console = (work / "console").read_text(errors="replace").strip().splitlines()
    last = console[-1].strip() if console else "it printed nothing"
    raise MachineError(f"the guest left no results (status {status}): {last[:300]}")
