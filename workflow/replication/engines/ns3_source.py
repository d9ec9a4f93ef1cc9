"""ns-3 built from the sources of its release: checked part by part, once, in place of the wheel."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from replication.engines.git_object import git_object
from replication.study.errors import InputError, RunError
from replication.study.files import read_model, sha256_of
from replication.study.model import Document, Text

#: Folders that its build file asks for, and that nothing of ours needs.
_EMPTY = ("examples", "scratch", "utils")
PINNED, TOOLS, INCLUDED = (
    Path(f"workflow/engines/ns3_source.{kind}") for kind in ("yaml", "lock", "cmake")
)
_HASH = Field(pattern=r"^[0-9a-f]{40}$")
#: How programs are compiled and linked against it: the linker optimises ns-3 and them as one. The
#: one definition rule is not checked: a template's field g_log has a name for each file.
COMPILER = "g++ -flto=auto -fno-pie -no-pie -Wno-odr"
#: What the build took, in its folder: seconds of CPU time.
COST = "cpu_s"


class Ns3Source(Document):
    """What of a release is built, and how."""

    release: Text
    commit: Annotated[str, _HASH]
    licence: Text
    parts: Annotated[dict[str, Annotated[str, _HASH]], Field(min_length=1)]
    options: dict[str, str]


def given_source() -> Path | None:
    """Return the archive or folder that NS3_SOURCE names; None where it is not set."""
    named = os.environ.get("NS3_SOURCE")
    return Path(named) if named else None


def source_key(root: Path) -> str:
    """Return what names a build: a hash over the parts, the options and the tools."""
    return sha256_of(*(root / path for path in (PINNED, TOOLS, INCLUDED)))[:8]


def built_ns3(root: Path) -> Path:
    """Return the folder of what is built, whether or not it is; it outlives `make clean`."""
    return root / ".cache" / "ns3" / source_key(root) / "ns3"


def takes_source(root: Path) -> bool:
    """Return whether ns-3 from its sources takes the wheel's place: it is there, or asked for."""
    return given_source() is not None or built_ns3(root).is_dir()


def build_ns3(root: Path, output: Path, jobs: int) -> None:
    """Compile ns-3 from the release that NS3_SOURCE names, and put it to `output` for the linker.

    Raises
    ------
    InputError
        NS3_SOURCE is not set, its file is not there or no archive, or a part of it is not what the
        release has.
    RunError
        The build fails; the message holds the last lines.
    """
    source = given_source()
    if source is None:
        raise InputError("NS3_SOURCE: is not set; name an archive or a folder of ns-3's release")
    pinned, output = read_model(root / PINNED, Ns3Source), output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".source.") as folder:
        work = Path(folder)
        lay_out(source, pinned, work / "source")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        _run([*pip, "--target", str(work / "tools"), "-r", str(root / TOOLS)], work)
        _compile(pinned, root / INCLUDED, work, jobs)
        built = work / "built"
        _lay_libraries(work, built / "lib64")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        (built / COST).write_text(f"{used.ru_utime + used.ru_stime:.1f}\n", encoding="utf-8")
        (built / "METADATA").write_text(f"Version: {pinned.release}\n", encoding="utf-8")
        shutil.rmtree(output, ignore_errors=True)
        built.rename(output)


def _compile(pinned: Ns3Source, included: Path, work: Path, jobs: int) -> None:
    cmake, ninja = work / "tools/cmake/data/bin/cmake", work / "tools/bin/ninja"
    options = [f"-D{key}={value}" for key, value in pinned.options.items()]
    # Neither a compiler's cache nor paths of this machine may decide what is built.
    options += ["-DNS3_CCACHE=OFF", f"-DCMAKE_INSTALL_PREFIX={work / 'built'}"]
    options += ["-DCMAKE_SKIP_RPATH=ON", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    options += [f"-DCMAKE_PROJECT_INCLUDE={included}"]
    _run([str(cmake), "-G", "Ninja", "-S", "source", "-B", "build", *options], work)
    _run([str(ninja), "-C", "build", "-j", str(jobs), "install"], work)


def _lay_libraries(work: Path, libraries: Path) -> None:
    """Put the objects where a wheel has libraries, of which the build has made the names alone.

    The library of the module core is a linker script that names all objects, and the others are
    empty. So all are linked: ns-3's types register themselves before a program starts.
    """
    (objects := libraries / "objects").mkdir()
    compiled = sorted((work / "build/src").rglob("*.o"))
    for number, path in enumerate(compiled):
        path.rename(objects / f"{number}.o")
    named = " ".join(f"objects/{number}.o" for number in range(len(compiled)))
    for library in libraries.glob("*.so"):
        script = f"INPUT({named})" if library.stem.endswith("-core") else "/* See core. */"
        library.write_text(script + "\n", encoding="utf-8")


def lay_out(source: Path, pinned: Ns3Source, folder: Path) -> None:
    """Lay the pinned parts of a release out in `folder`, and nothing else of it.

    Raises
    ------
    InputError
        As `build_ns3`.
    """
    if not source.exists():
        raise InputError(f"NS3_SOURCE: {source}: is not there; name an archive or a folder of ns-3")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpacked.") as unpacked:
        top = source
        if source.is_file():
            _unpack(source, Path(unpacked))
            top = Path(unpacked)
        top = _top(source, top)
        for part, expected in pinned.parts.items():
            path = top / part
            found = git_object(path) if path.exists() else "nothing"
            if found != expected:
                raise InputError(
                    f"NS3_SOURCE: {source}: {part}: is {found} by git's hash, and {expected} in "
                    f"the release (commit {pinned.commit[:12]}); take the release's own archive"
                )
            target = folder / part
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, target)
    for name in _EMPTY:
        (folder / name).mkdir()
        (folder / name / "CMakeLists.txt").touch()


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"NS3_SOURCE: {archive}: cannot be unpacked ({error})") from None


def _top(source: Path, folder: Path) -> Path:
    """Return the folder that has ns-3's VERSION: the one that is given, or one below."""
    for top in (folder, *sorted(folder.glob("*/")), *sorted(folder.glob("*/*/"))):
        if (top / "VERSION").is_file() and (top / "src").is_dir():
            return top
    raise InputError(f"NS3_SOURCE: {source}: holds no ns-3 (a file VERSION and a folder src)")


def _run(command: Sequence[str], folder: Path) -> None:
    # Build files look into the environment for flags and caches: none is given.
    known = {name: os.environ[name] for name in os.environ if not name.endswith("FLAGS")}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=known
    )
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise RunError(f"ns-3 cannot be built: {Path(command[0]).name} failed:\n{last}")
