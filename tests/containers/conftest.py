"""Podman with storage below .cache/containers, and the images of this checkout in it.

Nothing of the machine's own container engines is touched.

REPLICATION_CONTAINER_ENGINES names the simulators to compare.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("REPLICATION_CONTAINERS", ROOT / ".cache" / "containers")).resolve()
ENGINES = os.environ.get("REPLICATION_CONTAINER_ENGINES", "ns3,ns2,linux").split(",")
CONTAINERS_CONF = """[engine]
runtime = "{runtime}"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
# Limits below the machine's: podman cannot raise them where CAP_SYS_RESOURCE is missing.
default_ulimits = ["nofile=1024:1024", "nproc=32768:32768"]
"""
STORAGE_CONF = (
    '[storage]\ndriver = "{driver}"\ngraphroot = "{data}/graph"\nrunroot = "{data}/run"\n'
)


def settings():
    """Write podman's settings; return the variables that make podman use them."""
    DATA.mkdir(parents=True, exist_ok=True)
    variables = {
        "CONTAINERS_CONF": str(DATA / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(DATA / "storage.conf"),
    }
    # crun fails on machines with both versions of control groups.
    unified = Path("/sys/fs/cgroup/cgroup.controllers").is_file()
    runtime = "crun" if unified and shutil.which("crun") else "runc"
    (DATA / "containers.conf").write_text(CONTAINERS_CONF.format(runtime=runtime))
    # The second one is slower and works everywhere.
    for driver in ("overlay", "vfs"):
        (DATA / "storage.conf").write_text(STORAGE_CONF.format(driver=driver, data=DATA))
        command = ["podman", "info"]
        info = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
        if info.returncode == 0:
            return variables
    raise AssertionError(f"podman works with no storage: {info.stderr}")


@pytest.fixture(scope="session")
def podman():
    """Build base and images with podman, if need be."""
    os.environ.update(settings())
    images = [*ENGINES, "analysis"] if len(ENGINES) == 3 else ENGINES
    base = ["podman", "image", "exists", "localhost/replicate-base:bookworm"]
    if subprocess.run(base, check=False).returncode != 0:
        subprocess.run([ROOT / "containers" / "base"], check=True)
    subprocess.run([ROOT / "containers" / "build", *images], check=True)
