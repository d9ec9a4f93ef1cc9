"""The launcher: from the configuration's words to the runtime that a batch is run by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.image import COMMANDS, find_image
from replication.run.container import Container
from replication.run.native import Native
from replication.run.runtime import Runtime
from replication.study.errors import InputError


@dataclass(frozen=True)
class Launch:
    """What is to be started: a native program, or the image with this id (any, if None).

    The image of a native program is the one that we are in ourselves.
    """

    runtime: str
    engine: str
    program: Path | None = None
    image: str | None = None


def make_runtime(root: Path, launch: Launch, folder: Path) -> Runtime:
    """Return what runs the scenarios below `folder`.

    Raises
    ------
    InputError
        The runtime is unknown or absent, or its image is not there or not the one asked for.
    """
    if launch.engine not in ENGINES:
        raise InputError(f"engine: {launch.engine!r} is unknown; there are {', '.join(ENGINES)}")
    if launch.runtime == "native":
        if launch.program is None:
            raise InputError("program: the native runtime needs the path of the engine's program")
        return Native(launch.program.resolve(), launch.image)
    if launch.runtime not in COMMANDS:
        raise InputError(
            f"runtime: {launch.runtime!r} is unknown; there are native, {', '.join(COMMANDS)}"
        )
    image = find_image(root, launch.runtime, launch.engine)
    if launch.image not in (None, image.id):
        raise InputError(
            f"image: {launch.runtime} has {image.id} here, but the run was planned with "
            f"{launch.image}: build or copy the same image to this machine"
        )
    return Container(launch.runtime, image, launch.engine, folder)
