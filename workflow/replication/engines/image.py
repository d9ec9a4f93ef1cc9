"""Images: what they are called, where they are, and which one a runtime starts."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.ns3_source import source_key, takes_source
from replication.study.errors import InputError
from replication.study.files import sha256_of

#: What each runtime's command is called and what brings it.
COMMANDS = {
    "docker": ("docker", "apt-get install docker.io, and start its daemon"),
    "podman": ("podman", "apt-get install podman"),
    "apptainer": ("apptainer", "install Apptainer; Debian 12 does not have it"),
    "charliecloud": ("ch-run", "apt-get install charliecloud"),
}
#: Runtimes with a store of images of their own; for the others we keep a file or folder.
WITH_STORE = ("docker", "podman")
#: The image that the whole workflow can run in.
ANALYSIS = "analysis"


@dataclass(frozen=True)
class Image:
    """An image that is there.

    Attributes
    ----------
    id : str
        `sha256:` and the hash of the image's configuration, which covers all its content.
    source : str
        What the runtime is told to start: the id, or a path.
    """

    id: str
    source: str


def recipe(root: Path, name: str) -> list[Path]:
    """Return the files that go into image `name`, apart from the engine's own sources."""
    package = root / "workflow" / "replication" / "run"
    folder = root / "containers"
    if name == ANALYSIS:
        inside = [folder / name / "replicate", root / "requirements.lock"]
    else:
        inside = [package / f"{name}.py" for name in ("process", "resident", "runner")]
    return [folder / name / "Dockerfile", folder / "install", *inside]


def tag(root: Path, name: str) -> str:
    """Return 12 hex digits over all sources of an image: a stale image has another name."""
    digest = hashlib.sha256(sha256_of(*recipe(root, name)).encode())
    for engine in ENGINES if name == ANALYSIS else (name,):
        # Not the fingerprint: an image's compiler and kernel sources are not the machine's.
        sources = sha256_of(*ENGINES[engine].program_sources(root))
        digest.update(f"{ENGINES[engine].version} {sources}".encode())
    if holds_source(root, name):
        digest.update(source_key(root).encode())
    return digest.hexdigest()[:12]


def holds_source(root: Path, name: str) -> bool:
    """Return whether image `name` holds an ns-3 that is built from its sources, not the wheel."""
    return name in ("ns3", ANALYSIS) and takes_source(root)


def reference(root: Path, name: str) -> str:
    """Return the name under which docker and podman keep an image."""
    return f"localhost/replicate-{name}:{tag(root, name)}"


def cache(root: Path) -> Path:
    """Return the folder of what is made for and from images."""
    return root / ".cache" / "images"


def unpacked(root: Path, name: str) -> Path:
    """Return the folder with an image's files for the runtimes without a store of their own."""
    return cache(root) / f"{name}-{tag(root, name)}"


def require(runtime: str) -> str:
    """Return the path of a runtime's command; InputError, saying how to get it, if it is absent."""
    command, remedy = COMMANDS[runtime]
    found = shutil.which(command)
    if found is None:
        raise InputError(f"runtime: {runtime} is not installed (no {command}): {remedy}")
    return found


@functools.cache
def find_image(root: Path, runtime: str, name: str) -> Image:
    """Return the image that `runtime` starts for engine `name`, made from the present sources.

    Raises
    ------
    InputError
        The runtime or its daemon is absent, or the image is not built.
    """
    image = _look_up(root, runtime, name)
    if image is None:
        option = "IMAGES_WITH" if runtime in WITH_STORE else "UNPACK"
        raise InputError(
            f"runtime: {runtime} has no image of engine {name} made from the present sources: "
            f"run `make images {option}={runtime}`"
        )
    return image


def engines_with_image(root: Path, runtime: str) -> list[str]:
    """Return the engines that `runtime` has images of; InputError if it has none."""
    with_image = [name for name in ENGINES if _look_up(root, runtime, name) is not None]
    return with_image or [name for name in ENGINES if find_image(root, runtime, name)]


def _look_up(root: Path, runtime: str, name: str) -> Image | None:
    require(runtime)
    if runtime in WITH_STORE:
        found = stored_id(runtime, reference(root, name))
        return None if found is None else Image(found, found)
    folder = unpacked(root, name)
    content = folder / ("image.sif" if runtime == "apptainer" else "root")
    if not (folder / "id").is_file() or not content.exists():
        return None
    return Image((folder / "id").read_text(encoding="utf-8").strip(), str(content.resolve()))


def stored_id(runtime: str, name: str) -> str | None:
    """Return the id of the image that docker or podman keeps under `name`, or None."""
    command = [require(runtime), "image", "inspect", "--format", "{{.Id}}", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode == 0:
        return "sha256:" + done.stdout.strip().removeprefix("sha256:")
    words = done.stderr.strip().splitlines() or ["it printed nothing"]
    if "no such image" in done.stderr.lower() or "not known" in done.stderr.lower():
        return None
    raise InputError(f"runtime: {runtime} cannot be used: {words[-1]}")
