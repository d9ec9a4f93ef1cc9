"""What is installed: engines, what the others lack, and the locked Python packages."""

import dataclasses
from importlib import metadata

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from replication.design.config import Config, chosen_engines
from replication.engines import catalogue
from replication.engines.catalogue import LOCK, NS2, find_package, package_warning
from replication.study.errors import InputError

from tests.unit.conftest import ROOT

LOCKED = yaml.safe_load((ROOT / LOCK).read_text(encoding="utf-8"))


def test_an_engine_that_lacks_a_package_is_refused_if_it_is_asked_for(monkeypatch):
    lacking = dataclasses.replace(NS2, missing=lambda root: ["ns2"])
    monkeypatch.setitem(catalogue.ENGINES, "ns2", lacking)
    assert "ns2" not in chosen_engines(ROOT, Config())
    with pytest.raises(InputError, match="engines: ns2 lacks ns2"):
        chosen_engines(ROOT, Config(engines=["ns3", "ns2"]))


@pytest.fixture
def root(tmp_path):
    """Return a project whose lock names another ns-2 than this file here."""
    simulator = tmp_path / "ns"
    simulator.write_text("another simulator")
    source = tmp_path / "workflow/engines/ns2/driver.tcl"
    source.parent.mkdir(parents=True)
    source.touch()
    entry = LOCKED["ns2"] | {"file": str(simulator)}
    (tmp_path / LOCK).write_text(yaml.safe_dump({"ns2": entry}))
    return tmp_path


def test_the_images_are_built_with_what_the_lock_names():
    for engine, entry in LOCKED.items():
        recipe = (ROOT / "containers" / engine / "Dockerfile").read_text(encoding="utf-8")
        assert f"{entry['package']}={entry['version']}" in recipe


def test_results_of_another_simulator_are_kept_apart_and_warned_of(root, monkeypatch):
    plain = dataclasses.replace(NS2, machine=lambda root: "")
    assert NS2.fingerprint(root) != plain.fingerprint(root)
    monkeypatch.setattr(catalogue, "_installed", lambda package: "2.36-1")
    said = package_warning(find_package(root, "ns2"))
    assert "Debian's ns2 is 2.36-1 here, the lock has 2.35+dfsg-5" in said
    assert find_package(root, "ns3") is None
    # The locked simulator leaves the fingerprint as it is.
    lock = yaml.safe_load((root / LOCK).read_text())
    lock["ns2"]["sha256"] = find_package(root, "ns2")["sha256"]
    catalogue._lock.cache_clear()
    (root / LOCK).write_text(yaml.safe_dump(lock))
    assert NS2.fingerprint(root) == plain.fingerprint(root)
    assert package_warning(find_package(root, "ns2")) == ""


#: Debian 12's, which the README and the images go by, and the newest when the lock was made.
PYTHONS = ("3.11.2", "3.14.0")


def test_every_locked_package_installs_on_debians_python():
    locked = [
        line.split("==")[0]
        for line in (ROOT / "requirements-dev.lock").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    ]
    assert len(locked) > 100
    wants = {name: metadata.metadata(name).get("Requires-Python") or "" for name in locked}
    for python in PYTHONS:
        assert [name for name, want in wants.items() if python not in SpecifierSet(want)] == []
