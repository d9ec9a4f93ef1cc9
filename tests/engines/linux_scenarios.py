"""What the engine tests need of the linux engine: flows that a kernel can run, and its traits."""

from __future__ import annotations

from typing import Any

from engine_scenarios import Json, tcp

SEGMENT = 1000
HEADER_BYTES = 40


def linux_tcp(name: str, control: str = "linuxreno", **changes: Any) -> Json:
    """Return a TCP flow with what no kernel lets anyone choose set to the kernel's values."""
    fixed = {
        "recovery": "prr",
        "limited_transmit": True,
        "initial_rto_s": 1,
        "clock_granularity_s": 0.004,
    }
    return tcp(name, control, **fixed | changes)


def linux_red(minimum: float, maximum: float) -> Json:
    """Return RED as Linux has it: not gentle, weight a power of two."""
    return {
        "kind": "red",
        "limit_packets": 200,
        "minimum_threshold_packets": minimum,
        "maximum_threshold_packets": maximum,
        "queue_weight": 2**-9,
        "maximum_probability": 0.1,
        "mean_packet_bytes": 1000,
        "gentle": False,
        "wait": False,
    }
