"""The ns-3 wheel: fetched by its pinned hash; only headers and libraries are unpacked."""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from replication.errors import RunError

#: The wheel's tags: what is used of it, C++ headers and libraries, is the same for any Python.
TAGS = ("--python-version", "311", "--implementation", "cp", "--abi", "cp311")
PLATFORM = ("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:")
WANTED = ("ns3/include/", "ns3/lib64/")
#: Where a wheel says which version it is; most of what is in it says "dev".
METADATA = "ns3-*.dist-info/METADATA"


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
