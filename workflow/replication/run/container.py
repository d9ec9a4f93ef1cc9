"""Images and containers: which image a runtime starts, and the command that starts it.

`containers/build` names the images after a hash of their sources, so a stale image is never taken
for a new one.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from replication.run.environment import with_callers_home
from replication.study.errors import InputError

#: The commands that start containers, and how to get them.
COMMANDS = {
    "docker": "apt-get install docker.io, and start its daemon",
    "podman": "apt-get install podman",
}
#: The image that the whole workflow can run in.
ANALYSIS = "analysis"
#: Where an image has the engines' programs and the runner, and where it sees the runs.
PROGRAMS = "/opt/replicate"
WORK = "/work"
_RUNNER = ("/usr/bin/python3", "-ISB", f"{PROGRAMS}/process.py")
#: What the runner and the folders in memory need beyond the simulator's own limit.
_OVERHEAD_BYTES = 2**29
_PROCESSES = 1024


@functools.cache
def reference(root: Path, name: str) -> str:
    """Return the name of an image made from the present sources."""
    command = ["bash", str(root / "containers" / "build"), "--name", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def find_image(root: Path, runtime: str, name: str) -> str:
    """Return the id of the image `name` made from the present sources.

    Raises
    ------
    InputError
        The runtime or its daemon is absent, or the image is not built.
    """
    if shutil.which(runtime) is None:
        raise InputError(f"runtime: {runtime} is not installed: {COMMANDS[runtime]}")
    image = reference(root, name)
    command = [runtime, "image", "inspect", "--format", "{{.Id}}", image]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=with_callers_home()
    )
    if done.returncode == 0:
        return "sha256:" + done.stdout.strip().removeprefix("sha256:")
    said = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
    if "no such image" in done.stderr.lower() or "not known" in done.stderr.lower():
        raise InputError(f"runtime: {runtime} has no image {image}: run `make images`")
    raise InputError(f"runtime: {runtime} cannot be used: {said[0]}")


def command_line(runtime: str, image: str, folder: Path, memory_bytes: int) -> list[str]:
    """Return the command that starts the runner of an image.

    No network, a read-only root, no capabilities, the calling user, nothing mounted but `folder`
    (at WORK), and limits of memory and processes. The runner limits memory and time of each run.
    """
    options = [
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
        f"--entrypoint={_RUNNER[0]}",
    ]
    if runtime == "podman" and os.getuid() != 0:
        options.append("--userns=keep-id")
    return [runtime, "run", *options, image, *_RUNNER[1:]]


@dataclass(frozen=True)
class Inside:
    """The analysis image that the whole workflow runs in, by the hash of its sources."""

    sources: str

    @property
    def image(self) -> str:
        """Return what results name it by."""
        return f"source:{self.sources}"

    def program(self, engine: str) -> Path:
        """Return the path, in the image, of an engine's program."""
        return Path(PROGRAMS) / engine / f"replicate-{engine}"

    def require(self, runtime: str) -> None:
        """Raise InputError if `runtime` would start containers in a container."""
        if runtime != "native":
            raise InputError(
                f"runtime: {runtime} cannot start containers in the image that the workflow runs "
                "in: leave it native"
            )


def image_file(root: Path) -> str:
    """Return the path of the analysis image in Apptainer's format, there or not."""
    sources = reference(root, ANALYSIS).rpartition(":")[2]
    return str(root / ".cache" / "images" / f"analysis-{sources}.sif")


def find_inside(root: Path, deployment: Iterable[Enum]) -> Inside | None:
    """Return the image that the rules run in, or None where they run natively.

    Raises
    ------
    InputError
        The image is not there, or was made from other sources than the checkout's.
    """
    here = os.environ.get("REPLICATION_IMAGE_SOURCES")
    if here is None and not any(method.name == "APPTAINER" for method in deployment):
        return None
    sources = reference(root, ANALYSIS).rpartition(":")[2]
    if here is None and not Path(image_file(root)).is_file():
        raise InputError(
            f"--sdm apptainer: there is no image {image_file(root)}: make it from the image "
            f"{reference(root, ANALYSIS)}, as containers/README.md says"
        )
    if here not in (None, sources):
        raise InputError(
            f"this image was made from other sources ({here}) than the checkout's ({sources}): "
            "run `make images`"
        )
    return Inside(sources)
