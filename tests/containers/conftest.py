"""Container engines with data of their own, and the images of this checkout in each.

REPLICATION_CONTAINER_ENGINES names the simulators to compare.
"""

import os
import shutil
import subprocess
import sys
import time

import pytest

from tests.containers.machine import DATA, ROOT, SOCKET, settings

ENGINES = os.environ.get("REPLICATION_CONTAINER_ENGINES", "ns3,ns2,linux").split(",")
#: The image of the whole workflow holds every engine, so it is there only with all of them.
IMAGES = [*ENGINES, "analysis"] if len(ENGINES) == 3 else ENGINES
RUNTIMES = ("podman", "docker", "charliecloud")


def image_build(*words, check=True):
    """Run a command of the images' build in the checkout."""
    done = subprocess.run(
        [sys.executable, "containers", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def make_images(names, *words):
    """Build the images; what differs from the lock is for test_images to say."""
    only = ",".join(names)
    done = image_build("build", "--with", "podman", "--only", only, *words, check=False)
    assert done.returncode == 0 or "differ from the lock" in done.stderr, done.stderr


@pytest.fixture(scope="session", autouse=True)
def private_storage():
    """Give podman and docker storage of their own."""
    os.environ.update(settings())


@pytest.fixture(scope="session")
def podman(private_storage):
    """Build base and images with podman, if need be; return the runtime's name."""
    from image_build.build import BASE
    from replication.engines.image import stored_id

    if stored_id("podman", BASE) is None:
        image_build("base", "--with", "podman")
    make_images(IMAGES)
    return "podman"


@pytest.fixture(scope="session")
def docker(podman):
    """Start a docker daemon with podman's images in it; return the runtime's name."""
    from replication.engines.image import reference

    command = ["dockerd", "--data-root", DATA / "docker", "--exec-root", DATA / "docker-run"]
    command += ["--pidfile", DATA / "docker.pid", "-H", f"unix://{SOCKET}", "--iptables=false"]
    with (DATA / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            [*map(str, command), "--bridge=none"], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(["docker", "version"], capture_output=True).returncode != 0:
            assert daemon.poll() is None and time.monotonic() < deadline, (
                DATA / "dockerd.log"
            ).read_text()[-2000:]
            time.sleep(0.5)
        for name in ENGINES:
            save = subprocess.Popen(
                ["podman", "save", reference(ROOT, name)], stdout=subprocess.PIPE
            )
            subprocess.run(["docker", "load", "--quiet"], stdin=save.stdout, check=True)
            assert save.wait() == 0
        yield "docker"
    finally:
        daemon.terminate()
        daemon.wait(timeout=60)


@pytest.fixture(scope="session")
def charliecloud(podman):
    """Unpack the images; return the runtime's name."""
    assert shutil.which("ch-run"), "install Debian's package charliecloud"
    make_images(ENGINES, "--unpack", "charliecloud")
    return "charliecloud"
