"""The images: the same lock gives the same images, and a difference from it has a name.

REPLICATION_FRESH names those that are built a second time.
"""

import os
import subprocess

import pytest
from image_build.lock import Lock, differences, read_lock, write_lock
from replication.engines.image import reference

from tests.containers.conftest import ENGINES, IMAGES, ROOT, image_build


@pytest.fixture(scope="module")
def built(podman, tmp_path_factory):
    """Return a lock of what is there."""
    path = tmp_path_factory.mktemp("lock") / "lock.yaml"
    words = ["--with", "podman", "--only", ",".join(IMAGES)]
    image_build("build", *words, "--lock", str(path), "--update-lock")
    return path


def test_built_again_from_nothing_they_are_the_same_images(built):
    words = ["--with", "podman", "--only", os.environ.get("REPLICATION_FRESH", "ns3"), "--fresh"]
    image_build("build", *words, "--lock", str(built))


def test_a_package_that_differs_from_the_lock_is_named(built, tmp_path):
    document = read_lock(built).model_dump()
    document["base"]["packages"]["libc6"] = "2.35-1"
    path = tmp_path / "lock.yaml"
    write_lock(path, Lock.model_validate(document))
    words = ["--with", "podman", "--only", ENGINES[0], "--lock", str(path)]
    done = image_build("build", *words, check=False)
    assert done.returncode == 1
    assert "base.packages.libc6: locked 2.35-1, built 2.36" in done.stderr


def test_the_repositorys_lock_speaks_of_the_present_sources(built):
    """Debian moves on; what is ours must not differ from the lock."""
    lines = differences(read_lock(ROOT / "containers" / "lock.yaml"), read_lock(built))
    moved = [line for line in lines if "packages." in line or line.startswith("base.")]
    if not moved:
        assert lines == [], "run `make images UPDATE_LOCK=1`"
    assert [line for line in lines if ".wheels." in line] == []


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_is_labelled_and_not_roots(podman, name):
    def look(what):
        command = ["podman", "image", "inspect", "--format", what, reference(ROOT, name)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert look("{{.Config.User}}") == "10000:10000"
    for label in ("version", "source", "licenses"):
        assert look(f'{{{{index .Labels "org.opencontainers.image.{label}"}}}}')
