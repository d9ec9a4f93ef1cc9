"""Queue kinds that only this kernel has, added to the shared reader.

They are not in the shared module, since a change there would outdate all results of ns-2.
"""

from __future__ import annotations

from dataclasses import dataclass

import input_reader


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


input_reader._QUEUES |= {"fq_pie": FqPie, "cake": Cake}
