"""Small scenarios for the engine tests: plain dicts, as the scenario file has them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

#: IP and TCP headers without options, PPP framing of ns-3's point-to-point device.
TCP_IP_HEADER_BYTES = 40
SEGMENT = 1000
PPP_HEADER_BYTES = 2


def droptail(packets: int = 1000) -> Json:
    """Return a DropTail queue with a limit in packets."""
    return {"kind": "droptail", "limit_packets": packets}


def link(name: str, a: str, b: str, rate_bps: float, delay_s: float, **changes: Any) -> Json:
    """Return a duplex link with deep DropTail queues."""
    return {
        "id": name,
        "a": a,
        "b": b,
        "rate_bps": rate_bps,
        "delay_s": delay_s,
        "queue_ab": droptail(),
        "queue_ba": droptail(),
        **changes,
    }


def tcp(name: str, control: str, **changes: Any) -> Json:
    """Return a TCP flow from s0 to d0 with no delayed acknowledgements."""
    return {
        "kind": "tcp",
        "id": name,
        "source": "s0",
        "destination": "d0",
        "start_s": 0,
        "stop_s": 1000,
        "congestion_control": control,
        "segment_bytes": 1000,
        "initial_window_segments": 1,
        "delayed_ack_segments": 1,
        "minimum_rto_s": 1,
        "initial_rto_s": 3,
        **changes,
    }


def cbr(name: str, rate_bps: float, **changes: Any) -> Json:
    """Return a CBR flow from s0 to d0."""
    return {
        "kind": "cbr",
        "id": name,
        "source": "s0",
        "destination": "d0",
        "start_s": 0,
        "stop_s": 1000,
        "rate_bps": rate_bps,
        "packet_bytes": 1000,
        **changes,
    }


def dumbbell(
    flows: list[Json],
    *,
    duration_s: float = 10,
    rate_bps: float = 2e6,
    delay_s: float = 0.02,
    queue: Json | None = None,
    loss: Json | None = None,
    pairs: int = 1,
    access_bps: float = 1e9,
    access_delay_s: float = 0.0001,
    sampling_interval_s: float = 0.1,
    seed: int = 1,
) -> Json:
    """Return hosts s0.. and d0.. around one bottleneck r0-r1, monitored from r0 to r1."""
    sides = [(f"s{i}", "r0") for i in range(pairs)] + [("r1", f"d{i}") for i in range(pairs)]
    bottleneck = link(
        "bottleneck", "r0", "r1", rate_bps, delay_s, queue_ab=queue or droptail(), loss_ab=loss
    )
    access = [link(f"{a}-{b}", a, b, access_bps, access_delay_s) for a, b in sides]
    return {
        "schema_version": 1,
        "duration_s": duration_s,
        "sampling_interval_s": sampling_interval_s,
        "seed": seed,
        "nodes": ["r0", "r1", *(f"{side}{i}" for side in "sd" for i in range(pairs))],
        "links": [bottleneck, *access],
        "flows": flows,
        "monitors": [{"link": "bottleneck", "direction": "ab"}],
    }


def single_link(
    flows: list[Json],
    *,
    duration_s: float = 10,
    rate_bps: float = 2e6,
    delay_s: float = 0.02,
    queue: Json | None = None,
    loss: Json | None = None,
    sampling_interval_s: float = 0.1,
    seed: int = 1,
) -> Json:
    """Return hosts s0 and d0 with one monitored link between them: the cheapest path there is."""
    return {
        "schema_version": 1,
        "duration_s": duration_s,
        "sampling_interval_s": sampling_interval_s,
        "seed": seed,
        "nodes": ["s0", "d0"],
        "links": [
            link("wire", "s0", "d0", rate_bps, delay_s, queue_ab=queue or droptail(), loss_ab=loss)
        ],
        "flows": flows,
        "monitors": [{"link": "wire"}],
    }


def listed(*data_packets: int, flow: str = "t") -> Json:
    """Return the loss of these data packets of a flow."""
    return {"kind": "listed", "flow": flow, "data_packets": list(data_packets)}


def red(minimum: float, maximum: float) -> Json:
    """Return RED in packets of 1000 bytes, gentle."""
    return {
        "kind": "red",
        "limit_packets": 200,
        "minimum_threshold_packets": minimum,
        "maximum_threshold_packets": maximum,
        "queue_weight": 0.002,
        "maximum_probability": 0.1,
        "mean_packet_bytes": 1000,
    }


def codel(target_s: float = 0.005, kind: str = "codel") -> Json:
    """Return CoDel or FQ-CoDel with the RFC's interval."""
    return {"kind": kind, "limit_packets": 1000, "target_s": target_s, "interval_s": 0.1}


def pie(target_s: float = 0.015, kind: str = "pie") -> Json:
    """Return PIE or FQ-PIE with the RFC's update interval."""
    return {"kind": kind, "limit_packets": 1000, "target_s": target_s, "update_interval_s": 0.015}


def cake() -> Json:
    """Return CAKE with its own target and interval."""
    return {"kind": "cake", "target_s": 0.005, "interval_s": 0.1}


def pfifo(packets: int) -> Json:
    """Return a pfifo discipline."""
    return {"kind": "pfifo", "limit_packets": packets}


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
    return red(minimum, maximum) | {"queue_weight": 2**-9, "gentle": False, "wait": False}
