"""The ns-3 wheel: fetched by its pinned hash; only headers and libraries are unpacked."""

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
WANTED = ("ns3/include/", "ns3/lib64/")
#: Where a wheel says which version it is; most of what is in it says "dev".
METADATA = "ns3-*.dist-info/METADATA"


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
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            stated = fnmatch.filter(names, METADATA)
            archive.extractall(work, [*(n for n in names if n.startswith(WANTED)), *stated])
        for path in work.glob(METADATA):
            path.rename(work / "ns3" / path.name)
        shutil.rmtree(output, ignore_errors=True)
        (work / "ns3").rename(output)
