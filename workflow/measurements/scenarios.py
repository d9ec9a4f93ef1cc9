"""Small scenarios for measurements and tests: plain dicts, as the scenario file has them."""

from typing import Any

#: A scenario or a part of one.
Part = dict[str, Any]

#: IP and TCP headers without options.
TCP_IP_HEADER_BYTES = 40
SEGMENT = 1000


def droptail(packets: int = 1000) -> Part:
    """Return a DropTail queue with a limit in packets."""
    return {"kind": "droptail", "limit_packets": packets}


#: Default path and times of a flow.
ENDS: Part = {"source": "s0", "destination": "d0", "start_s": 0, "stop_s": 1000}
#: TCP with no delayed acknowledgements.
TCP: Part = {"segment_bytes": SEGMENT, "initial_window_segments": 1, "delayed_ack_segments": 1}
TCP |= {"minimum_rto_s": 1, "initial_rto_s": 3}


def link(name: str, a: str, b: str, rate_bps: float, delay_s: float, **changes: Any) -> Part:
    """Return a duplex link with deep DropTail queues."""
    path = {"id": name, "a": a, "b": b, "rate_bps": rate_bps, "delay_s": delay_s}
    return path | {"queue_ab": droptail(), "queue_ba": droptail()} | changes


def tcp(name: str, control: str, **changes: Any) -> Part:
    """Return a TCP flow."""
    sender = {"kind": "tcp", "id": name, "congestion_control": control}
    return sender | ENDS | TCP | changes


def cbr(name: str, rate_bps: float, **changes: Any) -> Part:
    """Return a CBR flow."""
    sender = {"kind": "cbr", "id": name, "rate_bps": rate_bps, "packet_bytes": 1000}
    return sender | ENDS | changes


def document(
    nodes: list[str],
    links: list[Part],
    flows: list[Part],
    *,
    duration_s: float = 10,
    sampling_interval_s: float = 0.1,
    seed: int = 1,
) -> Part:
    """Return a scenario that monitors its first link from a to b."""
    run = {"duration_s": duration_s, "sampling_interval_s": sampling_interval_s, "seed": seed}
    path = {"nodes": nodes, "links": links, "monitors": [{"link": links[0]["id"]}]}
    return {"schema_version": 1, "flows": flows} | run | path


def single_link(
    flows: list[Part],
    *,
    rate_bps: float = 2e6,
    delay_s: float = 0.02,
    queue: Part | None = None,
    loss: Part | None = None,
    **run: Any,
) -> Part:
    """Return hosts s0 and d0 with one link between them, the cheapest path."""
    queue = queue or droptail()
    wire = link("wire", "s0", "d0", rate_bps, delay_s, queue_ab=queue, loss_ab=loss)
    return document(["s0", "d0"], [wire], flows, **run)


def dumbbell(
    flows: list[Part],
    *,
    rate_bps: float = 2e6,
    delay_s: float = 0.02,
    queue: Part | None = None,
    loss: Part | None = None,
    pairs: int = 1,
    access_bps: float = 1e9,
    access_delay_s: float = 0.0001,
    **run: Any,
) -> Part:
    """Return hosts s0.. and d0.. around one bottleneck r0-r1."""
    queue = queue or droptail()
    sources, sinks = [f"s{i}" for i in range(pairs)], [f"d{i}" for i in range(pairs)]
    sides = [(name, "r0") for name in sources] + [("r1", name) for name in sinks]
    links = [link("bottleneck", "r0", "r1", rate_bps, delay_s, queue_ab=queue, loss_ab=loss)]
    links += [link(f"{a}-{b}", a, b, access_bps, access_delay_s) for a, b in sides]
    return document(["r0", "r1", *sources, *sinks], links, flows, **run)


def listed(*data_packets: int, flow: str = "t") -> Part:
    """Return the loss of these data packets of a flow."""
    return {"kind": "listed", "flow": flow, "data_packets": list(data_packets)}


def red(minimum: int, maximum: int) -> Part:
    """Return RED in packets of 1000 bytes, gentle."""
    thresholds = {"minimum_threshold_packets": minimum, "maximum_threshold_packets": maximum}
    average = {"queue_weight": 0.002, "maximum_probability": 0.1, "mean_packet_bytes": 1000}
    return {"kind": "red", "limit_packets": 200} | thresholds | average


def marking_threshold(packets: int) -> Part:
    """Return RED as a threshold: no average, and a mark for every packet beyond it."""
    step = {"queue_weight": 1, "maximum_probability": 1, "gentle": False, "wait": False}
    # Linux counts in bytes.
    step |= {"ecn": True, "mean_packet_bytes": SEGMENT + TCP_IP_HEADER_BYTES}
    return red(packets, packets + 1) | step


def codel(target_s: float = 0.005, kind: str = "codel") -> Part:
    """Return CoDel or FQ-CoDel with the RFC's interval."""
    return {"kind": kind, "limit_packets": 1000, "target_s": target_s, "interval_s": 0.1}


def pie(target_s: float = 0.015, kind: str = "pie") -> Part:
    """Return PIE or FQ-PIE with the RFC's update interval."""
    return {"kind": kind, "limit_packets": 1000, "target_s": target_s, "update_interval_s": 0.015}


def cake() -> Part:
    """Return CAKE with its own target and interval."""
    return {"kind": "cake", "target_s": 0.005, "interval_s": 0.1}


def pfifo(packets: int) -> Part:
    """Return a pfifo discipline."""
    return {"kind": "pfifo", "limit_packets": packets}


def linux_tcp(name: str, control: str = "linuxreno", **changes: Any) -> Part:
    """Return a TCP flow whose fixed settings have the kernel's values."""
    fixed = {"recovery": "prr", "limited_transmit": True}
    fixed |= {"initial_rto_s": 1, "clock_granularity_s": 0.004}
    return tcp(name, control, **fixed | changes)


def linux_red(minimum: int, maximum: int) -> Part:
    """Return RED with Linux's limits: not gentle, weight a power of two."""
    return red(minimum, maximum) | {"queue_weight": 2**-9, "gentle": False, "wait": False}
