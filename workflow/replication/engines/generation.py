"""Generations: which versions of an engine's sources give the same results.

A program is built anew whenever its sources change. Its results are known by their generation, so
that a change which moves no byte outdates no run. `workflow/engines/generations/<engine>.yaml`
lists the sources of the current generation; the first of them names it. Sources that it does not
list are a generation of their own, until `replicate engines --same` has shown equal results.
"""

import datetime
import functools
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field

from replication.base.files import write_text
from replication.base.model import Document, Text
from replication.base.position import read_model

FOLDER = Path("workflow/engines/generations")

_HEAD = """\
# The sources of the engine {name} whose results are the same. `replicate engines --same` adds to it
# (workflow/replication/engines/generation.py).
"""


class Sources(Document):
    """A version of an engine's sources."""

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    """Start of the hash of sources and machine, as in the name of the program's folder."""
    built: str = ""
    """Version that the build wrote, with hashes of its files, if it writes one. It identifies a
    program in an image, where the build's sources are not."""
    added: str
    """Date, as 2026-11-27."""
    reason: Text
    """What shows that its results are those of the others."""


class Generation(Document):
    """The versions of an engine's sources with the same results."""

    version: str
    """Version in results: that of the simulator, and of what was built."""
    canonical: dict[str, str]
    """Hash of the tables of each canonical scenario, by its id."""
    runs: dict[str, str]
    """The same of one run of each kind in the studies (`compare.sameness`)."""
    unexecuted: str
    """Hash of the lines of the sources that no canonical scenario executes."""
    sources: Annotated[list[Sources], Field(min_length=1)]

    @property
    def name(self) -> str:
        """The first version of the sources."""
        return self.sources[0].digest

    def has(self, digest: str) -> bool:
        """Return whether these sources belong to the generation."""
        return any(sources.digest == digest for sources in self.sources)

    def has_built(self, version: str) -> bool:
        """Return whether a build of these sources wrote this version."""
        return any(sources.built == version for sources in self.sources)


@functools.cache
def load_generation(root: Path, engine: str) -> Generation | None:
    """Return the current generation of an engine; None without its file."""
    path = root / FOLDER / f"{engine}.yaml"
    return read_model(path, Generation) if path.is_file() else None


def write_generation(root: Path, engine: str, generation: Generation) -> None:
    """Write the current generation of an engine."""
    text = yaml.safe_dump(generation.model_dump(exclude_defaults=True), sort_keys=False, width=120)
    write_text(root / FOLDER / f"{engine}.yaml", _HEAD.format(name=engine) + text)
    load_generation.cache_clear()


def today() -> str:
    """Return the date of a new entry."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()
