"""Builds the base and the images with podman or docker, and lays them out for other runtimes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.image import (
    ANALYSIS,
    cache,
    holds_source,
    reference,
    require,
    stored_id,
    tag,
    unpacked,
)
from replication.engines.ns3_source import COMPILER
from replication.run.runtime import container_hint
from replication.study.errors import InputError, RunError

from image_build.content import content_of, exported
from image_build.lock import BaseLock, ImageLock
from image_build.stage import stage

BASE = "localhost/replicate-base:bookworm"


def choose_builder(wanted: str | None) -> str:
    """Return `wanted`, or podman, or docker, whichever is installed."""
    if wanted is not None and wanted not in ("podman", "docker"):
        raise InputError(f"with: {wanted!r} cannot build images: podman or docker")
    if wanted is not None:
        require(wanted)
        return wanted
    for tool in ("podman", "docker"):
        if shutil.which(tool):
            return tool
    raise InputError("images: neither podman nor docker is installed: apt-get install podman")


def image_names(root: Path, only: str | None) -> list[str]:
    """Return the images to build; InputError names one that is unknown."""
    folder = root / "containers"
    known = sorted(p.parent.name for p in folder.glob("*/Dockerfile") if p.parent.name != "base")
    # It holds the others' programs, and so comes last.
    known.sort(key=lambda name: name == ANALYSIS)
    names = only.split(",") if only else known
    for name in names:
        if name not in known:
            raise InputError(f"only: image {name!r} is unknown; there are {', '.join(known)}")
    return names


def builder_version(tool: str) -> str:
    """Return the builder's name and version."""
    done = subprocess.run([require(tool), "--version"], capture_output=True, text=True, check=True)
    words = done.stdout.replace(",", "").split()
    return f"{tool} {words[words.index('version') + 1]}"


def make_base(root: Path, tool: str, archive: str | None) -> str:
    """Make Debian's base by mmdebstrap, without any registry, and give it to `tool`; return its id.

    The same archive state gives the same bytes. Documentation and translations stay out.
    """
    if shutil.which("mmdebstrap") is None:
        raise InputError("base-image: mmdebstrap is not installed: apt-get install mmdebstrap")
    folder = cache(root) / "base"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "base.tar"
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--skip=output/dev"]
    for path in ("doc/*", "info/*", "man/*", "locale/*", "lintian/*"):
        command.append(f"--dpkgopt=path-exclude=/usr/share/{path}")
    command += ["--dpkgopt=path-include=/usr/share/doc/*/copyright", "bookworm", str(target)]
    _run([*command, *([archive] if archive else [])], os.environ | {"SOURCE_DATE_EPOCH": "0"})
    shutil.copyfile(root / "containers" / "base" / "Dockerfile", folder / "Dockerfile")
    return _build(tool, folder, BASE, [])


def lock_base(root: Path, tool: str, base: str) -> BaseLock:
    """Return what the base consists of; InputError if it is not there."""
    image = stored_id(tool, base)
    if image is None:
        remedy = "run `make base-image`" if base == BASE else f"`{tool} pull` it"
        raise InputError(f"base: {tool} has no image {base}: {remedy}")
    archive = cache(root) / "base" / "base.tar"
    local = base == BASE and archive.is_file()
    content = content_of(root, tool, image)
    return BaseLock(
        reference=base,
        archive_sha256=hashlib.sha256(archive.read_bytes()).hexdigest() if local else None,
        content_sha256=content.sha256,
        packages=content.packages,
    )


def build_image(root: Path, tool: str, name: str, base: BaseLock, fresh: bool) -> ImageLock:
    """Build image `name`, from nothing if `fresh`; return what came out."""
    context = cache(root) / f"context-{name}"
    shutil.rmtree(context, ignore_errors=True)
    wheels = stage(root, name, context)
    arguments = {"BASE": base.reference, "VERSION": _version(name), "SOURCE": tag(root, name)}
    if name == ANALYSIS:
        arguments |= {engine.upper(): reference(root, engine) for engine in ENGINES}
    elif holds_source(root, name):
        arguments["COMPILER"] = COMPILER
    options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
    image = _build(
        tool, context, reference(root, name), options + (["--no-cache"] if fresh else [])
    )
    shutil.rmtree(context)
    content = content_of(root, tool, image)
    return ImageLock(
        id=image,
        content_sha256=content.sha256,
        packages=_beyond(content.packages, base),
        build_packages=_beyond(content.build_packages, base),
        wheels=wheels,
    )


def _version(name: str) -> str:
    return metadata.version("tcp-replication") if name == ANALYSIS else ENGINES[name].version


def _beyond(packages: dict[str, str], base: BaseLock) -> dict[str, str]:
    return {k: v for k, v in packages.items() if base.packages.get(k) != v}


def _build(tool: str, context: Path, name: str, options: list[str]) -> str:
    command = [require(tool), "build", "--network=host", f"--tag={name}", *options]
    if tool == "podman":
        # Nothing in an image knows when it was built.
        command += ["--pull=never", "--timestamp=0"]
    _run([*command, str(context)], os.environ | {"SOURCE_DATE_EPOCH": "0"})
    image = stored_id(tool, name)
    if image is None:
        raise RunError(f"{name}: {tool} built it but does not have it")
    return image


def _run(command: list[str], environment: dict[str, str]) -> None:
    """Run a command; on failure RunError holds its last lines."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env=environment,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise RunError(f"{Path(command[0]).name} failed: {last}{container_hint(done.stdout)}")


def unpack_image(root: Path, tool: str, name: str, runtime: str, image: str) -> Path:
    """Lay an image out for a runtime that keeps none itself; return its folder."""
    folder = unpacked(root, name)
    shutil.rmtree(folder, ignore_errors=True)
    if runtime == "charliecloud":
        (folder / "root").mkdir(parents=True)
        with exported(tool, image) as stream:
            command = ["tar", "-x", "-C", str(folder / "root"), "--exclude=dev/*"]
            subprocess.run(command, stdin=stream, check=True)
    else:
        folder.mkdir(parents=True)
        archive = folder / "image.tar"
        save = [require(tool), "save", f"--output={archive}", image]
        _run(save, dict(os.environ))
        words = ["build", str(folder / "image.sif"), f"docker-archive:{archive}"]
        _run([require("apptainer"), *words], dict(os.environ))
        archive.unlink()
    (folder / "id").write_text(f"{image}\n", encoding="utf-8")
    return folder
