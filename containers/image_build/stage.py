"""Lays out what an image is built from: sources, packages and kernels."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from replication.engines.catalogue import ENGINES, linux_cache
from replication.engines.image import ANALYSIS, cache, holds_source, recipe
from replication.engines.ns3_source import build_ns3, built_ns3
from replication.engines.ns3_version import NS3_VERSION
from replication.engines.wheel import download, fetch_wheel

#: Tags of the packages that an image of Debian 12 takes.
_TAGS = (
    *("--python-version", "3.11.2", "--implementation", "cp"),
    *("--abi", "cp311", "--abi", "abi3", "--abi", "none"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64"),
    *("--platform", "any"),
)
_RUNNER_MAIN = "from replication.run.runner import main\n\nmain()\n"


def stage(root: Path, name: str, context: Path) -> dict[str, str]:
    """Lay out all that an image is built from, with plain modes; return the wheels' hashes."""
    context.mkdir(parents=True)
    package = root / "workflow" / "replication" / "run"
    runner = context / "runner" / "replication" / "run"
    for path in recipe(root, name):
        place = runner if path.parent == package else context
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / path.name)
    shutil.copy(root / "LICENSE", context)
    if name == ANALYSIS:
        wheels = context / "wheels"
        download(root / "requirements.lock", wheels, _TAGS)
        _plain_modes(context)
        return {
            p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(wheels.iterdir())
        }
    for folder in (runner, runner.parent):
        (folder / "__init__.py").touch()
    (context / "runner" / "__main__.py").write_text(_RUNNER_MAIN, encoding="utf-8")
    folder = root / "workflow" / "engines"
    for path in ENGINES[name].program_sources(root):
        place = context / "engines" / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    if name == "linux":
        _stage_kernels(root, context)
    _plain_modes(context)
    if name != "ns3":
        return {}
    return _stage_built(root, context) if holds_source(root, name) else _stage_wheel(root, context)


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


def _stage_built(root: Path, context: Path) -> dict[str, str]:
    """Take ns-3 along as the checkout has built it, or builds it now from NS3_SOURCE; no wheel."""
    built = built_ns3(root)
    if not built.is_dir():
        build_ns3(root, built, os.cpu_count() or 1)
    shutil.copytree(built, context / "ns3", copy_function=os.link)
    return {}


def _stage_wheel(root: Path, context: Path) -> dict[str, str]:
    lock = ENGINES["ns3"].source_folder(root) / "wheels" / f"{NS3_VERSION}.lock"
    kept = cache(root) / f"ns3-wheel-{NS3_VERSION}"
    if not kept.is_dir():
        fetch_wheel(lock, kept)
    shutil.copytree(kept, context / "ns3", copy_function=os.link)
    pinned = next(line for line in lock.read_text().splitlines() if "--hash=sha256:" in line)
    wheel, _, sha256 = pinned.partition(" --hash=sha256:")
    return {wheel.strip(): sha256.strip()}
