"""Provision: the Debian packages that engines need, installed or asked for by name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES, find_package, package_warning
from replication.plan.config import load_config
from replication.plan.paths import Paths
from replication.run.process import written_version
from replication.study.errors import InputError

INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends")


def provide(root: Path, names: Sequence[str] | None) -> Iterator[str]:
    """Install the packages that `names` (all engines, if None) lack; yield what was done.

    Raises
    ------
    InputError
        An engine is unknown, packages cannot be installed from here, or installing them failed;
        the message holds the command to run.
    """
    for name in names or ENGINES:
        if name not in ENGINES:
            raise InputError(f"engines: {name!r} is unknown; there are {', '.join(ENGINES)}")
    lacking = {name: ENGINES[name].missing(root) for name in names or ENGINES}
    wanted = sorted({package for packages in lacking.values() for package in packages})
    if wanted:
        yield f"installing {', '.join(wanted)}"
        _install(wanted)
    for name, packages in lacking.items():
        did = f"installed {', '.join(packages)}" if packages else "every package is there"
        yield f"{name}: {did}"


def state(root: Path, settings: dict[str, Any] | None = None) -> Iterator[str]:
    """Yield a line an engine: there and in which version, or what it lacks."""
    config = load_config(root / "configs" / "config.yaml", settings)
    for name in ENGINES:
        engine = config.engine(name)
        if packages := engine.missing(root):
            yield f"{name}: not there; lacks {', '.join(packages)}: run `make engines`"
            continue
        try:
            fingerprint = engine.fingerprint(root)
        except InputError as error:
            yield f"{name}: {error}"
            continue
        program = root / engine.program(root, Paths().data)
        if program.is_file():
            yield f"{name}: built, {engine.exact_version(written_version(program), fingerprint)}"
        elif engine.built(root):
            yield f"{name}: there, built when first used"
        else:
            yield f"{name}: not built: run `make engines`"
        if warning := package_warning(find_package(root, name)):
            yield f"{name}: warning: {warning}"


def _install(packages: list[str]) -> None:
    command = [*INSTALL, *packages]
    text = " ".join(command)
    if shutil.which("apt-get") is None:
        raise InputError(f"engines: this is not Debian; get the likes of: {' '.join(packages)}")
    if os.geteuid() != 0:
        raise InputError(f"engines: packages are missing; run as root: {text}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["apt-get", "update", "--quiet"], command):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["(it said nothing)"])[-1]
            raise InputError(f"engines: `{' '.join(words)}` failed: {last}")
