"""Kinds of queue that this kernel alone has; with them the shared reader reads this engine's plans.

They are no part of what is shared with ns-2: a change there makes all of its results old.
"""

from __future__ import annotations

from dataclasses import dataclass

import plan_reader


@dataclass
class FqPie:
    """Flow Queue PIE."""

    limit_packets: int
    target_ns: int
    update_interval_ns: int
    buckets: int
    quantum_bytes: int
    device_queue_packets: int
    ecn: bool = False


@dataclass
class Cake:
    """Common Applications Kept Enhanced, without its shaper."""

    memory_limit_bytes: int
    target_ns: int
    interval_ns: int
    device_queue_packets: int


plan_reader._QUEUES |= {"fq_pie": FqPie, "cake": Cake}
