"""A limit of N packets: N wait besides the one in transmission, in every kind of queue."""

from __future__ import annotations

import pytest
from engine_bench import Bench
from engine_scenarios import Json, cbr, droptail, single_link

#: Between queue and transmitter, where there is such a thing; it holds packets beside the limit.
DEVICE_PACKETS = 3
#: No queue management acts within a burst: what is dropped finds no room.
NEVER_S = 100.0
DISTANT = {
    "pfifo": {},
    "red": {
        "minimum_threshold_packets": 1000,
        "maximum_threshold_packets": 1500,
        "queue_weight": 2**-9,
        "maximum_probability": 0.1,
        "mean_packet_bytes": 1000,
        "gentle": False,
        "wait": False,
    },
    "codel": {"target_s": NEVER_S, "interval_s": NEVER_S},
    "fq_codel": {"target_s": NEVER_S, "interval_s": NEVER_S},
    "pie": {"target_s": NEVER_S, "update_interval_s": NEVER_S},
    "fq_pie": {"target_s": NEVER_S, "update_interval_s": NEVER_S},
}
#: Every kind with a limit in packets, on each engine that has it.
KINDS = [(engine, kind) for engine in ("ns3", "linux") for kind in ("droptail", *DISTANT)]
KINDS.remove(("ns3", "fq_pie"))


def queue(kind: str, limit: int) -> tuple[Json, int]:
    """Return a queue with this limit, and how many packets wait in it and its device when full."""
    if kind == "droptail":
        return droptail(limit), limit
    common = {"kind": kind, "limit_packets": limit, "device_queue_packets": DEVICE_PACKETS}
    return common | DISTANT[kind], limit + DEVICE_PACKETS


def burst(bench: Bench, packets: int, through: Json, packet_bytes: int = 1000) -> tuple[int, int]:
    """Return how many packets of a burst wait after it, and how many were dropped."""
    # At 1 Gbit/s; the link is 10,000 times slower, so only the first has begun to leave.
    spacing_s = 8 * packet_bytes / 1e9
    flow = cbr("c", 1e9, packet_bytes=packet_bytes, stop_s=(packets - 0.5) * spacing_s)
    after_s = 2 * packets * spacing_s
    scenario = single_link([flow], rate_bps=1e5, duration_s=after_s, queue=through)
    scenario["sampling_interval_s"] = after_s
    result = bench.run(scenario)
    assert result.number("c", "packets_sent") == packets
    (waiting,) = result.samples("queue_packets", link="wire:ab")
    return round(waiting), round(result.number("c", "packets_dropped"))


def full(bench: Bench, through: Json, held: int, packet_bytes: int = 1000) -> None:
    """Require that a burst just fits, and that one packet more does not."""
    assert burst(bench, 1 + held, through, packet_bytes) == (held, 0)
    waiting, dropped = burst(bench, 2 + held, through, packet_bytes)
    assert waiting + dropped == held + 1
    # FQ-CoDel drops a batch where there is no room for one (RFC 8290, section 4.1.2, and Linux).
    assert dropped == 1 or (through["kind"] == "fq_codel" and 1 < dropped <= held)


@pytest.mark.parametrize("bench, kind", KINDS, indirect=["bench"])
@pytest.mark.parametrize("limit", [1, 20])
def test_a_limit_is_what_waits_besides_the_one_in_transmission(
    bench: Bench, kind: str, limit: int
) -> None:
    full(bench, *queue(kind, limit))


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
def test_a_limit_in_bytes_is_what_waits_besides_the_one_in_transmission(bench: Bench) -> None:
    fits = 20 * (1000 + bench.traits.framing_bytes)
    full(bench, {"kind": "droptail", "limit_bytes": fits}, 20)
    full(bench, {"kind": "droptail", "limit_bytes": fits - 1}, 19)


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
@pytest.mark.parametrize("mean_bytes", [500, 2000])
def test_a_limit_of_red_is_in_packets_of_any_size(bench: Bench, mean_bytes: int) -> None:
    through, held = queue("red", 20)
    full(bench, through | {"mean_packet_bytes": mean_bytes}, held)


@pytest.mark.parametrize("bench", ["ns3"], indirect=True)
def test_a_limit_of_red_in_byte_mode_counts_mean_packets(bench: Bench) -> None:
    through, _ = queue("red", 20)
    full(bench, through | {"byte_mode": True, "mean_packet_bytes": 2000}, 40 + DEVICE_PACKETS)


@pytest.mark.parametrize(
    "bench, kind",
    [("ns3", "fq_codel"), ("linux", "fq_codel"), ("linux", "fq_pie")],
    indirect=["bench"],
)
def test_a_limit_in_packets_bounds_no_memory(bench: Bench, kind: str) -> None:
    # Linux also bounds the memory of a queue, by default at 32 MiB.
    full(bench, *queue(kind, 700), packet_bytes=60000)


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
def test_the_limit_of_cake_is_memory(bench: Bench) -> None:
    # A packet takes more memory than its bytes, and less than three times as much.
    through = {"kind": "cake", "target_s": NEVER_S, "interval_s": NEVER_S}
    held, dropped = burst(bench, 101, through | {"memory_limit_bytes": 40000})
    assert dropped == 100 - held
    assert 40000 / 3000 < held < 40000 / 1000
