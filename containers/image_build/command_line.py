"""The command line of the images: `python containers --help`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from replication.cli.main import run_command_line
from replication.cli.option import HERE, Root
from replication.engines.image import ANALYSIS, holds_source
from replication.study.errors import RunError

from image_build.build import (
    BASE,
    build_image,
    builder_version,
    choose_builder,
    image_names,
    lock_base,
    make_base,
    unpack_image,
)
from image_build.lock import BaseLock, ImageLock, Lock, differences, read_lock, write_lock

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
#: Images that are built at once.
_AT_ONCE = 2
With = Annotated[str | None, typer.Option("--with", help="podman or docker.")]


@app.command("base")
def base_image(
    tool: With = None,
    archive: Annotated[str | None, typer.Option(help="Debian archive, a snapshot's say.")] = None,
    root: Root = HERE,
) -> None:
    """Make the base image from Debian's archive by mmdebstrap; no registry is needed."""
    print(f"{BASE}: {make_base(root, choose_builder(tool), archive)}")


@app.command("build")
def images(
    tool: With = None,
    base: Annotated[str | None, typer.Option(help="Base image instead of our own.")] = None,
    only: Annotated[str | None, typer.Option(help="Comma-separated images, not all.")] = None,
    update_lock: Annotated[bool, typer.Option(help="Write the lock instead of checking.")] = False,
    lock: Annotated[Path | None, typer.Option(help="Another lock.")] = None,
    fresh: Annotated[bool, typer.Option(help="Build from nothing, without cached layers.")] = False,
    unpack: Annotated[
        str | None, typer.Option(help="Lay them out for charliecloud or apptainer too.")
    ] = None,
    root: Root = HERE,
) -> None:
    """Build the images, and check them against containers/lock.yaml or write it.

    Example: python containers build --with podman --only ns3,ns2
    """
    path = lock or root / "containers" / "lock.yaml"
    builder = choose_builder(tool)
    found = lock_base(root, builder, base or BASE)
    made = _build_all(root, builder, image_names(root, only), found, fresh)
    for name in list(made):
        print(f"{name}: {made[name].id}")
        if unpack is not None:
            print(unpack_image(root, builder, name, unpack, made[name].id))
        if holds_source(root, name):
            print(f"{name}: has ns-3 from its sources, and the lock is of the one with the wheel")
            del made[name]
    built = Lock(builder=builder_version(builder), base=found, images=made)
    if update_lock:
        kept = read_lock(path).images if path.is_file() else {}
        write_lock(path, built.model_copy(update={"images": kept | made}))
        return
    lines = differences(read_lock(path), built)
    if lines:
        shown = "\n  ".join(lines)
        raise RunError(
            f"{path}: the images are built, but differ from the lock:\n  {shown}\n"
            "Make them so again from that state of Debian's archive, or `make images UPDATE_LOCK=1`"
        )


def _build_all(
    root: Path, builder: str, names: list[str], base: BaseLock, fresh: bool
) -> dict[str, ImageLock]:
    """Build the images, two at a time: most of it is one package installed after the other."""

    def build(name: str) -> ImageLock:
        print(f"building image {name}", file=sys.stderr, flush=True)
        return build_image(root, builder, name, base, fresh)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        engines = [name for name in names if name != ANALYSIS]
        made = dict(zip(engines, pool.map(build, engines), strict=True))
    # It is made of the others.
    return made | {name: build(name) for name in names if name == ANALYSIS}


def main() -> None:
    """Run `python containers`."""
    run_command_line(app)
