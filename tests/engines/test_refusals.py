"""What each engine lacks is refused by name: exit code 2, one line, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_bench import Bench
from engine_refusals import changed, refused
from engine_scenarios import Json, codel, listed, pfifo, pie, red, single_link
from linux_scenarios import linux_red
from replication.engines.catalogue import ENGINES
from replication.study.scenario import Scenario

FLOWS: dict[str, list[tuple[Json, list[str]]]] = {
    "ns3": [
        ({"congestion_control": "westwood"}, ["'westwood'", "westwood_plus"]),
        ({"congestion_control": "dctcp"}, ["'dctcp'", "ECN"]),
        ({"congestion_control": "quic"}, ["'quic'", "newreno"]),
        ({"congestion_control": "tahoe", "sack": True}, ["sack", "tahoe"]),
        ({"congestion_control": "reno", "recovery": "prr"}, ["recovery", "reno"]),
        ({"congestion_control": "ledbat"}, ["timestamps", "ledbat"]),
        ({"congestion_control": "bbr"}, ["sack", "bbr"]),
    ],
    "ns2": [
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
    "linux": [
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
}
QUEUES: dict[str, list[tuple[Json, str]]] = {
    "ns2": [
        (codel(), "codel"),
        (codel(kind="fq_codel"), "fq_codel"),
        (pie(), "pie"),
        (red(5, 15) | {"device_queue_packets": 2}, "device_queue_packets"),
        (red(0, 15), "minimum_threshold_packets"),
        (pfifo(5) | {"surprise": 1}, "surprise"),
    ],
    "linux": [
        (red(5, 15), "gentle"),
        (linux_red(5, 15) | {"byte_mode": True}, "byte_mode"),
        (linux_red(5, 15) | {"wait": True}, "wait"),
        (linux_red(5, 15) | {"queue_weight": 0.002}, "0.001953125"),
        # 5000 packets of 1000 bytes with a weight of 2^-9 are more than 31 bits hold.
        (linux_red(5, 5000), "maximum_threshold_packets"),
        (
            {"kind": "codel", "limit_packets": 5, "target_s": 0.0050001, "interval_s": 0.1},
            "target_s",
        ),
    ],
}


def flat(table: dict[str, list[tuple[Any, Any]]]) -> list[tuple[str, Any, Any]]:
    """Return the rows of a table, each with its engine."""
    return [(engine, *row) for engine, rows in table.items() for row in rows]


@pytest.mark.parametrize(("bench", "changes", "words"), flat(FLOWS), indirect=["bench"])
def test_a_flow_that_an_engine_lacks_is_refused_by_name(
    bench: Bench, tmp_path: Path, changes: Json, words: list[str]
) -> None:
    scenario = single_link([bench.tcp("t") | changes], duration_s=1)
    refused(bench.invoke, tmp_path, json.dumps(scenario), "flows[0]", *words)


@pytest.mark.parametrize(("bench", "queue", "word"), flat(QUEUES), indirect=["bench"])
def test_a_queue_that_an_engine_lacks_is_refused_by_name(
    bench: Bench, tmp_path: Path, queue: Json, word: str
) -> None:
    text = changed(single_link([bench.tcp("t")], duration_s=1), ["links", 0, "queue_ab"], queue)
    refused(bench.invoke, tmp_path, text, "links[0].queue_ab", word)


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
def test_a_loss_that_an_engine_lacks_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    text = changed(single_link([bench.tcp("t")], duration_s=1), ["links", 0, "loss_ab"], listed(3))
    refused(bench.invoke, tmp_path, text, "links[0].loss_ab", "'listed'")


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
def test_flows_that_want_different_kernels_are_refused(bench: Bench, tmp_path: Path) -> None:
    flows = [bench.tcp("a", "vegas"), bench.tcp("b", "vegas", vegas_alpha_packets=1)]
    text = json.dumps(single_link(flows, duration_s=1))
    refused(bench.invoke, tmp_path, text, "flows[1]", "alpha", "one")


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
@pytest.mark.parametrize("window", [None, 4_000_000])
def test_windows_that_the_kernel_tunes_alike_must_not_differ(
    bench: Bench, tmp_path: Path, window: int | None
) -> None:
    flows = [
        bench.tcp("a", maximum_window_bytes=3 << 20),
        bench.tcp("c", maximum_window_bytes=9999),
    ]
    flows.append(bench.tcp("b", maximum_window_bytes=window))
    scenario = single_link(flows, duration_s=1)
    words = ["flows[2].maximum_window_bytes", str(window or "null"), "same"]
    refused(bench.invoke, tmp_path, json.dumps(scenario), *words)
    assert "3145728" in ENGINES["linux"].refusal(Scenario.model_validate(scenario))


@pytest.mark.parametrize("bench", ["ns2", "ns3"], indirect=True)
def test_a_host_that_an_engine_lacks_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    scenario = single_link([bench.tcp("t")], duration_s=1) | {"host": {"timer_hz": 1000}}
    refused(bench.invoke, tmp_path, json.dumps(scenario), "host")
