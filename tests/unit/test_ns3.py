"""Engines: the version of ns-3, installed and locked packages, and messages for missing ones."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
from replication.base.errors import InputError
from replication.base.files import file_sha256, read_yaml
from replication.design.config import Config, chosen_engines, load_config
from replication.design.pipeline import Pipeline
from replication.engines import catalogue, ns3
from replication.engines.catalogue import (
    ENGINES,
    LOCK,
    NS2,
    chosen_engine,
    find_package,
    package_warning,
)
from replication.engines.generation import load_generation
from replication.engines.ns3 import LINKED, NS3_VERSION, PREFIX, WHEEL_VERSIONS, Prefix

from tests.unit.conftest import ROOT, missing_from

CONFIG = ROOT / "configs" / "config.yaml"
LOCKS = ROOT / "workflow" / "engines" / "ns3" / "wheels"


@pytest.fixture(autouse=True)
def forget():
    """Clear the cache of compiled programs."""
    ns3._compiled.cache_clear()
    yield
    ns3._compiled.cache_clear()


def install(folder, release="3.44", stem="libns3.44", suffix="-optimized", below="lib"):
    """Lay out the files of ns-3's `./ns3 install` that are read."""
    libraries = folder / below
    for made in (folder / "include/ns3", libraries / "pkgconfig"):
        made.mkdir(parents=True, exist_ok=True)
    (folder / "include/ns3/core-module.h").touch()
    core = libraries / f"pkgconfig/ns3-core{suffix}.pc"
    core.write_text(f"Name: ns3-core\nVersion: {release}\n")
    for module in LINKED:
        (libraries / f"{stem}-{module}{suffix}.so").write_text(module)
    return folder


def test_every_wheel_is_pinned_by_one_hash_and_nothing_else():
    assert sorted(p.name for p in LOCKS.iterdir()) == sorted(f"{v}.lock" for v in WHEEL_VERSIONS)
    for version in WHEEL_VERSIONS:
        lines = (LOCKS / f"{version}.lock").read_text().splitlines()
        (pin,) = [line for line in lines if not line.startswith("#")]
        assert re.fullmatch(rf"ns3=={re.escape(version)} --hash=sha256:[0-9a-f]{{64}}", pin)
    assert load_config(CONFIG).ns3_version == NS3_VERSION == WHEEL_VERSIONS[-1]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_sources_of_an_engine_belong_to_its_recorded_generation(engine):
    """Otherwise run `replicate engines --same`, or `--new` if results have changed."""
    generation = load_generation(ROOT, engine.name)
    # The kernel's key needs Debian's packages, so its sources are compared without it.
    digests = {version.digest for version in generation.sources}
    assert engine.missing(ROOT) or engine.build_key(ROOT).partition("-")[0] in digests


@pytest.mark.parametrize(
    "layout",
    [
        {"suffix": "-default"},
        {"suffix": "", "stem": "libns3", "below": "lib/x86_64-linux-gnu"},
        {"suffix": "", "below": "lib64"},
    ],
    ids=["default", "debian", "wheel"],
)
def test_an_installed_ns3_is_found_in_every_layout_of_its_libraries(tmp_path, layout):
    prefix = Prefix.find(install(tmp_path, **layout))
    assert prefix.release == "3.44"
    assert all(path.is_file() for path in prefix.libraries)


@pytest.mark.parametrize("same", [True, False])
def test_a_built_ns3_has_a_fingerprint_of_its_own_unless_its_results_equal_the_wheels(
    tmp_path, monkeypatch, same
):
    root = tmp_path / "project"
    for name in ("configs", "workflow/engines", "data/published"):
        shutil.copytree(ROOT / name, root / name)
    wheel = chosen_engine("ns3").fingerprint(root)
    pinned = load_generation(root, "ns3").canonical
    monkeypatch.setattr(ns3, "compile_program", lambda root, prefix, build: build.mkdir())
    digests = pinned if same else pinned | {next(iter(pinned)): "0" * 16}
    monkeypatch.setattr(ns3, "digests_of_runs", lambda engine, program, scenarios: digests)
    prefix = install(tmp_path / "prefix")
    monkeypatch.setenv(PREFIX, str(prefix))
    start = Pipeline.load(root, {"tier": "quick", "engines": "ns3", "studies": "nishitha"}).start
    assert (start.fingerprint("ns3") == wheel) == same
    assert start.fingerprint("ns3").endswith(NS3_VERSION)
    assert start.program("ns3").parts[:2] == (".cache", "ns3")


# -- what is installed ----------------------------------------------------------------------------

LOCKED = read_yaml(ROOT / LOCK)


def test_an_engine_that_lacks_a_package_is_refused_if_chosen(monkeypatch):
    lacking = dataclasses.replace(NS2, missing=lambda root: ["ns2"])
    monkeypatch.setitem(catalogue.ENGINES, "ns2", lacking)
    assert "ns2" not in chosen_engines(ROOT, Config())
    with pytest.raises(InputError, match="ns2 lacks ns2"):
        chosen_engines(ROOT, Config(engines=["ns3", "ns2"]))


@pytest.fixture
def root(tmp_path):
    """Return a project whose lock names a different ns-2."""
    simulator = tmp_path / "ns"
    simulator.write_text("another simulator")
    source = tmp_path / "workflow/engines/ns2/driver.tcl"
    source.parent.mkdir(parents=True)
    source.touch()
    entry = LOCKED["ns2"] | {"file": str(simulator)}
    (tmp_path / LOCK).write_text(json.dumps({"ns2": entry}))
    return tmp_path


def test_images_install_the_locked_packages():
    for engine, entry in LOCKED.items():
        recipe = (ROOT / "containers" / engine / "Dockerfile").read_text(encoding="utf-8")
        assert f"{entry['package']}={entry['version']}" in recipe


def test_another_simulator_than_the_locked_one_changes_the_fingerprint_and_warns(root, monkeypatch):
    plain = dataclasses.replace(NS2, machine=lambda root: "")
    assert NS2.fingerprint(root) != plain.fingerprint(root)
    monkeypatch.setattr(catalogue, "_installed_version", lambda package: "2.36-1")
    warning = package_warning(find_package(root, "ns2"))
    assert not missing_from(warning, "ns2", "2.36-1", LOCKED["ns2"]["version"])
    assert find_package(root, "ns3") is None
    # The locked simulator leaves the fingerprint as it is.
    lock = read_yaml(root / LOCK)
    lock["ns2"]["sha256"] = find_package(root, "ns2")["sha256"]
    (root / LOCK).write_text(json.dumps(lock))
    assert NS2.fingerprint(root) == plain.fingerprint(root)
    assert package_warning(find_package(root, "ns2")) == ""


def test_a_noted_hash_is_used_only_for_a_file_of_the_same_size_and_time(root):
    file = Path(read_yaml(root / LOCK)["ns2"]["file"])
    noted, status = root / ".cache/linux/source.sha256", file.stat()
    noted.parent.mkdir(parents=True)
    for more_bytes, sha256 in ((0, "noted"), (1, file_sha256(file))):
        stamp = f"{file} {status.st_size + more_bytes} {int(status.st_mtime)}"
        noted.write_text(f"{stamp}\nnoted  -\n")
        catalogue._sha256.cache_clear()
        assert find_package(root, "ns2")["sha256"] == sha256
