"""Containers: an engine's image, started once for a batch and asked for one run after the other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from replication.errors import RunError
from replication.image import Image, require
from replication.process import Limits, Usage
from replication.runtime import check_status, scenario_command

#: Where an image has the engines' programs and the runner, and where it sees the runs.
PROGRAMS = "/opt/replicate"
WORK = "/work"
RUNNER = ("/usr/bin/python3", "-ISB", f"{PROGRAMS}/runner")
#: What the runner and the folders in memory need beyond the simulator's own limit.
_OVERHEAD_BYTES = 2**29
#: How much later than the runner's own limit an answer may come before we give the container up.
_GRACE_S = 60.0
_PROCESSES = 1024


def command_line(runtime: str, source: str, folder: Path, memory_bytes: int) -> list[str]:
    """Return the command that starts the runner of an image.

    No network, a read-only root, no capabilities, the calling user, nothing mounted but `folder`
    (at WORK), and limits of memory and processes, as far as each runtime has them; the runner
    itself limits memory and time of each run, and refuses to work where it sees a network.
    """
    command = require(runtime)
    if runtime in ("docker", "podman"):
        return [command, *_oci_options(runtime, folder, memory_bytes), source, *RUNNER[1:]]
    if runtime == "charliecloud":
        options = ["--unset-env=*", "--private-tmp", f"--bind={folder}:{WORK}", f"--cd={WORK}"]
        return [command, *options, source, "--", *RUNNER]
    options = ["--containall", "--cleanenv", "--no-home", "--no-privs", "--net", "--network=none"]
    return [command, "exec", *options, f"--bind={folder}:{WORK}", f"--pwd={WORK}", source, *RUNNER]


def _oci_options(runtime: str, folder: Path, memory_bytes: int) -> list[str]:
    options = [
        "run",
        "--rm",
        "--interactive",
        "--pull=never",
        "--log-driver=none",
        "--network=none",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--pids-limit={_PROCESSES}",
        f"--memory={memory_bytes + _OVERHEAD_BYTES}",
        f"--user={os.getuid()}:{os.getgid()}",
        "--tmpfs=/tmp:rw,nosuid,nodev,noexec,size=64m",
        # The linux engine maps its guest's memory from here, code included.
        "--tmpfs=/dev/shm:rw,nosuid,nodev,exec,size=1g",
        f"--mount=type=bind,source={folder},target={WORK}",
        f"--workdir={WORK}",
        f"--entrypoint={RUNNER[0]}",
    ]
    if runtime == "podman" and os.getuid() != 0:
        options.append("--userns=keep-id")
    return options


@dataclass
class Container:
    """A batch's container: started when it is first asked for something."""

    runtime: str
    image: Image
    engine: str
    folder: Path
    _process: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the engine's program on scenario.json in `work`, a folder in ours.

        Raises
        ------
        RunError
            The container or the program could not start, failed, or went over a limit.
        """
        inside = f"{WORK}/{work.relative_to(self.folder)}"
        program = f"{self._programs}/replicate-{self.engine}"
        command = scenario_command(program, inside, trace)
        request = {"command": command, "work": inside} | {
            "memory_bytes": limits.memory_bytes,
            "time_s": limits.time_s,
        }
        answer = self._ask(request, limits, waiting)
        status = int(answer.pop("status"))
        usage = Usage(**answer)
        check_status(program, status, usage, limits, work)
        return usage

    @property
    def _programs(self) -> str:
        return f"{PROGRAMS}/{self.engine}"

    def written_version(self, limits: Limits) -> str:
        """Return what the program's builder wrote beside it, or nothing."""
        request = {"read": f"{self._programs}/version"}
        return str(self._ask(request, limits, lambda: None)["text"])

    def record(self) -> dict[str, str | None]:
        """Return runtime and image, for the usage of every result."""
        return {"runtime": self.runtime, "image": self.image.id}

    def close(self) -> None:
        """End the container: its runner ends with its input."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, limits: Limits) -> subprocess.Popen[bytes]:
        command = command_line(self.runtime, self.image.source, self.folder, limits.memory_bytes)
        # Charliecloud wants to know who calls.
        environment = {"USER": str(os.getuid())} | os.environ
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
            )
        except OSError as error:
            raise RunError(f"{command[0]}: cannot start: {error.strerror}") from None

    def _ask(
        self, request: dict[str, Any], limits: Limits, waiting: Callable[[], None]
    ) -> dict[str, Any]:
        """Send one request and wait for its answer; a container that gives none is ended."""
        self._process = self._process or self._start(limits)
        assert self._process.stdin is not None and self._process.stdout is not None
        deadline = time.monotonic() + limits.time_s + _GRACE_S
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        line = b""
        while not line.endswith(b"\n"):
            waiting()
            if select.select([self._process.stdout], [], [], 0.02)[0]:
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    raise RunError(f"{self.runtime}: {self._last_words()}")
                line += part
            elif time.monotonic() > deadline:
                self.close()
                raise RunError(f"{self.runtime}: no answer from the container")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RunError(f"{self.runtime}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        self.close()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        return words[-1] if words else "the container ended without a word"
