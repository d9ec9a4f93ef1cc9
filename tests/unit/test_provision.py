"""Engines: which are there, what the others lack, and what is said about it."""

import dataclasses
from pathlib import Path

import pytest
from replication.cli.main import engines, install_engines
from replication.engines import catalogue as engine
from replication.plan.config import Config, chosen_engines
from replication.run.process import written_version
from replication.study.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def without_ns2(monkeypatch):
    lacking = dataclasses.replace(engine.NS2, missing=lambda root: ["ns2"])
    monkeypatch.setitem(engine.ENGINES, "ns2", lacking)


def test_an_engine_that_lacks_a_package_is_not_used_by_itself(without_ns2):
    assert "ns2" not in chosen_engines(ROOT, Config())
    assert chosen_engines(ROOT, Config())[0] == "ns3"


def test_an_engine_that_is_demanded_must_be_there(without_ns2):
    with pytest.raises(InputError, match="engines: ns2 lacks ns2: run `make engines ENGINES=ns2`"):
        chosen_engines(ROOT, Config(engines=["ns3", "ns2"]))


def test_an_engine_that_is_not_yet_built_is_used_on_demand_only(monkeypatch):
    unbuilt = dataclasses.replace(
        engine.LINUX, missing=lambda root: [], built=lambda root: False, machine=lambda root: "m"
    )
    monkeypatch.setitem(engine.ENGINES, "linux", unbuilt)
    assert "linux" not in chosen_engines(ROOT, Config())
    assert chosen_engines(ROOT, Config(engines=["linux"])) == ["linux"]


def test_packages_are_asked_for_by_name_where_they_cannot_be_installed(without_ns2, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r"run as root: apt-get install .* ns2$"):
        install_engines("ns2")


def test_nothing_is_installed_that_is_there(capsys):
    install_engines("ns3")
    assert capsys.readouterr().out == "ns3: every package is there\n"


def test_an_unknown_engine_is_refused_by_name():
    with pytest.raises(InputError, match="'abacus' is unknown; there are ns3, ns2, linux"):
        install_engines("abacus")


def test_the_state_names_what_is_lacking(without_ns2, capsys):
    engines()
    lines = capsys.readouterr().out.splitlines()
    assert "ns2: not there; lacks ns2: run `make engines`" in lines
    assert len(lines) == len(engine.ENGINES)


def test_what_the_machine_decides_is_in_the_fingerprint(tmp_path):
    source = tmp_path / "workflow" / "engines" / "linux" / "build"
    source.parent.mkdir(parents=True)
    source.write_text("#!/bin/sh\n", encoding="utf-8")
    one, other = (
        dataclasses.replace(engine.LINUX, machine=lambda root, text=text: text)
        for text in ("gcc 12", "gcc 13")
    )
    assert one.fingerprint(tmp_path) != other.fingerprint(tmp_path)


def test_results_carry_the_version_that_the_builder_wrote(tmp_path):
    program = tmp_path / "replicate-linux"
    assert written_version(program) == ""
    assert engine.NS3.exact_version("", "0123abcd-3.44.post0") == "3.44.post0+0123abcd"
    (tmp_path / "version").write_text("6.1.192 kernel-a guest-b\n", encoding="utf-8")
    version = engine.LINUX.exact_version(written_version(program), "any")
    assert version == "6.1.192+kernel-a+guest-b"
