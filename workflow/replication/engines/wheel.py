"""The ns-3 wheel: fetched by its pinned hash; only headers and libraries are unpacked."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from replication.study.errors import RunError

#: The wheel's tags: what is used of it, C++ headers and libraries, is the same for any Python.
TAGS = ("--python-version", "311", "--implementation", "cp", "--abi", "cp311")
PLATFORM = ("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:")
#: Tags of the packages that an image of Debian 12 takes.
LOCKED = (
    *("--python-version", "3.11.2", "--implementation", "cp"),
    *("--abi", "cp311", "--abi", "abi3", "--abi", "none"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64"),
    *("--platform", "any"),
)
WANTED = ("ns3/include/", "ns3/lib64/")
#: Where a wheel says which version it is; most of what is in it says "dev".
METADATA = "ns3-*.dist-info/METADATA"


def fetch_locked(lock: Path, folder: Path) -> dict[str, str]:
    """Download every package pinned in `lock` to `folder`; return file names to SHA-256.

    Raises
    ------
    RunError
        A download failed or a hash differs; the message holds pip's last line.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *LOCKED]
    command += ["--require-hashes", "--dest", str(folder), "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip gave nothing"]
        raise RunError(f"{lock}: the packages cannot be fetched: {lines[-1]}")
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def fetch_wheel(lock: Path, output: Path) -> None:
    """Download the wheel pinned in `lock`, verify its hash, unpack it to `output`.

    Raises
    ------
    RunError
        The download failed or the hash differs; the message holds pip's last line.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".wheel.") as folder:
        work = Path(folder)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += [*TAGS, *PLATFORM, "--require-hashes", "--dest", folder, "-r", str(lock)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(work.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            lines = done.stderr.strip().splitlines() or ["pip gave no wheel"]
            raise RunError(f"{lock}: the ns-3 wheel cannot be fetched: {lines[-1]}")
        with zipfile.ZipFile(wheels[0]) as archive:
            names = archive.namelist()
            stated = fnmatch.filter(names, METADATA)
            archive.extractall(work, [*(n for n in names if n.startswith(WANTED)), *stated])
        for path in work.glob(METADATA):
            path.rename(work / "ns3" / path.name)
        shutil.rmtree(output, ignore_errors=True)
        (work / "ns3").rename(output)
