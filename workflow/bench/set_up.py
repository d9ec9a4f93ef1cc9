"""What an installation takes: fetched and unpacked bytes, and the time from fetched to ready."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from replication.engines.wheel import TAGS, download, unpack
from replication.report.parts.bench_model import Figure, SetUp

from bench.engine import WHEEL_LOCK
from bench.timed import Announce, timed

ENVIRONMENT, WHEEL = "the locked Python packages", "the wheel of ns-3"
#: What was unpacked before any of it was left out, and the goal: the half of it.
_BEFORE_BYTES = {ENVIRONMENT: 658e6, WHEEL: 304e6}
UNPACKED_AT_MOST = 0.5


def halved(rows: list[SetUp]) -> list[Figure]:
    """Return how much of each part is still unpacked, beside what once was."""
    return [
        Figure(
            id=f"set-up-{'wheel' if row.name == WHEEL else 'environment'}",
            title=f"Unpacked of {row.name}, beside all of it",
            value=round(row.unpacked_bytes / _BEFORE_BYTES[row.name], 3),
            unit="1",
            how=f"{row.unpacked_bytes / 1e6:.0f} MB over {_BEFORE_BYTES[row.name] / 1e6:.0f} MB "
            f"before, in {row.wall_s:.1f} s",
            at_most=UNPACKED_AT_MOST,
        )
        for row in rows
    ]


def set_up(root: Path, folder: Path, say: Announce) -> list[SetUp]:
    """Fetch and unpack what `make report` installs, into `folder`, and measure it.

    Raises
    ------
    RunError
        The packages cannot be fetched.
    """
    say("what an installation fetches and unpacks")
    return [_environment(root, folder / "environment"), _wheel(root, folder / "wheel")]


def _environment(root: Path, folder: Path) -> SetUp:
    lock, fetched = root.resolve() / "requirements.lock", folder / "fetched"
    fetched.mkdir(parents=True)
    download(lock, fetched, ())
    started = time.monotonic()
    timed([sys.executable, "-m", "venv", "made"], folder)
    python = str(folder / "made" / "bin" / "python")
    # Of some packages there is a source archive alone, whose build asks the index for its tools.
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    timed([python, *words, "--find-links", str(fetched), "-r", str(lock)], folder)
    wall_s = time.monotonic() - started
    return _measured(ENVIRONMENT, fetched, folder / "made", wall_s)


def _wheel(root: Path, folder: Path) -> SetUp:
    lock, fetched = root.resolve() / WHEEL_LOCK, folder / "fetched"
    fetched.mkdir(parents=True)
    download(lock, fetched, TAGS)
    (wheel,) = fetched.glob("*.whl")
    started = time.monotonic()
    unpack(wheel, folder / "ns3")
    wall_s = time.monotonic() - started
    return _measured(WHEEL, fetched, folder / "ns3", wall_s)


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
