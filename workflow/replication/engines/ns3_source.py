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
#: How ns-3 is compiled to count how often each branch is taken, and by such counts. What was never
#: taken in the runs that counted is optimised as ever.
COUNTING = "-fprofile-generate -fprofile-update=single"
_BY_COUNTS = "-fprofile-use -fprofile-partial-training -Wno-missing-profile -Wno-coverage-mismatch"
#: The counts, an archive for each version of the compiler, which alone can read them.
PROFILES = Path("workflow/engines/ns3_profile")
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
    """Return what names a build: a hash over parts, options, tools, profiles and this file."""
    profiles = (root / PROFILES).glob("*.tar.xz")
    pinned = (root / path for path in (PINNED, TOOLS, INCLUDED))
    return sha256_of(*pinned, *profiles, Path(__file__))[:8]


def built_ns3(root: Path) -> Path:
    """Return the folder of what is built, whether or not it is; it outlives `make clean`."""
    return root / ".cache" / "ns3" / source_key(root) / "ns3"


def takes_source(root: Path) -> bool:
    """Return whether ns-3 from its sources takes the wheel's place: it is there, or asked for."""
    return given_source() is not None or built_ns3(root).is_dir()


def profile_of(root: Path) -> Path:
    """Return the profile for the compiler of this machine, whether or not it is there."""
    asked = ["g++", "-dumpfullversion"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return root / PROFILES / f"{version}.tar.xz"


def build_ns3(root: Path, output: Path, jobs: int, counting: bool = False) -> None:
    """Compile ns-3 from the release that NS3_SOURCE names, and put it to `output` for the linker.

    Parameters
    ----------
    root, output
        The project's folder, and the folder that is made.
    jobs
        How many files are compiled at a time.
    counting
        Whether programs linked with it count the branches they take, for a profile.

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
    root, output = root.absolute(), output.absolute()
    pinned = read_model(root / PINNED, Ns3Source)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".source.") as folder:
        work = Path(folder)
        lay_out(source, pinned, work / "source")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        _run([*pip, "--target", str(work / "tools"), "-r", str(root / TOOLS)], work)
        _compile(pinned, root, work, jobs, counting)
        built = work / "built"
        _lay_libraries(work, built / "lib64")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        (built / COST).write_text(f"{used.ru_utime + used.ru_stime:.1f}\n", encoding="utf-8")
        (built / "METADATA").write_text(f"Version: {pinned.release}\n", encoding="utf-8")
        shutil.rmtree(output, ignore_errors=True)
        built.rename(output)


def _compile(pinned: Ns3Source, root: Path, work: Path, jobs: int, counting: bool) -> None:
    cmake, ninja = work / "tools/cmake/data/bin/cmake", work / "tools/bin/ninja"
    flags, profile = pinned.options["CMAKE_CXX_FLAGS"], profile_of(root)
    if counting:
        flags = f"{flags} {COUNTING}"
    elif profile.is_file():
        # The compiler looks for an object's counts beside the object.
        _unpack(profile, work / "build", str(profile))
        flags = f"{flags} {_BY_COUNTS}"
    named = pinned.options | {"CMAKE_CXX_FLAGS": flags}
    options = [f"-D{key}={value}" for key, value in named.items()]
    # Neither a compiler's cache nor paths of this machine may decide what is built.
    options += ["-DNS3_CCACHE=OFF", f"-DCMAKE_INSTALL_PREFIX={work / 'built'}"]
    options += ["-DCMAKE_SKIP_RPATH=ON", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    options += [f"-DCMAKE_PROJECT_INCLUDE={root / INCLUDED}"]
    _run([str(cmake), "-G", "Ninja", "-S", "source", "-B", "build", *options], work)
    _run([str(ninja), "-C", "build", "-j", str(jobs), "install"], work)
    require_objects(work / "build")


def require_objects(build: Path) -> None:
    """Require an object beside each file of counts: those of others would be left unread.

    Raises
    ------
    RunError
        One has none.
    """
    for counts in sorted(build.rglob("*.gcda")):
        if not counts.with_suffix(".o").is_file():
            name = counts.relative_to(build)
            raise RunError(f"{PROFILES}: {name} counts for no object of ns-3; run `make profile`")


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
            _unpack(source, Path(unpacked), f"NS3_SOURCE: {source}")
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


def _unpack(archive: Path, folder: Path, called: str) -> None:
    try:
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"{called}: cannot be unpacked ({error})") from None


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
