"""Bad input and what Linux lacks: exit code 2, one line that names it, nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from engine_scenarios import Json, cbr, listed, red, single_link
from linux_scenarios import linux_red, linux_tcp
from test_ns3_input import CHANGES, refused

Invoke = Callable[..., CompletedProcess[str]]
#: Listed losses are refused as such before anything in them is looked at.
SHARED = [c for c in CHANGES if not (isinstance(c[1], dict) and c[1].get("kind") == "listed")]


def good() -> Json:
    """Return a scenario that runs."""
    return single_link([linux_tcp("t"), cbr("c", 1e5)], duration_s=1)


def changed(place: list[str | int], value: Any) -> str:
    """Return the good scenario's text with one value changed."""
    scenario = good()
    target: Any = scenario
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return json.dumps(scenario)


def test_the_good_scenario_runs(invoke_linux: Invoke, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(good()))
    done = invoke_linux("--scenario", tmp_path / "scenario.json", "--output", tmp_path / "a" / "b")
    assert done.returncode == 0, done.stderr
    names = sorted(entry.name for entry in (tmp_path / "a" / "b").iterdir())
    assert names == ["flows.csv", "run.json", "series.csv"]


@pytest.mark.parametrize(
    ("place", "value", "word"), SHARED, ids=[f"{n}-{c[2]}" for n, c in enumerate(SHARED)]
)
def test_a_bad_value_is_refused(
    invoke_linux: Invoke, tmp_path: Path, place: list[str | int], value: Any, word: str
) -> None:
    refused(invoke_linux, tmp_path, changed(place, value), word)


@pytest.mark.parametrize("key", ["duration_s", "nodes", "links", "flows", "seed"])
def test_a_missing_key_is_refused(invoke_linux: Invoke, tmp_path: Path, key: str) -> None:
    scenario = good()
    del scenario[key]
    refused(invoke_linux, tmp_path, json.dumps(scenario), key, "missing")


def test_an_unreachable_destination_is_refused(invoke_linux: Invoke, tmp_path: Path) -> None:
    scenario = good()
    scenario["nodes"].append("island")
    scenario["flows"][0]["destination"] = "island"
    refused(invoke_linux, tmp_path, json.dumps(scenario), "flow t", "island")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"congestion_control": "tahoe"}, ["'tahoe'", "linux"]),
        ({"congestion_control": "reno"}, ["'reno'", "linuxreno"]),
        ({"congestion_control": "newreno"}, ["'newreno'", "linuxreno"]),
        ({"congestion_control": "westwood"}, ["'westwood'", "westwood_plus"]),
        ({"congestion_control": "dctcp"}, ["'dctcp'", "ECN"]),
        ({"congestion_control": "ledbat"}, ["'ledbat'"]),
        ({"congestion_control": "quic"}, ["'quic'", "cubic"]),
        ({"congestion_control": "cubic\nqueue 0 0"}, ["queue 0 0", "cubic"]),
        ({"congestion_control": "lp"}, ["timestamps", "lp"]),
        ({"recovery": "classic"}, ["recovery", "prr"]),
        ({"limited_transmit": False}, ["limited_transmit"]),
        ({"delayed_ack_segments": 3}, ["delayed_ack_segments", "3"]),
        ({"delayed_ack_segments": 2}, ["delayed_ack_timeout_s", "0.04"]),
        ({"initial_rto_s": 3}, ["initial_rto_s", "use 1"]),
        ({"clock_granularity_s": 0.001}, ["clock_granularity_s", "0.004"]),
        ({"minimum_rto_s": 0.201}, ["minimum_rto_s", "0.004"]),
        ({"maximum_window_bytes": 1999}, ["maximum_window_bytes", "two segments"]),
        ({"initial_ssthresh_bytes": 12000}, ["initial_ssthresh_bytes", "null"]),
        ({"segment_bytes": 80}, ["segment_bytes", "88"]),
        ({"segment_bytes": 40000}, ["segment_bytes", "32755"]),
    ],
)
def test_what_the_kernel_lacks_is_refused_by_name(
    invoke_linux: Invoke, tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    scenario = good()
    scenario["flows"][0] |= changes
    refused(invoke_linux, tmp_path, json.dumps(scenario), "flows[0]", *words)


def test_flows_that_want_different_kernels_are_refused(
    invoke_linux: Invoke, tmp_path: Path
) -> None:
    scenario = good()
    scenario["flows"] = [
        linux_tcp("a", "vegas"),
        linux_tcp("b", "vegas", vegas_alpha_packets=1),
    ]
    refused(invoke_linux, tmp_path, json.dumps(scenario), "flows[1]", "alpha", "one")


@pytest.mark.parametrize(
    ("queue", "word"),
    [
        (red(5, 15), "gentle"),
        (linux_red(5, 15) | {"byte_mode": True}, "byte_mode"),
        (linux_red(5, 15) | {"wait": True}, "wait"),
        (linux_red(5, 15) | {"queue_weight": 0.002}, "0.001953125"),
        (
            {"kind": "codel", "limit_packets": 5, "target_s": 0.0050001, "interval_s": 0.1},
            "target_s",
        ),
    ],
)
def test_a_queue_that_linux_lacks_is_refused_by_name(
    invoke_linux: Invoke, tmp_path: Path, queue: Json, word: str
) -> None:
    place: list[str | int] = ["links", 0, "queue_ab"]
    refused(invoke_linux, tmp_path, changed(place, queue), "links[0].queue_ab", word)


def test_listed_losses_are_refused_by_name(invoke_linux: Invoke, tmp_path: Path) -> None:
    place: list[str | int] = ["links", 0, "loss_ab"]
    refused(invoke_linux, tmp_path, changed(place, listed(3)), "links[0].loss_ab", "'listed'")


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
        '{"seed": 1e999}',
        '{"\\n": 1}',
        "[" * 100_000,
        '"' + "a" * 1000,
    ],
    ids=lambda text: repr(text[:16]),
)
def test_a_broken_document_is_refused(invoke_linux: Invoke, tmp_path: Path, text: str) -> None:
    refused(invoke_linux, tmp_path, text)


def test_a_missing_file_is_refused(invoke_linux: Invoke, tmp_path: Path) -> None:
    done = invoke_linux("--scenario", tmp_path / "none.json", "--output", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "none.json" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_file_is_refused(invoke_linux: Invoke, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    done = invoke_linux("--scenario", tmp_path / "s.json", "--output", tmp_path / "s.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("words", [[], ["--scenario"], ["--what", "x"], ["--scenario", "x"]])
def test_bad_usage_is_refused(invoke_linux: Invoke, words: list[str]) -> None:
    done = invoke_linux(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_failed_run_leaves_earlier_results_alone(invoke_linux: Invoke, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good()))
    invoke_linux("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    assert before
    (tmp_path / "s.json").write_text(json.dumps(good() | {"seed": -1}))
    done = invoke_linux("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    assert done.returncode == 2
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
