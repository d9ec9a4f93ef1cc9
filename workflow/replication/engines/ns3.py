"""The ns-3 of the engine ns3: a pinned wheel, or an installation in the folder NS3_PREFIX.

If an installation gives the wheel's results in the canonical scenarios, its results are stored as
the wheel's; otherwise under the hash of its libraries.
"""

import fnmatch
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field

from replication.base.errors import InputError, RunError
from replication.base.files import (
    digest_of,
    file_sha256,
    private_prefix,
    read_json,
    read_text,
    sha256_of,
    write_text,
)
from replication.engines.canonical import canonical_scenarios, digests_of_runs
from replication.engines.generation import load_generation
from replication.engines.model import Engine, OwnProgram

#: A wheel's version, or the release of an installed ns-3.
Ns3Version = Annotated[str, Field(pattern=r"^3\.\d+(\.post\d+)?$")]
NS3_VERSION = "3.44.post0"
#: Wheels with a hash in workflow/engines/ns3/wheels/<version>.lock.
WHEEL_VERSIONS = ("3.39.post2", NS3_VERSION)
#: Variable with the folder of an installed ns-3.
PREFIX = "NS3_PREFIX"
PROGRAM = "replicate-ns3"

#: Tags of one wheel; its C++ headers and libraries are the same for any Python.
_TAGS = (
    *("--python-version", "311", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"),
)
#: Modules that our program links, and those that they require.
LINKED = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
_MODULES = (*LINKED, "stats", "bridge", "flow-monitor")
#: The file with a wheel's version.
_METADATA = "ns3-*.dist-info/METADATA"
#: Files to unpack: ns-3's headers, the modules, and bundled libraries, whose names have a hash.
_UNPACKED = (
    _METADATA,
    "ns3/include/ns3/*",
    *(f"ns3/lib64/libns3*[0-9v]-{module}.so" for module in _MODULES),
    f"ns3/lib64/lib*-{'[0-9a-f]' * 8}.so*",
)


def wheel_hash(lock: Path) -> str:
    """Return the SHA-256 of the wheel that `lock` pins."""
    pinned = re.search(r"--hash=sha256:([0-9a-f]{64})\b", read_text(lock))
    if pinned is None:
        raise InputError(f"{lock}: has no --hash=sha256:...; restore it (git checkout {lock})")
    return pinned[1]


def fetch_wheel(lock: Path, wheel: Path) -> None:
    """Download the wheel that `lock` pins to `wheel`, verified by pip."""
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wheel.parent, prefix=private_prefix("wheel")) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *_TAGS]
        command += ["--require-hashes", "--dest", folder, "-r", str(lock)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["pip printed nothing"]
            raise RunError(f"{lock}: the wheel cannot be fetched: {lines[-1]}")
        (downloaded,) = Path(folder).glob("*.whl")
        downloaded.replace(wheel)


def unpack_wheel(wheel: Path, output: Path) -> None:
    """Replace the folder `output` by the files that we link of a wheel, which its hash names."""
    if file_sha256(wheel) != wheel.name:
        raise RunError(f"{wheel}: is damaged: remove it and run again")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=private_prefix("wheel")) as folder:
        work = Path(folder)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            for pattern in _UNPACKED:
                archive.extractall(work, fnmatch.filter(names, pattern))
        (metadata,) = work.glob(_METADATA)
        metadata.rename(work / "ns3" / metadata.name)
        shutil.rmtree(output, ignore_errors=True)
        (work / "ns3").rename(output)


#: The library of the module core.
_CORE = re.compile(r"libns3[\w.]*(-dev)?-core(-[a-z]+)?\.so")


@dataclass(frozen=True)
class Prefix:
    """An unpacked wheel or an installed ns-3, which our program can link.

    `folder` has the headers in include/ns3, `core` is the library of the module core, and `release`
    the version that its package states: "3.44".
    """

    folder: Path
    core: Path
    release: str

    @classmethod
    def find(cls, folder: Path) -> Self:
        """Return the ns-3 in a folder; InputError without headers, libraries or version."""
        libraries: list[Path] = []
        for below in ("lib64", "lib", "lib/*"):
            libraries += sorted(folder.glob(f"{below}/libns3*.so"))
        cores = [path for path in libraries if _CORE.fullmatch(path.name)]
        # Prefer an optimized build or a release to a debug build.
        cores.sort(key=lambda path: not path.name.endswith(("-optimized.so", "-core.so")))
        stated = [folder / "METADATA"]
        if cores:
            stated += cores[0].parent.glob("pkgconfig/ns3*-core*.pc")
        texts = [path.read_text(encoding="utf-8") for path in stated if path.is_file()]
        release = re.search(r"^Version: *(3[.-]\w+)", "\n".join(texts), re.MULTILINE)
        if not (folder / "include/ns3/core-module.h").is_file() or not cores or not release:
            raise InputError(
                f"{PREFIX}: {folder}: is not an installed ns-3 (include/ns3, libns3*-core.so below "
                "lib or lib64, and its pkgconfig): name the folder that ns-3's `./ns3 install` "
                f"wrote to, or unset {PREFIX} to use the wheel"
            )
        return cls(folder.absolute(), cores[0].absolute(), release[1])

    @functools.cached_property
    def libraries(self) -> list[Path]:
        """The libraries that our program links."""
        return [self.core.with_name(self.core.name.replace("-core", f"-{m}")) for m in LINKED]

    @functools.cached_property
    def build(self) -> str:
        """Hash of the libraries, which distinguishes builds of one release."""
        missing = [path.name for path in self.libraries if not path.is_file()]
        if missing:
            raise InputError(
                f"{PREFIX}: {self.folder}: lacks {', '.join(missing)}: enable the modules "
                f"{', '.join(LINKED)} when ns-3 is configured"
            )
        return sha256_of(*self.libraries)[:12]


def installed(version: str) -> Prefix | None:
    """Return the installed ns-3, None for a wheel; InputError unless it has this version."""
    named = os.environ.get(PREFIX)
    release = ".".join(version.split(".")[:2])
    if not named:
        if version in WHEEL_VERSIONS:
            return None
        raise InputError(
            f"ns3_version: {version} has no wheel here ({', '.join(WHEEL_VERSIONS)} have): set "
            f"{PREFIX} to a folder where ns-3 {release} is installed (/usr for a Debian package)"
        )
    prefix = Prefix.find(Path(named))
    if prefix.release != release:
        raise InputError(
            f"{PREFIX}: {named}: is ns-3 {prefix.release}, but ns3_version is {version}: install "
            f"ns-3 {release} and name its folder, set ns3_version to {prefix.release}, or unset "
            f"{PREFIX} to use the wheel"
        )
    return prefix


def own_program(root: Path, engine: Engine) -> OwnProgram | None:
    """Return our program on the ns-3 in NS3_PREFIX, compiled once; None for a wheel."""
    prefix = installed(engine.version)
    return None if prefix is None else _compiled(root.absolute(), engine, prefix)


@functools.cache
def _compiled(root: Path, engine: Engine, prefix: Prefix) -> OwnProgram:
    sources = sha256_of(*engine.sources(root))
    key = digest_of(f"{sources} {prefix.build} {prefix.folder}".encode())[:12]
    program = Path(".cache/ns3") / key / PROGRAM
    folder = (root / program).parent
    if not folder.is_dir():
        print(
            f"ns-3 {prefix.release} in {prefix.folder}: compiling our program, and comparing its "
            "results with the wheel's (once, about a minute)",
            file=sys.stderr,
        )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=private_prefix("built")) as made:
            build = Path(made) / key
            compile_program(root, prefix, build)
            # Only the pinned release has a generation.
            is_pinned = engine.version == NS3_VERSION
            scenarios = canonical_scenarios(root, engine) if is_pinned else []
            digests = digests_of_runs(engine, build / PROGRAM, scenarios)
            write_text(build / "canonical.json", json.dumps(digests))
            build.rename(folder)
    generation = load_generation(root, engine.name)
    as_pinned = (
        generation is not None
        and generation.has(sources[:8])
        and generation.canonical == read_json(folder / "canonical.json")
    )
    return OwnProgram(program, prefix.build, as_pinned)


def compile_program(root: Path, prefix: Prefix, build: Path, *variables: str) -> None:
    """Compile our program on an installed ns-3 into the folder `build`, with make's `variables`."""
    names = [path.name.removeprefix("lib").removesuffix(".so") for path in prefix.libraries]
    command = [str(root / "workflow/engines/compile_ns3"), str(build)]
    command += [f"--jobs={os.cpu_count() or 1}", f"NS3_PREFIX={prefix.folder}"]
    command += [f"CORE={prefix.core}", f"RELEASE={prefix.release}"]
    command += [f"LDLIBS={' '.join(f'-l{name}' for name in names)}", *variables]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"{prefix.folder}: our program cannot be compiled on this ns-3:\n{last}")
