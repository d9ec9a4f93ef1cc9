"""Containers: an engine's image, started once for a batch and asked for one run after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from replication.engines.image import Image, require
from replication.run.environment import with_callers_home
from replication.run.process import Limits, Usage
from replication.run.runner_process import RunnerProcess
from replication.run.runtime import program_command

#: Where an image has the engines' programs and the runner, and where it sees the runs.
PROGRAMS = "/opt/replicate"
WORK = "/work"
RUNNER = ("/usr/bin/python3", "-ISB", f"{PROGRAMS}/runner")
#: What the runner and the folders in memory need beyond the simulator's own limit.
_OVERHEAD_BYTES = 2**29
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
    _runner: RunnerProcess | None = None

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the engine's program on the plan in `work`, a folder in ours.

        Raises
        ------
        RunError
            The container or the program could not start, failed, or went over a limit.
        """
        inside = f"{WORK}/{work.relative_to(self.folder)}"
        command = program_command(f"{self._programs}/replicate-{self.engine}", inside, trace)
        return self._started(limits).run(command, limits, (work, inside), waiting)

    @property
    def _programs(self) -> str:
        return f"{PROGRAMS}/{self.engine}"

    def written_version(self, limits: Limits) -> str:
        """Return what the program's builder wrote beside it, or nothing."""
        request = {"read": f"{self._programs}/version"}
        return str(self._started(limits).ask(request, limits)["text"])

    def record(self) -> dict[str, str | None]:
        """Return runtime and image, for the usage of every result."""
        return {"runtime": self.runtime, "image": self.image.id}

    def close(self) -> None:
        """End the container: its runner ends with its input."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def _started(self, limits: Limits) -> RunnerProcess:
        if self._runner is None:
            memory_bytes = limits.memory_bytes
            command = command_line(self.runtime, self.image.source, self.folder, memory_bytes)
            # Charliecloud wants to know who calls.
            environment = {"USER": str(os.getuid())} | with_callers_home()
            self._runner = RunnerProcess(self.runtime, command, environment)
        return self._runner
