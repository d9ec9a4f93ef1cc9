"""Bad input and what ns-2 lacks: exit code 2, one line that names it, nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from engine_scenarios import cbr, codel, listed, pfifo, pie, red, single_link, tcp
from test_ns3_input import CHANGES, good, refused

Invoke = Callable[..., CompletedProcess[str]]


def change(place: list[str | int], value: Any) -> str:
    """Return the good scenario's text with one value changed."""
    scenario = good()
    target: Any = scenario
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return json.dumps(scenario)


def test_the_good_scenario_runs(invoke_ns2: Invoke, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(good()))
    done = invoke_ns2("--scenario", tmp_path / "scenario.json", "--output", tmp_path / "a" / "b")
    assert done.returncode == 0, done.stderr
    names = sorted(entry.name for entry in (tmp_path / "a" / "b").iterdir())
    assert names == ["flows.csv", "run.json", "series.csv"]


@pytest.mark.parametrize(
    ("place", "value", "word"), CHANGES, ids=[f"{n}-{c[2]}" for n, c in enumerate(CHANGES)]
)
def test_a_bad_value_is_refused(
    invoke_ns2: Invoke, tmp_path: Path, place: list[str | int], value: Any, word: str
) -> None:
    refused(invoke_ns2, tmp_path, change(place, value), word)


@pytest.mark.parametrize("key", ["duration_s", "nodes", "links", "flows", "seed"])
def test_a_missing_key_is_refused(invoke_ns2: Invoke, tmp_path: Path, key: str) -> None:
    scenario = good()
    del scenario[key]
    refused(invoke_ns2, tmp_path, json.dumps(scenario), key, "missing")


def test_an_unreachable_destination_is_refused(invoke_ns2: Invoke, tmp_path: Path) -> None:
    scenario = good()
    scenario["nodes"].append("island")
    scenario["flows"][0]["destination"] = "island"
    refused(invoke_ns2, tmp_path, json.dumps(scenario), "flow t", "island")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"congestion_control": "bbr"}, ["'bbr'", "older"]),
        ({"congestion_control": "westwood"}, ["'westwood'", "westwood_plus"]),
        ({"congestion_control": "dctcp"}, ["'dctcp'", "ECN"]),
        ({"congestion_control": "ledbat"}, ["'ledbat'"]),
        ({"congestion_control": "quic"}, ["'quic'", "newreno"]),
        ({"congestion_control": "[exit]"}, ["'[exit]'", "newreno"]),
        ({"congestion_control": "tahoe", "sack": True}, ["sack", "tahoe"]),
        ({"congestion_control": "vegas", "sack": True}, ["sack", "vegas"]),
        ({"recovery": "prr"}, ["recovery", "prr"]),
        ({"congestion_control": "cubic"}, ["sack", "cubic"]),
        ({"congestion_control": "cubic", "sack": True}, ["limited_transmit", "cubic"]),
        ({"congestion_control": "lp"}, ["'lp'", "clock"]),
        ({"delayed_ack_segments": 3}, ["delayed_ack_segments", "3"]),
    ],
)
def test_what_an_agent_lacks_is_refused_by_name(
    invoke_ns2: Invoke, tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    scenario = good()
    scenario["flows"][0] |= changes
    refused(invoke_ns2, tmp_path, json.dumps(scenario), "flows[0]", *words)


@pytest.mark.parametrize(
    ("queue", "word"),
    [
        (codel(), "codel"),
        (codel(kind="fq_codel"), "fq_codel"),
        (pie(), "pie"),
        (red(5, 15) | {"device_queue_packets": 2}, "device_queue_packets"),
        (red(0, 15), "minimum_threshold_packets"),
        (pfifo(5) | {"surprise": 1}, "surprise"),
    ],
)
def test_a_queue_that_ns2_lacks_is_refused_by_name(
    invoke_ns2: Invoke, tmp_path: Path, queue: dict[str, Any], word: str
) -> None:
    place: list[str | int] = ["links", 0, "queue_ab"]
    refused(invoke_ns2, tmp_path, change(place, queue), "links[0].queue_ab", word)


def test_listed_losses_need_the_syn_to_pass(invoke_ns2: Invoke, tmp_path: Path) -> None:
    # The SYN is dropped by a queue of one packet that a CBR flow keeps full for a while.
    flows = [cbr("c", 4e6, stop_s=0.5), tcp("t", "reno", start_s=0.1)]
    queue = {"kind": "droptail", "limit_packets": 1}
    scenario = single_link(flows, rate_bps=1e6, duration_s=20, queue=queue, loss=listed(1))
    path = tmp_path / "s.json"
    path.write_text(json.dumps(scenario))
    done = invoke_ns2("--scenario", path, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert "links[0].loss_ab" in done.stderr and "SYN" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "nul",
        "\x00",
        '{"a": 1} x',
        '{"seed": 1, "seed": 2}',
        '{"seed": 01}',
        '{"\\n": 1}',
        "[" * 100_000,
        '"' + "a" * 1000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_broken_document_is_refused(invoke_ns2: Invoke, tmp_path: Path, text: str) -> None:
    refused(invoke_ns2, tmp_path, text)


def test_a_missing_file_is_refused(invoke_ns2: Invoke, tmp_path: Path) -> None:
    done = invoke_ns2("--scenario", tmp_path / "none.json", "--output", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "none.json" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_file_is_refused(invoke_ns2: Invoke, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    done = invoke_ns2("--scenario", tmp_path / "s.json", "--output", tmp_path / "s.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("words", [[], ["--scenario"], ["--what", "x"], ["--scenario", "x"]])
def test_bad_usage_is_refused(invoke_ns2: Invoke, words: list[str]) -> None:
    done = invoke_ns2(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_missing_simulator_is_named(invoke_ns2: Invoke, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    words = ("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    # A folder with what the launcher needs, but no ns.
    done = invoke_ns2(*words, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "package ns2" in done.stderr


@pytest.mark.parametrize(
    ("script", "word"), [("exit 7", "7"), ("exit 0", "before the end"), ("echo no >&2", "no")]
)
def test_a_broken_simulator_is_a_defect(
    invoke_ns2: Invoke, tmp_path: Path, script: str, word: str
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    (tmp_path / "ns").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ns").chmod(0o755)
    words = ("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    done = invoke_ns2(*words, env={"PATH": f"{tmp_path}:{os.defpath}"})
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert word in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_killed_program_takes_the_simulator_along(ns2_program: Path, tmp_path: Path) -> None:
    scenario = single_link([cbr("c", 1e7)], rate_bps=1e7, duration_s=2000)
    (tmp_path / "s.json").write_text(json.dumps(scenario))
    command = [ns2_program, "--scenario", tmp_path / "s.json", "--output", tmp_path / "out"]
    process = subprocess.Popen(command)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    simulator = wait_for(lambda: children.read_text().split())[0]
    wait_for(lambda: "ns" in Path(f"/proc/{simulator}/comm").read_text())
    process.kill()
    process.wait()
    wait_for(lambda: not Path(f"/proc/{simulator}").exists() or zombie(simulator))


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return what `condition` gives once it gives something."""
    deadline = time.monotonic() + 10
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def zombie(pid: str) -> bool:
    """Return whether a process has ended, though nobody has asked for its status."""
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_a_failed_run_leaves_earlier_results_alone(invoke_ns2: Invoke, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    invoke_ns2("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    (tmp_path / "s.json").write_text(json.dumps(good() | {"seed": -1}))
    assert invoke_ns2("--scenario", tmp_path / "s.json", "--output", tmp_path / "out").returncode
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
