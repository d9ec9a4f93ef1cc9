"""Debian's packages that decide results: what is here beside what the lock names."""

import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from replication.engines import debian
from replication.engines.catalogue import NS2

ROOT = Path(__file__).parents[2]
LOCK = yaml.safe_load((ROOT / debian.LOCK).read_text(encoding="utf-8"))


@pytest.fixture
def root(tmp_path):
    """Return a project whose lock names another ns-2 than this file here."""
    simulator = tmp_path / "ns"
    simulator.write_text("another simulator")
    entry = LOCK["ns2"] | {"file": str(simulator)}
    (tmp_path / debian.LOCK).parent.mkdir(parents=True)
    (tmp_path / debian.LOCK).write_text(yaml.safe_dump({"ns2": entry}))
    source = tmp_path / "workflow/engines/ns2/driver.tcl"
    source.parent.mkdir()
    source.touch()
    return tmp_path


def test_the_images_are_built_with_what_the_lock_names():
    for engine, entry in LOCK.items():
        recipe = (ROOT / "containers" / engine / "Dockerfile").read_text(encoding="utf-8")
        assert f"{entry['package']}={entry['version']}" in recipe


def test_results_of_another_simulator_are_kept_apart(root):
    plain = dataclasses.replace(NS2, machine=lambda root: "")
    assert NS2.fingerprint(root) != plain.fingerprint(root)


def test_the_locked_simulator_leaves_the_fingerprint_as_it_is(root):
    lock = yaml.safe_load((root / debian.LOCK).read_text())
    lock["ns2"]["sha256"] = debian.find_package(root, "ns2").sha256
    debian._lock.cache_clear()
    (root / debian.LOCK).write_text(yaml.safe_dump(lock))
    plain = dataclasses.replace(NS2, machine=lambda root: "")
    assert NS2.fingerprint(root) == plain.fingerprint(root)
    assert debian.find_package(root, "ns2").warning() == ""


def test_another_package_is_said_with_both_versions(root, monkeypatch):
    monkeypatch.setattr(debian, "_installed", lambda package: "2.36-1")
    found = debian.find_package(root, "ns2")
    assert not found.as_locked
    assert "Debian's ns2 is 2.36-1 here, the lock has 2.35+dfsg-5" in found.warning()
    assert debian.package_warning(json.loads(json.dumps(found.as_dict()))) == found.warning()
    assert debian.find_package(root, "ns3") is None
