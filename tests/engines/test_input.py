"""Bad input, the same for every engine: exit code 2, one line that names it, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_bench import Bench
from engine_refusals import changed, refused
from engine_scenarios import Json, cbr, droptail, red, single_link

CHANGES: list[tuple[list[str | int], Any, str]] = [
    (["surprise"], 1, "surprise"),
    (["flows", 0, "surprise"], 1, "flows[0].surprise"),
    (["links", 0, "queue_ab", "surprise"], 1, "links[0].queue_ab.surprise"),
    (["links", 0, "rate_bps"], -1, "links[0].rate_bps"),
    (["links", 0, "rate_bps"], 0, "links[0].rate_bps"),
    (["links", 0, "rate_bps"], 0.25, "links[0].rate_bps"),
    (["links", 0, "rate_bps"], "fast", "links[0].rate_bps"),
    (["links", 0, "rate_bps"], None, "links[0].rate_bps"),
    (["links", 0, "rate_bps"], float("nan"), "NaN"),
    (["links", 0, "rate_bps"], float("inf"), "Infinity"),
    (["links", 0, "delay_s"], -0.1, "links[0].delay_s"),
    (["links", 0, "delay_s"], 1e300, "links[0].delay_s"),
    (["links", 0, "b"], "s0", "links[0].b"),
    (["links", 0, "b"], "nowhere", "nowhere"),
    (["links", 0, "queue_ab"], None, "links[0].queue_ab"),
    (["links", 0, "queue_ab"], droptail(0), "links[0].queue_ab.limit_packets"),
    (["links", 0, "queue_ab"], {"kind": "droptail"}, "limit_packets"),
    (["links", 0, "queue_ab"], droptail() | {"limit_bytes": 1}, "limit_bytes"),
    (["links", 0, "queue_ab"], {"kind": "sfq", "limit_packets": 5}, "sfq"),
    (["links", 0, "queue_ab"], red(20, 10), "minimum_threshold_packets"),
    (["links", 0, "loss_ab"], {"kind": "random", "probability": 1.5}, "probability"),
    (["links", 0, "loss_ab"], {"kind": "listed", "flow": "t", "data_packets": []}, "data_packets"),
    (["links", 0, "loss_ab"], {"kind": "listed", "flow": "x", "data_packets": [1]}, "'x'"),
    (["links", 0, "loss_ab"], {"kind": "listed", "flow": "t", "data_packets": [0]}, "data_packets"),
    (["nodes"], ["s0"], "nodes"),
    (["nodes"], ["s0", "d0", "s0"], "nodes[2]"),
    (["nodes"], ["s0", "D0"], "nodes[1]"),
    (["nodes"], ["s0", 7], "nodes[1]"),
    (["links"], [], "links"),
    (["flows"], [], "flows"),
    (["flows"], {}, "flows"),
    (["flows", 1, "id"], "t", "flows[1].id"),
    (["flows", 0, "source"], "d0", "flows[0].destination"),
    (["flows", 0, "stop_s"], 0, "flows[0].stop_s"),
    (["flows", 0, "start_s"], 1, "flows[0].start_s"),
    (["flows", 0, "segment_bytes"], 63, "flows[0].segment_bytes"),
    (["flows", 0, "segment_bytes"], 1000.5, "flows[0].segment_bytes"),
    (["flows", 0, "segment_bytes"], True, "flows[0].segment_bytes"),
    (["flows", 0, "sack"], 1, "flows[0].sack"),
    (["flows", 0, "minimum_rto_s"], 1e-12, "flows[0].minimum_rto_s"),
    (["flows", 0, "maximum_window_bytes"], 999, "flows[0].maximum_window_bytes"),
    (["flows", 0, "recovery"], "rack", "flows[0].recovery"),
    (["flows", 0, "kind"], "quic", "quic"),
    (["flows", 1, "packet_bytes"], 65001, "flows[1].packet_bytes"),
    (["monitors", 0, "link"], "nolink", "nolink"),
    (["monitors"], [{"link": "wire"}, {"link": "wire", "direction": "ab"}], "monitors[1]"),
    (["schema_version"], 2, "schema_version"),
    (["seed"], 0, "seed"),
    (["seed"], 2**31, "seed"),
    (["duration_s"], 0, "duration_s"),
    (["sampling_interval_s"], 2, "sampling_interval_s"),
    (["sampling_interval_s"], 1e-10, "sampling_interval_s"),
]


@pytest.fixture
def good(bench: Bench) -> Json:
    """Return a scenario that runs."""
    return single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)


def test_the_good_scenario_runs(bench: Bench, good: Json, tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text(json.dumps(good))
    output = tmp_path / "a" / "b"
    done = bench.invoke("--scenario", tmp_path / "scenario.json", "--output", output)
    assert done.returncode == 0, done.stderr
    assert sorted(e.name for e in output.iterdir()) == ["flows.csv", "run.json", "series.csv"]


@pytest.mark.parametrize(
    ("place", "value", "word"), CHANGES, ids=[f"{n}-{c[2]}" for n, c in enumerate(CHANGES)]
)
def test_a_bad_value_is_refused(
    bench: Bench, good: Json, tmp_path: Path, place: list[str | int], value: Any, word: str
) -> None:
    if isinstance(value, dict) and value.get("kind") == "listed" and not bench.traits.traced:
        word = "'listed'"  # refused as such before anything in it is looked at
    refused(bench.invoke, tmp_path, changed(good, place, value), word)


@pytest.mark.parametrize("key", ["duration_s", "nodes", "links", "flows", "seed"])
def test_a_missing_key_is_refused(bench: Bench, good: Json, tmp_path: Path, key: str) -> None:
    del good[key]
    refused(bench.invoke, tmp_path, json.dumps(good), key, "missing")


def test_an_unreachable_destination_is_refused(bench: Bench, good: Json, tmp_path: Path) -> None:
    good["nodes"].append("island")
    good["flows"][0]["destination"] = "island"
    refused(bench.invoke, tmp_path, json.dumps(good), "flow t", "island")


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
        '{"seed": 0x10}',
        '{"seed": 1e999}',
        '{"\\n": 1}',
        "[" * 100_000,
        '"' + "a" * 1000,
    ],
    ids=lambda text: repr(text[:16]),
)
def test_a_broken_document_is_refused(bench: Bench, tmp_path: Path, text: str) -> None:
    refused(bench.invoke, tmp_path, text)


def test_a_missing_file_is_refused(bench: Bench, tmp_path: Path) -> None:
    done = bench.invoke("--scenario", tmp_path / "none.json", "--output", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "none.json" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_file_is_refused(bench: Bench, good: Json, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(good))
    done = bench.invoke("--scenario", tmp_path / "s.json", "--output", tmp_path / "s.json")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("words", [[], ["--scenario"], ["--what", "x"], ["--scenario", "x"]])
def test_bad_usage_is_refused(bench: Bench, words: list[str]) -> None:
    done = bench.invoke(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_failed_run_leaves_earlier_results_alone(
    bench: Bench, good: Json, tmp_path: Path
) -> None:
    words = ("--scenario", tmp_path / "s.json", "--output", tmp_path / "out")
    (tmp_path / "s.json").write_text(json.dumps(good))
    bench.invoke(*words)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    assert before
    (tmp_path / "s.json").write_text(json.dumps(good | {"seed": -1}))
    assert bench.invoke(*words).returncode == 2
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
