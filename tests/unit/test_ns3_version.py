"""Versions of ns-3: their locks, their choice, and what each refuses."""

import re
from pathlib import Path

import pytest
from replication.engines.catalogue import available, chosen_engine
from replication.engines.ns3_version import (
    NS3_VERSION,
    SYSTEM_VERSION,
    WHEEL_VERSIONS,
    missing_packages,
    system_libraries,
)
from replication.plan.config import load_config, load_study, load_tier
from replication.plan.design import design_study
from replication.study.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "config.yaml"
LOCKS = ROOT / "workflow" / "engines" / "ns3" / "wheels"


def test_every_wheel_is_pinned_and_nothing_else():
    assert sorted(p.name for p in LOCKS.iterdir()) == sorted(f"{v}.lock" for v in WHEEL_VERSIONS)


@pytest.mark.parametrize("version", WHEEL_VERSIONS)
def test_a_lock_pins_its_version_by_one_hash(version):
    lines = (LOCKS / f"{version}.lock").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) == 1
    assert re.fullmatch(rf"ns3=={re.escape(version)} --hash=sha256:[0-9a-f]{{64}}", pins[0])


def test_no_two_locks_have_the_same_hash():
    hashes = [p.read_text().split("sha256:")[1] for p in LOCKS.iterdir()]
    assert len(set(hashes)) == len(hashes)


def test_the_default_version_is_a_wheel():
    assert load_config(CONFIG).ns3_version == NS3_VERSION
    assert NS3_VERSION in WHEEL_VERSIONS


def test_an_unknown_version_is_refused_by_name():
    with pytest.raises(InputError, match=r"ns3_version.*3\.44\.post0.*3\.40"):
        load_config(CONFIG, {"ns3_version": "3.40"})


def test_a_version_that_yaml_reads_as_a_number_is_meant_as_text():
    assert load_config(CONFIG, {"ns3_version": 3.37}).ns3_version == SYSTEM_VERSION


def test_a_missing_system_package_is_named(tmp_path):
    assert missing_packages(SYSTEM_VERSION, tmp_path) == ["libns3-dev"]
    assert all(missing_packages(version, tmp_path) == [] for version in WHEEL_VERSIONS)


def test_a_version_that_is_not_installed_is_refused_with_its_package(monkeypatch):
    monkeypatch.setattr(
        "replication.engines.catalogue.missing_packages", lambda version: ["libns3-dev"]
    )
    with pytest.raises(InputError, match=r"ns3 lacks libns3-dev.*apt-get install libns3-dev"):
        chosen_engine("ns3", SYSTEM_VERSION).require(ROOT)
    assert "ns3" not in available(ROOT, SYSTEM_VERSION)


def test_the_system_libraries_are_those_of_the_version(tmp_path):
    (tmp_path / "include" / "ns3").mkdir(parents=True)
    (tmp_path / "include" / "ns3" / "core-module.h").touch()
    libraries = tmp_path / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libns3-core.so.41").touch()
    assert missing_packages(SYSTEM_VERSION, tmp_path) == ["libns3-dev"]
    (libraries / "libns3-core.so.37").write_text("one build")
    assert missing_packages(SYSTEM_VERSION, tmp_path) == []
    before = system_libraries(SYSTEM_VERSION, tmp_path)
    (libraries / "libns3-core.so.41").write_text("another release")
    assert system_libraries(SYSTEM_VERSION, tmp_path) == before
    (libraries / "libns3-core.so.37").write_text("another build")
    assert system_libraries(SYSTEM_VERSION, tmp_path) != before
    assert system_libraries(NS3_VERSION, tmp_path) == ""


def test_results_of_two_versions_have_different_homes():
    prints = {v: chosen_engine("ns3", v).fingerprint(ROOT) for v in WHEEL_VERSIONS}
    assert len(set(prints.values())) == len(WHEEL_VERSIONS)
    assert all(prints[version].endswith(version) for version in WHEEL_VERSIONS)


def test_a_version_depends_on_its_own_lock_alone():
    for version in WHEEL_VERSIONS:
        sources = chosen_engine("ns3", version).sources(ROOT)
        assert [p.name for p in sources if p.suffix == ".lock"] == [f"{version}.lock"]


@pytest.mark.parametrize("version", WHEEL_VERSIONS)
def test_cubic_is_refused_by_version_where_it_has_no_friendliness(version):
    tier = load_tier(ROOT, "quick")
    runs = design_study(load_study(ROOT, "dzivhani"), tier, ["ns3"], version)
    refused = {run.levels["variant"]: run.refusal for run in runs}
    assert refused["newreno"] == ""
    expected = f"ns3 has no cubic with TCP friendliness in version {version}"
    assert refused["cubic"] == (expected if version.startswith("3.39") else "")
