"""Which ns-3 the engine ns3 is: a pinned wheel, or the installed one that NS3_PREFIX names.

An installed ns-3 stands for the wheel if our program on it writes the wheel's bytes in the
canonical scenarios below; otherwise its results are named after it.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from replication.engines.input_file import INPUT_FILE, write_inputs
from replication.engines.model import Engine, OwnProgram
from replication.study.errors import InputError, RunError
from replication.study.files import read_yaml, sha256_of, write_text
from replication.study.scenario import Scenario

#: A wheel's version, or the release of an installed ns-3.
Ns3Version = Annotated[str, Field(pattern=r"^3\.\d+(\.post\d+)?$")]
NS3_VERSION = "3.44.post0"
#: Each is pinned by its hash in workflow/engines/ns3/wheels/<version>.lock.
WHEEL_VERSIONS = ("3.39.post2", NS3_VERSION)
#: The variable that names the folder of an installed ns-3.
PREFIX = "NS3_PREFIX"
PROGRAM = "replicate-ns3"
#: The canonical scenarios, and the digest of what our program on the wheel writes in them.
CANONICAL = Path("workflow/engines/ns3_canonical.yaml")

#: The wheel's tags: what is used of it, C++ headers and libraries, is the same for any Python.
_TAGS = (
    *("--python-version", "311", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"),
)
#: Modules that our program links, and all that it needs of ns-3.
LINKED = ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
MODULES = (*LINKED, "stats", "bridge", "flow-monitor")
#: Where a wheel says which version it is; most of what is in it says "dev".
_METADATA = "ns3-*.dist-info/METADATA"
#: Members to unpack: of the headers ns-3's own, of the libraries the modules and what comes from
#: elsewhere, which has a hash in its name. Left out are Boost's headers and the other modules.
_WANTED = (
    _METADATA,
    "ns3/include/ns3/*",
    *(f"ns3/lib64/libns3*[0-9v]-{module}.so" for module in MODULES),
    "ns3/lib64/lib*-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f].so*",
)


def fetch_wheel(lock: Path, output: Path) -> None:
    """Let pip fetch the wheel that `lock` pins, and unpack what is wanted of it to `output`.

    `output` is replaced as a whole. RunError where the wheel cannot be fetched.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".wheel.") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *_TAGS]
        command += ["--require-hashes", "--dest", folder, "-r", str(lock)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["pip gave nothing"]
            raise RunError(f"{lock}: the wheel cannot be fetched: {lines[-1]}")
        work = Path(folder)
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(work, [n for w in _WANTED for n in fnmatch.filter(names, w)])
        (metadata,) = work.glob(_METADATA)
        metadata.rename(work / "ns3" / metadata.name)
        shutil.rmtree(output, ignore_errors=True)
        (work / "ns3").rename(output)


@dataclass(frozen=True)
class Prefix:
    """An ns-3 that can be linked: an unpacked wheel, or what a user or Debian installed.

    `folder` has its headers in include/ns3. `core` is the library of the module core; the others
    have its name but for the module. `release` is as its package states it: "3.44".
    """

    folder: Path
    core: Path
    release: str

    @classmethod
    def find(cls, folder: Path) -> Prefix:
        """Return the ns-3 in a folder; InputError without headers, libraries or a version."""
        found = [
            path
            for below in ("lib64", "lib", "lib/*")
            for path in sorted(folder.glob(f"{below}/libns3*.so"))
            if re.fullmatch(r"libns3[\w.]*(-dev)?-core(-[a-z]+)?\.so", path.name)
        ]
        # Of several builds in one folder the one that ns-3 calls optimized, else a release.
        found.sort(key=lambda path: not path.name.endswith(("-optimized.so", "-core.so")))
        stated = [folder / "METADATA", *(path.parent / "pkgconfig" for path in found[:1])]
        texts = [
            p.read_text(encoding="utf-8")
            for s in stated
            for p in (s, *s.glob("ns3*-core*.pc"))
            if p.is_file()
        ]
        release = re.search(r"^Version: *(3[.-]\w+)", "\n".join(texts), re.MULTILINE)
        if not (folder / "include/ns3/core-module.h").is_file() or not found or not release:
            raise InputError(
                f"{PREFIX}: {folder}: holds no installed ns-3 (include/ns3, libns3*-core.so below "
                "lib or lib64, and its pkgconfig): name the folder that ns-3's `./ns3 install` "
                f"wrote to, or unset {PREFIX} to use the wheel"
            )
        return cls(folder.absolute(), found[0].absolute(), release[1])

    @functools.cached_property
    def libraries(self) -> list[Path]:
        """Return the libraries that our program links."""
        return [self.core.with_name(self.core.name.replace("-core", f"-{m}")) for m in LINKED]

    @functools.cached_property
    def build(self) -> str:
        """Return 12 hex digits over the libraries: two builds of one release differ."""
        missing = [path.name for path in self.libraries if not path.is_file()]
        if missing:
            raise InputError(
                f"{PREFIX}: {self.folder}: lacks {', '.join(missing)}: enable the modules "
                f"{', '.join(LINKED)} when ns-3 is configured"
            )
        return sha256_of(*self.libraries)[:12]

    def make_settings(self) -> list[str]:
        """Return what the engine's Makefile has to know to link it."""
        names = [path.name.removeprefix("lib").removesuffix(".so") for path in self.libraries]
        return [
            f"NS3_PREFIX={self.folder}",
            f"CORE={self.core}",
            f"RELEASE={self.release}",
            f"LDLIBS={' '.join(f'-l{name}' for name in names)}",
        ]


def installed(version: str) -> Prefix | None:
    """Return the installed ns-3 that is to be `version`, else InputError; None for the wheel."""
    named = os.environ.get(PREFIX)
    release = ".".join(version.split(".")[:2])
    if not named:
        if version in WHEEL_VERSIONS:
            return None
        raise InputError(
            f"ns3_version: {version} has no wheel here ({', '.join(WHEEL_VERSIONS)} have): set "
            f"{PREFIX} to a folder where ns-3 {release} is installed (/usr for a Debian package)"
        )
    found = Prefix.find(Path(named))
    if found.release != release:
        raise InputError(
            f"{PREFIX}: {named}: holds ns-3 {found.release}, but ns3_version is {version}: install "
            f"ns-3 {release} and name its folder, set ns3_version to {found.release}, or unset "
            f"{PREFIX} to use the wheel"
        )
    return found


def own_program(root: Path, engine: Engine) -> OwnProgram | None:
    """Return our program on the ns-3 that NS3_PREFIX names, compiled once; None for a wheel."""
    prefix = installed(engine.version)
    return None if prefix is None else _compiled(root.absolute(), engine, prefix)


@functools.cache
def _compiled(root: Path, engine: Engine, prefix: Prefix) -> OwnProgram:
    sources = sha256_of(*engine.sources(root))
    key = hashlib.sha256(f"{sources} {prefix.build} {prefix.folder}".encode()).hexdigest()[:12]
    own = Path(".cache/ns3") / key / PROGRAM
    folder = (root / own).parent
    if not folder.is_dir():
        print(
            f"ns-3 {prefix.release} in {prefix.folder}: compiling our program, and comparing it "
            "with the wheel (once, about a minute)",
            file=sys.stderr,
        )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".built.") as made:
            build = Path(made) / key
            compile_program(root, prefix, build)
            # Other releases have other results, by which the wheel is not known.
            is_pinned = engine.version == NS3_VERSION
            digest = canonical_digest(root, build / PROGRAM, engine) if is_pinned else ""
            write_text(build / "canonical", digest)
            build.rename(folder)
    pinned = {"fingerprint": f"{sources[:8]}-{engine.version}"}
    pinned["sha256"] = (folder / "canonical").read_text(encoding="utf-8")
    return OwnProgram(own, prefix.build, read_yaml(root / CANONICAL)["pinned"] == pinned)


def compile_program(root: Path, prefix: Prefix, build: Path) -> None:
    """Compile our program on an installed ns-3 into the folder `build`."""
    words = [*prefix.make_settings(), f"BUILD={build}", "CXX=g++"]
    command = ["make", "--silent", "-C", str(root / "workflow/engines/ns3")]
    command += [f"--jobs={os.cpu_count() or 1}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"{prefix.folder}: our program cannot be compiled on this ns-3:\n{last}")


def canonical_digest(root: Path, program: Path, engine: Engine) -> str:
    """Return a hash over the tables that our program writes in the canonical scenarios."""
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="canonical-") as name:
        for number, scenario in enumerate(canonical_scenarios(read_yaml(root / CANONICAL), engine)):
            work = Path(name) / str(number)
            write_inputs(work, scenario, engine)
            files = ["--input", work / INPUT_FILE, "--output", work / "out"]
            command = [str(part) for part in (program, *files)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RunError(f"{program}: fails in a canonical scenario: {done.stderr.strip()}")
            for table in ("flows.csv", "series.csv"):
                digest.update((work / "out" / table).read_bytes())
    return digest.hexdigest()


def canonical_scenarios(document: dict[str, Any], engine: Engine) -> list[Scenario]:
    """Return the scenarios of CANONICAL, each with a flow of every congestion control."""
    controls = sorted(engine.congestion_controls - {"dctcp"})  # which needs ECN
    flows = [document["flow"] | _own_settings(n, control) for n, control in enumerate(controls)]
    access, bottleneck = document["links"]
    return [
        Scenario.model_validate(
            document["scenario"]
            | {"flows": flows, "links": [access, bottleneck | {"queue_ab": queue}]}
        )
        for queue in document["queues"]
    ]


def _own_settings(number: int, control: str) -> dict[str, Any]:
    """Return what no two flows have alike."""
    modern = control not in ("tahoe", "reno")
    return {
        "id": control,
        "congestion_control": control,
        "start_s": 0.05 * number,
        "segment_bytes": 1000 + 10 * number,
        "initial_window_segments": 1 + number % 10,
        "delayed_ack_segments": 1 + number % 2,
        "sack": modern,
        "recovery": "prr" if modern and number % 2 else "classic",
    }
