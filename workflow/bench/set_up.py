"""What an installation takes: fetched and unpacked bytes, and the time from fetched to ready.

Beside each part stands what it was before: packages as pip installs them by itself, which resolves
and compiles, and the wheel of ns-3 unpacked as a whole. Both are unpacked here from the same files.
"""

from __future__ import annotations

import os
import sys
import time
import zipfile
from pathlib import Path

from replication.engines.wheel import TAGS, download, unpack
from replication.report.parts.bench_model import Figure, SetUp

from bench.engine import WHEEL_LOCK
from bench.timed import Announce, timed

ENVIRONMENT, WHEEL = "the locked Python packages", "the wheel of ns-3"
#: What each part was before.
BEFORE = {
    ENVIRONMENT: f"{ENVIRONMENT}, by pip's own way",
    WHEEL: f"{WHEEL}, as a whole",
}
#: What was fetched when the goals were set: an index serves whole files, named by their hashes.
FETCHED_BEFORE_BYTES = {ENVIRONMENT: 211e6, WHEEL: 69.2e6}
#: The goal: the half of what was before.
AT_MOST = 0.5
#: How make installs what is locked (see the Makefile): modules are compiled when first imported.
_AS_MAKE = ("--no-compile", "--no-deps", "--disable-pip-version-check")


def halved(rows: list[SetUp]) -> list[Figure]:
    """Return what each part fetches, unpacks and takes, beside what it did before."""
    by_name = {row.name: row for row in rows}
    return [
        figure
        for name, before in BEFORE.items()
        if name in by_name
        for figure in _beside(name, by_name[name], by_name[before])
    ]


def _beside(name: str, now: SetUp, before: SetUp) -> list[Figure]:
    fetched, once = now.downloaded_bytes / 1e6, FETCHED_BEFORE_BYTES[name] / 1e6
    sizes = now.unpacked_bytes / 1e6, before.unpacked_bytes / 1e6
    times = now.wall_s, before.wall_s
    return [
        _part(name, "fetched", "Fetched", fetched, once, "MB; an index serves whole files"),
        _part(name, "unpacked", "Unpacked", *sizes, f"MB, {before.name}"),
        _part(name, "time", "Time to unpack", *times, f"s, {before.name}"),
    ]


def _part(name: str, what: str, words: str, now: float, before: float, beside: str) -> Figure:
    return Figure(
        id=f"set-up-{'wheel' if name == WHEEL else 'environment'}-{what}",
        title=f"{words} of {name}, beside before",
        value=round(now / before, 3),
        unit="1",
        how=f"{now:.3g} over {before:.3g} {beside}",
        at_most=AT_MOST,
    )


def set_up(root: Path, folder: Path, say: Announce) -> list[SetUp]:
    """Fetch and unpack what `make report` installs, into `folder`, as it does and as before.

    Raises
    ------
    RunError
        The packages cannot be fetched.
    """
    say("what an installation fetches and unpacks")
    return [*_environment(root, folder / "environment"), *_wheel(root, folder / "wheel")]


def _environment(root: Path, folder: Path) -> list[SetUp]:
    lock, fetched = root.resolve() / "requirements.lock", folder / "fetched"
    fetched.mkdir(parents=True)
    download(lock, fetched, ())
    found: list[SetUp] = []
    for name, options in ((ENVIRONMENT, _AS_MAKE), (BEFORE[ENVIRONMENT], ())):
        made = folder / f"made-{len(found)}"
        started = time.monotonic()
        timed([sys.executable, "-m", "venv", str(made)], folder)
        words = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", *options]
        # Some packages are a source archive, whose build asks the index for its tools.
        words += ["--require-hashes", "--find-links", str(fetched), "-r", str(lock)]
        timed(words, folder)
        found.append(_measured(name, fetched, made, time.monotonic() - started))
    return found


def _wheel(root: Path, folder: Path) -> list[SetUp]:
    lock, fetched = root.resolve() / WHEEL_LOCK, folder / "fetched"
    fetched.mkdir(parents=True)
    download(lock, fetched, TAGS)
    (wheel,) = fetched.glob("*.whl")
    started = time.monotonic()
    unpack(wheel, folder / "ns3")
    unpacked = time.monotonic()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "whole")
    ended = time.monotonic()
    return [
        _measured(WHEEL, fetched, folder / "ns3", unpacked - started),
        _measured(BEFORE[WHEEL], fetched, folder / "whole", ended - unpacked),
    ]


def _measured(name: str, fetched: Path, unpacked: Path, wall_s: float) -> SetUp:
    return SetUp(
        name=name,
        downloaded_bytes=_bytes(fetched),
        unpacked_bytes=_bytes(unpacked),
        wall_s=round(wall_s, 2),
    )


def _bytes(folder: Path) -> int:
    """Return the size of all files below a folder; a link counts for nothing."""
    found = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in found if not path.is_symlink())
