"""The scenarios of the bench: a dumbbell that every engine can run.

    source i --(access)-- left --(bottleneck)-- right --(access)-- sink i

Each flow crosses three links, all data the one bottleneck, so that packets that arrived are
packets that the bottleneck carried.
"""

from __future__ import annotations

from typing import Any

from replication.study.scenario import Scenario

ACCESS_BPS = 100e6
ACCESS_DELAY_S = 0.001
BOTTLENECK_BPS = 10e6
BOTTLENECK_DELAY_S = 0.01
SEGMENT_BYTES = 1000
SEED = 1
#: NewReno as each engine has it; a kernel knows no recovery but PRR.
_NEWRENO: dict[str, Any] = {"congestion_control": "newreno"}
_CONTROL = {
    "ns3": _NEWRENO,
    "ns2": _NEWRENO,
    "linux": {"congestion_control": "linuxreno", "recovery": "prr"},
}
#: What no kernel lets anyone choose, taken for every engine.
_FLOW: dict[str, Any] = {
    "kind": "tcp",
    "segment_bytes": SEGMENT_BYTES,
    "initial_window_segments": 2,
    "delayed_ack_segments": 1,
    "minimum_rto_s": 0.2,
    "initial_rto_s": 1.0,
    "clock_granularity_s": 0.004,
    "limited_transmit": True,
    "sack": True,
}


def dumbbell(
    engine: str,
    flows: int,
    duration_s: float,
    rate_bps: float = BOTTLENECK_BPS,
    sampling_interval_s: float = 0.1,
) -> Scenario:
    """Return `flows` bulk transfers over one bottleneck, in the form that `engine` supports."""
    queue = {"kind": "droptail", "limit_packets": 50}
    queues = {"queue_ab": queue, "queue_ba": queue}
    access = {"rate_bps": ACCESS_BPS, "delay_s": ACCESS_DELAY_S, **queues}
    numbers = range(1, flows + 1)
    document = {
        "duration_s": duration_s,
        "sampling_interval_s": min(sampling_interval_s, duration_s),
        "seed": SEED,
        # Sources come first: lower addresses, which tells data from acknowledgements.
        "nodes": [*(f"s{i}" for i in numbers), "left", "right", *(f"d{i}" for i in numbers)],
        "links": [
            *({"id": f"in{i}", "a": f"s{i}", "b": "left", **access} for i in numbers),
            {
                **{"id": "bottleneck", "a": "left", "b": "right", "rate_bps": rate_bps},
                **{"delay_s": BOTTLENECK_DELAY_S, **queues},
            },
            *({"id": f"out{i}", "a": "right", "b": f"d{i}", **access} for i in numbers),
        ],
        "flows": [
            {
                **_FLOW,
                **_CONTROL[engine],
                **{"id": f"f{i}", "source": f"s{i}", "destination": f"d{i}"},
                **{"start_s": 0.001 * i, "stop_s": duration_s},
            }
            for i in numbers
        ],
        "monitors": [{"link": "bottleneck"}],
    }
    return Scenario.model_validate(document)
