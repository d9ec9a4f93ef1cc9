"""The ns-3 wheel: fetched by its pinned hash; unpacked is the tenth of it that we link against."""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from replication.study.errors import RunError

#: The wheel's tags: what is used of it, C++ headers and libraries, is the same for any Python.
TAGS = (
    *("--python-version", "311", "--implementation", "cp", "--abi", "cp311"),
    *("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"),
)
#: Modules that our programs and the bench's link, and those that these need.
MODULES = (
    *("core", "network", "internet", "point-to-point", "applications", "traffic-control"),
    *("stats", "bridge", "flow-monitor"),
)
#: Where a wheel says which version it is; most of what is in it says "dev".
METADATA = "ns3-*.dist-info/METADATA"
#: Members to unpack: of the headers ns-3's own, of the libraries the modules and what comes from
#: elsewhere, which has a hash in its name. Left out are Boost's headers and the other modules.
WANTED = (
    METADATA,
    "ns3/include/ns3/*",
    *(f"ns3/lib64/libns3*[0-9v]-{module}.so" for module in MODULES),
    "ns3/lib64/lib*-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f].so*",
)


def download(lock: Path, folder: Path, tags: Sequence[str]) -> None:
    """Let pip download the packages that `lock` pins by hash, for the Python that `tags` name.

    Raises
    ------
    RunError
        A download failed or a hash differs; the message holds pip's last line.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *tags]
    command += ["--require-hashes", "--dest", str(folder), "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip gave nothing"]
        raise RunError(f"{lock}: the packages cannot be fetched: {lines[-1]}")


def fetch_wheel(lock: Path, output: Path) -> None:
    """Download the wheel pinned in `lock` and unpack it to `output`; RunError as `download`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".wheel.") as folder:
        work = Path(folder)
        download(lock, work, TAGS)
        (wheel,) = work.glob("*.whl")
        unpack(wheel, output)


def unpack(wheel: Path, output: Path) -> None:
    """Unpack what is wanted of a wheel to `output`, which is replaced as a whole."""
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".wheel.") as folder:
        work = Path(folder)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(work, [n for w in WANTED for n in fnmatch.filter(names, w)])
        for path in work.glob(METADATA):
            path.rename(work / "ns3" / path.name)
        shutil.rmtree(output, ignore_errors=True)
        (work / "ns3").rename(output)
