"""Builds images with podman or docker, and looks into them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO

from replication.engine import ENGINES, linux_cache
from replication.errors import InputError, RunError
from replication.image import ANALYSIS, cache, recipe, reference, require, stored_id, tag, unpacked
from replication.image_lock import BaseLock, ImageLock
from replication.ns3_version import NS3_VERSION
from replication.runtime import container_hint
from replication.wheel import fetch_locked, fetch_wheel

BASE = "localhost/replicate-base:bookworm"
#: Paths that a container engine makes itself when it lays out a container.
_NOT_CONTENT = ("dev/", "proc/", "sys/", "run/")
_NOT_CONTENT_FILES = (".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab")
_BUILD_PACKAGES = "opt/replicate/build-packages"
_STATUS = "var/lib/dpkg/status"
_RUNNER_MAIN = "from replication.runner import main\n\nmain()\n"


@dataclass(frozen=True)
class Content:
    """What is in an image: a hash over it, its packages, and those that built it."""

    sha256: str
    packages: dict[str, str]
    build_packages: dict[str, str]


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
    if stored_id(tool, base) is None:
        remedy = "run `make base-image`" if base == BASE else f"`{tool} pull` it"
        raise InputError(f"base: {tool} has no image {base}: {remedy}")
    archive = cache(root) / "base" / "base.tar"
    local = base == BASE and archive.is_file()
    content = inspect(tool, base)
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
    wheels = _stage(root, name, context)
    arguments = {"BASE": base.reference, "VERSION": _version(name), "SOURCE": tag(root, name)}
    if name == ANALYSIS:
        arguments |= {engine.upper(): reference(root, engine) for engine in ENGINES}
    options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
    image = _build(
        tool, context, reference(root, name), options + (["--no-cache"] if fresh else [])
    )
    shutil.rmtree(context)
    content = inspect(tool, image)
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


def _stage(root: Path, name: str, context: Path) -> dict[str, str]:
    """Lay out all that an image is built from, with plain modes; return the wheels' hashes."""
    context.mkdir(parents=True)
    package = root / "workflow" / "replication"
    for path in recipe(root, name):
        place = context / "runner" / "replication" if path.parent == package else context
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / path.name)
    shutil.copy(root / "LICENSE", context)
    if name == ANALYSIS:
        wheels = fetch_locked(root / "requirements.lock", context / "wheels")
        _plain_modes(context)
        return wheels
    (context / "runner" / "replication" / "__init__.py").touch()
    (context / "runner" / "__main__.py").write_text(_RUNNER_MAIN, encoding="utf-8")
    folder = root / "workflow" / "engines"
    for path in ENGINES[name].program_sources(root):
        place = context / "engines" / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    if name == "linux":
        _stage_kernels(root, context)
    _plain_modes(context)
    return _stage_wheel(root, context) if name == "ns3" else {}


def _plain_modes(folder: Path) -> None:
    """Make modes independent of the checkout's umask."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _stage_kernels(root: Path, context: Path) -> None:
    """Take the kernels along that the checkout has built; the same key means the same bytes."""
    (context / "kernels").mkdir()
    for kernel in linux_cache(root).glob("*/linux"):
        kept = context / "kernels" / kernel.parent.name
        kept.mkdir()
        for path in (kernel, kernel.with_name("release")):
            shutil.copy(path, kept)


def _stage_wheel(root: Path, context: Path) -> dict[str, str]:
    lock = ENGINES["ns3"].source_folder(root) / "wheels" / f"{NS3_VERSION}.lock"
    kept = cache(root) / f"ns3-wheel-{NS3_VERSION}"
    if not kept.is_dir():
        fetch_wheel(lock, kept)
    shutil.copytree(kept, context / "ns3", copy_function=os.link)
    pinned = next(line for line in lock.read_text().splitlines() if "--hash=sha256:" in line)
    wheel, _, sha256 = pinned.partition(" --hash=sha256:")
    return {wheel.strip(): sha256.strip()}


@contextlib.contextmanager
def exported(tool: str, image: str) -> Iterator[IO[bytes]]:
    """Give the stream of a tar archive of all files of an image."""
    command = require(tool)
    made = subprocess.run(
        [command, "create", image, "/bin/true"], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise RunError(f"{image}: {tool} cannot lay it out: {made.stderr.strip()}")
    container = made.stdout.strip()
    try:
        export = subprocess.Popen([command, "export", container], stdout=subprocess.PIPE)
        assert export.stdout is not None
        with export.stdout:
            yield export.stdout
        if export.wait() != 0:
            raise RunError(f"{image}: {tool} cannot export it")
    finally:
        subprocess.run([command, "rm", "--force", container], capture_output=True, check=False)


def inspect(tool: str, image: str) -> Content:
    """Return what is in an image."""
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    entries: list[tuple[str, str]] = []
    with exported(tool, image) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./").strip("/")
            if not name or name.startswith(_NOT_CONTENT) or name in _NOT_CONTENT_FILES:
                continue
            handle = archive.extractfile(member) if member.isreg() else None
            if handle is not None:
                data = handle.read()
                files[name] = hashlib.sha256(data).hexdigest()
                if name in (_STATUS, _BUILD_PACKAGES):
                    texts[name] = data.decode()
            # Which of several hard links comes first is the tool's affair.
            what = files.get(member.linkname) if member.islnk() else files.get(name)
            kind = "file" if what else f"{member.type.decode()} {member.linkname}"
            line = f"{name} {kind} {what} {member.mode:o} {member.uid}:{member.gid}"
            entries.append((name, line))
    digest = hashlib.sha256("\n".join(line for _, line in sorted(entries)).encode())
    build = dict(line.split("\t") for line in texts.get(_BUILD_PACKAGES, "").splitlines())
    return Content(digest.hexdigest(), _installed(texts.get(_STATUS, "")), build)


def _installed(status: str) -> dict[str, str]:
    """Return package to version from dpkg's status file."""
    packages = {}
    for paragraph in status.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and not line.startswith(" ")
        )
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return packages


def unpack(root: Path, tool: str, name: str, runtime: str, image: str) -> Path:
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
