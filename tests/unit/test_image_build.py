"""The lock of the images: every value that differs is named, and nothing else."""

from pathlib import Path

import pytest
from image_build import content
from image_build.build import choose_builder, image_names
from image_build.lock import (
    BaseLock,
    ImageLock,
    Lock,
    differences,
    read_lock,
    write_lock,
)
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]
BASE = BaseLock(
    reference="localhost/base", archive_sha256="1", content_sha256="2", packages={"libc6": "2.36-9"}
)
IMAGE = ImageLock(
    id="sha256:3",
    content_sha256="4",
    packages={"ns2": "2.35"},
    build_packages={"g++": "12"},
    wheels={"ns3==3.44": "5"},
)
LOCK = Lock(builder="podman 4.3.1", base=BASE, images={"ns2": IMAGE})


def with_image(**changes):
    return LOCK.model_copy(update={"images": {"ns2": IMAGE.model_copy(update=changes)}})


def test_equal_locks_do_not_differ_and_survive_their_file(tmp_path):
    assert differences(LOCK, LOCK) == []
    write_lock(tmp_path / "lock.yaml", LOCK)
    assert read_lock(tmp_path / "lock.yaml") == LOCK


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"packages": {"ns2": "2.36"}}, "images.ns2.packages.ns2: locked 2.35, built 2.36"),
        ({"packages": {}}, "images.ns2.packages.ns2: locked 2.35, built nothing"),
        ({"build_packages": {"g++": "13"}}, "images.ns2.build_packages.g++: locked 12, built 13"),
        ({"wheels": {"ns3==3.44": "6"}}, "images.ns2.wheels.ns3==3.44: locked 5, built 6"),
        ({"content_sha256": "7"}, "images.ns2.content_sha256: locked 4, built 7"),
        ({"id": "sha256:8"}, "images.ns2.id: locked sha256:3, built sha256:8"),
    ],
)
def test_a_value_that_differs_is_named(changes, line):
    assert differences(LOCK, with_image(**changes)) == [line]


def test_a_package_of_the_base_that_differs_is_named():
    base = BASE.model_copy(update={"packages": {"libc6": "2.36-10"}})
    lines = differences(LOCK, LOCK.model_copy(update={"base": base}))
    assert lines == ["base.packages.libc6: locked 2.36-9, built 2.36-10"]


def test_a_new_image_is_named():
    lines = differences(LOCK, LOCK.model_copy(update={"images": {"ns2": IMAGE, "ns3": IMAGE}}))
    assert "images.ns3.id: locked nothing, built sha256:3" in lines


def test_an_image_that_was_not_built_is_not_compared():
    two = LOCK.model_copy(update={"images": {"ns2": IMAGE, "ns3": IMAGE}})
    assert differences(two, LOCK) == []


def test_ids_are_compared_between_equal_builders_only():
    other = with_image(id="sha256:8").model_copy(update={"builder": "docker 20.10"})
    assert differences(LOCK, other) == []
    other = with_image(content_sha256="9").model_copy(update={"builder": "docker 20.10"})
    assert len(differences(LOCK, other)) == 1


def test_a_lock_with_a_wrong_field_is_an_input_error(tmp_path):
    (tmp_path / "lock.yaml").write_text("builder: podman\nbase: 3\nimages: {}\n")
    with pytest.raises(InputError, match=r"lock\.yaml: base"):
        read_lock(tmp_path / "lock.yaml")


def test_the_repositorys_lock_is_valid_and_holds_no_image_that_is_gone():
    assert set(read_lock(ROOT / "containers" / "lock.yaml").images) <= set(image_names(ROOT, None))


def test_an_unknown_image_or_builder_is_an_input_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="'ns4' is unknown"):
        image_names(ROOT, "ns3,ns4")
    with pytest.raises(InputError, match="cannot build"):
        choose_builder("apptainer")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="neither podman nor docker"):
        choose_builder(None)


def test_an_image_is_looked_at_once_and_another_for_itself(tmp_path, monkeypatch):
    asked = []

    def inspect(tool, image):
        asked.append(image)
        return content.Content(f"hash of {image}", {"libc6": "2.36-9"}, {"g++": "12"})

    monkeypatch.setattr(content, "inspect", inspect)
    found = [content.content_of(tmp_path, "podman", image) for image in ("one", "one", "two")]
    assert [each.sha256 for each in found] == ["hash of one", "hash of one", "hash of two"]
    assert found[0] == found[1] and found[0].packages == {"libc6": "2.36-9"}
    assert asked == ["one", "two"]
