"""The runtime of a batch: one runner (see `process`), native or in a container."""

import contextlib
import errno
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO, Any

from replication.base.environment import core, with_callers_home
from replication.base.errors import REMEDIES, InputError, RunError
from replication.engines.input_file import INPUT_FILE
from replication.engines.ns3 import NS3_VERSION
from replication.simulate import process
from replication.simulate.process import CANNOT_START, STDERR, Limits, Usage

#: Messages of C++, Python, Tcl and the C library when memory is exhausted.
_NO_MEMORY = ("bad_alloc", "MemoryError", "unable to alloc", "unable to realloc", "allocate memory")
_DAMAGED = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, CANNOT_START)
_REBUILD = "if it was built and is damaged, remove data/reproduced/engines and run again"
#: A disk with less free space than this is full to a simulator.
_ROOM_BYTES = 1 << 16
#: Extra time for an answer, after the runner's time limit.
_GRACE_S = 60.0
_CHOOSE_RUNC = "; apt-get install runc, and choose it as containers/README.md says"


@dataclass(frozen=True)
class Launch:
    """How an engine is started, as plain data for a rule's parameter.

    `program` is the path of a native program, `image` the id of the planned image, `store` the
    folder of finished runs. The limits are those of one run.
    """

    runtime: str
    engine: str
    program: str | None = None
    image: str | None = None
    store: str = ""
    ns3_version: str = NS3_VERSION
    memory_bytes: int = 4 * 2**30
    time_s: float = 1800.0


@dataclass
class Runtime:
    """Runs an engine's program on one input file after another.

    `program` is its path as the runner sees it; `command` and `environment` start the runner when
    it is first needed. `image` is the id of the container's image, `mounted` a folder and its path
    in the container.
    """

    name: str
    program: str
    command: list[str]
    environment: dict[str, str]
    limits: Limits
    image: str | None = None
    mounted: tuple[Path, Path] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def run(self, work: Path) -> Usage:
        """Run the program on the input file in `work`; it writes its tables there.

        RunError has the program's last line if it could not start, failed or exceeded a limit.
        """
        there = str(self.mounted[1] / work.relative_to(self.mounted[0]) if self.mounted else work)
        words = [self.program, "--input", f"{there}/{INPUT_FILE}", "--output", there]
        return self.run_command(words, work, there)

    def run_command(self, command: list[str], work: Path, there: str) -> Usage:
        """Run a command in the folder `work`, whose path for the runner is `there`."""
        answer = self._ask({"command": command, "work": there} | vars(self.limits))
        status = answer.pop("status")
        usage = Usage(**answer)
        if status != 0:
            reason = _reason(status, usage, self.limits, work)
            raise RunError(f"{Path(command[0]).name} failed: {reason}")
        return usage

    def written_version(self) -> str:
        """Return the version that the program's build wrote, as `process.written_version`."""
        return str(self._ask({"version_of": self.program})["version"])

    def close(self) -> None:
        """End the runner and its container."""
        runner, self._process = self._process, None
        if runner is None:
            return
        try:
            # This closes the runner's input, with which it ends.
            runner.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            runner.kill()
            runner.communicate()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        pipe = subprocess.PIPE
        self._process = self._process or subprocess.Popen(
            self.command, stdin=pipe, stdout=pipe, stderr=self._errors, env=self.environment
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        wait_s = self.limits.time_s + _GRACE_S
        answered, _, _ = select.select([self._process.stdout], [], [], wait_s)
        line = self._process.stdout.readline() if answered else b""
        if not line:
            self.close()
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else "the runner gave no answer"
            remedy = _CHOOSE_RUNC if "crun: " in reason else ""
            raise RunError(f"{self.name}: {reason}{remedy}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RunError(f"{self.name}: {answer['error']}")
        return answer


def _reason(status: int, usage: Usage, limits: Limits, work: Path) -> str:
    """Return why a run failed: exit code, last line of standard error, remedy."""
    file = work / STDERR
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    end = f"exit code {status}" if status > 0 else f"killed by signal {-status}"
    reason = f"{end}: {text.splitlines()[-1] if text else '(it printed nothing)'}"
    if not text and shutil.disk_usage(work).free < _ROOM_BYTES:
        return f"{reason}; {os.strerror(errno.ENOSPC)}: {REMEDIES[errno.ENOSPC]}"
    if max(usage.wall_s, usage.cpu_s) >= limits.time_s:
        limit = f"time_limit_s = {limits.time_s:g}"
        return f"{reason}; it ran longer than {limit} (configs/config.yaml)"
    if status == -signal.SIGKILL or any(word in text for word in _NO_MEMORY):
        limit = f"memory_limit_bytes = {limits.memory_bytes}"
        return f"{reason}; perhaps {limit} (configs/config.yaml) is low"
    return f"{reason}; {_REBUILD}" if status in _DAMAGED else reason


def native(program: Path, limits: Limits, image: str | None = None) -> Runtime:
    """Return the runtime of a program on this machine."""
    command = [sys.executable, "-ISB", str(Path(process.__file__)), "native"]
    return Runtime("native", str(program), command, core(), limits, image)


def make_runtime(root: Path, launch: Launch, folder: Path) -> Runtime:
    """Return the runtime of runs below `folder`; InputError without the program or image."""
    limits = Limits(launch.memory_bytes, launch.time_s)
    if launch.runtime == "native":
        assert launch.program is not None
        return native(Path(launch.program).resolve(), limits, launch.image)
    image = find_image(root, launch.runtime, launch.engine)
    if launch.image not in (None, image):
        raise InputError(
            f"image: {launch.runtime} has {image} here, but the run was planned with "
            f"{launch.image}: build or copy the same image to this machine"
        )
    command = _container_command(root, launch.runtime, image, folder, launch.memory_bytes)
    program = str(program_in_image(launch.engine))
    mounted = (folder, Path(_WORK))
    environment = with_callers_home()
    return Runtime(launch.runtime, program, command, environment, limits, image, mounted)


#: How to install what starts containers.
_INSTALL = {
    "docker": "apt-get install docker.io, and start its daemon",
    "podman": "apt-get install podman",
}
#: The image for the whole workflow.
ANALYSIS = "analysis"
#: Paths in an image: the engines' programs and the runner; the mounted runs.
_PROGRAMS, _WORK = "/opt/replicate", "/work"
_RUNNER = ("/usr/bin/python3", "-ISB", f"{_PROGRAMS}/process.py")
#: Memory of the runner and of folders in memory, beyond the simulator's limit.
_OVERHEAD_BYTES = 2**29
_PROCESSES = 1024


@functools.cache
def reference(root: Path, name: str) -> str:
    """Return the name of the image of the current sources."""
    command = ["bash", str(root / "containers" / "build"), "--name", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def find_image(root: Path, runtime: str, name: str) -> str:
    """Return the id of the image `name` of the current sources; InputError if it is missing."""
    if shutil.which(runtime) is None:
        raise InputError(f"runtime: {runtime} is not installed: {_INSTALL[runtime]}")
    image = reference(root, name)
    command = [runtime, "image", "inspect", "--format", "{{.Id}}", image]
    done = subprocess.run(command, capture_output=True, text=True, env=with_callers_home())
    if done.returncode == 0:
        return "sha256:" + done.stdout.strip().removeprefix("sha256:")
    if "no such image" in done.stderr.lower() or "not known" in done.stderr.lower():
        raise InputError(f"runtime: {runtime} has no image {image}: run `make images`")
    lines = done.stderr.strip().splitlines() or ["it printed nothing"]
    raise InputError(f"runtime: {runtime} cannot be used: {lines[-1]}")


def _container_command(
    root: Path, runtime: str, image: str, folder: Path, memory_bytes: int
) -> list[str]:
    """Return the command that starts a confined container's runner, with only `folder` mounted."""
    options = [
        *["--rm", "--interactive", "--pull=never", "--log-driver=none"],
        *["--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"],
        f"--pids-limit={_PROCESSES}",
        f"--memory={memory_bytes + _OVERHEAD_BYTES}",
        f"--user={os.getuid()}:{os.getgid()}",
        "--tmpfs=/tmp:rw,nosuid,nodev,noexec,size=64m",
        # The linux engine maps its guest's memory from here, code included.
        "--tmpfs=/dev/shm:rw,nosuid,nodev,exec,size=1g",
        f"--mount=type=bind,source={folder},target={_WORK}",
        f"--workdir={_WORK}",
        f"--entrypoint={_RUNNER[0]}",
    ]
    starter = runtime
    if runtime == "podman":
        # It sets limits that podman is allowed to set, and selects an OCI runtime that works.
        starter = str(root / "containers" / "podman")
        if os.getuid() != 0:
            options.append("--userns=keep-id")
    return [starter, "run", *options, image, *_RUNNER[1:]]


def program_in_image(engine: str) -> Path:
    """Return the path of an engine's program in an image."""
    return Path(_PROGRAMS) / engine / f"replicate-{engine}"


def image_file(root: Path) -> str:
    """Return the path of the analysis image in Apptainer's format, which need not exist."""
    return str(root / ".cache" / "images" / f"analysis-{_sources(root)}.sif")


def _sources(root: Path) -> str:
    return reference(root, ANALYSIS).rpartition(":")[2]


def find_inside(root: Path, deployment: Iterable[Enum]) -> str | None:
    """Return the source hash of the image that all rules run in; None if native."""
    here = os.environ.get("REPLICATION_IMAGE_SOURCES")
    if here is None and not any(method.name == "APPTAINER" for method in deployment):
        return None
    sources = _sources(root)
    if here is None and not Path(image_file(root)).is_file():
        raise InputError(
            f"--sdm apptainer: image {image_file(root)} does not exist: make it from the image "
            f"{reference(root, ANALYSIS)}, as containers/README.md describes"
        )
    if here not in (None, sources):
        raise InputError(f"image has sources {here}, but checkout {sources}: run `make images`")
    return sources
