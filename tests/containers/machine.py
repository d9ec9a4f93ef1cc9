"""Settings under which container engines work on the machine at hand, with data of their own.

Everything lives below REPLICATION_CONTAINERS (default: .cache/containers): nothing of the machine's
own container engines is touched. As a program it prints the settings for a shell to take over:

    eval "$(python tests/containers/machine.py)"
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("REPLICATION_CONTAINERS", ROOT / ".cache" / "containers")).resolve()
SOCKET = DATA / "docker.sock"
CONTAINERS_CONF = """[engine]
runtime = "{runtime}"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=32768:32768"]
"""
STORAGE_CONF = (
    '[storage]\ndriver = "{driver}"\ngraphroot = "{data}/graph"\nrunroot = "{data}/run"\n'
)
FUSE = '[storage.options.overlay]\nmount_program = "/usr/bin/fuse-overlayfs"\n'
#: From the quickest to the one that works everywhere.
STORAGE = (("overlay", ""), ("overlay", FUSE), ("vfs", ""))


def oci_runtime():
    """Return crun, or runc on a machine with both versions of control groups: crun fails there."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").is_file()
    return "crun" if unified and shutil.which("crun") else "runc"


def settings():
    """Write podman's settings; return the variables that make podman and docker heed ours."""
    DATA.mkdir(parents=True, exist_ok=True)
    variables = {
        "CONTAINERS_CONF": str(DATA / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(DATA / "storage.conf"),
        "DOCKER_HOST": f"unix://{SOCKET}",
    }
    # Limits below the machine's: podman cannot raise them where CAP_SYS_RESOURCE is missing.
    (DATA / "containers.conf").write_text(CONTAINERS_CONF.format(runtime=oci_runtime()))
    assert shutil.which("podman"), "podman is missing: apt-get install podman"
    for driver, options in STORAGE:
        conf = STORAGE_CONF.format(driver=driver, data=DATA) + options
        (DATA / "storage.conf").write_text(conf)
        info = subprocess.run(
            ["podman", "info"], env=os.environ | variables, capture_output=True, text=True
        )
        if info.returncode == 0:
            return variables
    raise AssertionError(f"podman works with no storage: {info.stderr}")


if __name__ == "__main__":
    for name, value in settings().items():
        print(f"export {name}={shlex.quote(value)}")
