"""Inside: the whole workflow in one image, which holds the engines' programs; nothing is started.

That is so where the workflow is started in the analysis image, and under `snakemake --sdm
apptainer`, which runs each rule in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from replication.engines.image import ANALYSIS, tag, unpacked
from replication.run.container import PROGRAMS
from replication.study.errors import InputError


@dataclass(frozen=True)
class Inside:
    """Where the image has the programs, its id (or `source:` and a hash), its sources' hash."""

    programs: Path
    image: str
    sources: str

    def program(self, engine: str) -> Path:
        """Return the path, in the image, of an engine's program."""
        return self.programs / engine / f"replicate-{engine}"

    def require(self, runtime: str) -> None:
        """Raise InputError if `runtime` would start containers in a container."""
        if runtime != "native":
            raise InputError(
                f"runtime: {runtime} cannot start containers from inside the image that the "
                "workflow runs in: leave it native"
            )


def image_file(root: Path) -> str:
    """Return the path of the analysis image in Apptainer's format, there or not."""
    return str(unpacked(root, ANALYSIS) / "image.sif")


def find_inside(root: Path, deployment: Iterable[Enum]) -> Inside | None:
    """Return the image that the rules run in, or None where they run natively.

    Raises
    ------
    InputError
        The image is not there, or was made from other sources than the checkout's.
    """
    here = os.environ.get("REPLICATION_PROGRAMS")
    if here is not None:
        sources = tag(root, ANALYSIS)
        wanted, given = f"source:{sources}", os.environ.get("REPLICATION_IMAGE", "")
        if given != wanted:
            raise InputError(
                f"REPLICATION_IMAGE: this image was made from other sources ({given}) than the "
                f"checkout's ({wanted}): run `make images`"
            )
        return Inside(Path(here), given, sources)
    if not any(method.name == "APPTAINER" for method in deployment):
        return None
    record = unpacked(root, ANALYSIS) / "id"
    if not record.is_file():
        raise InputError(
            f"--sdm apptainer: there is no image {image_file(root)}: run `make images "
            "UNPACK=apptainer`"
        )
    image = record.read_text(encoding="utf-8").strip()
    return Inside(Path(PROGRAMS), image, tag(root, ANALYSIS))
