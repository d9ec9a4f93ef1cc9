"""A scenario as this engine reads it: checked, whole nanoseconds and bytes, nothing unsupported."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from features import (
    LOSSES,
    QUEUES,
    Host,
    check_delayed_acks,
    check_recovery,
    kernel_control,
    minimum_rto_ms,
    read_host,
)
from fields import Fields, index_ids, index_names, parse, refuse, resolve, sha256_of

#: IP and TCP headers, the TCP option of timestamps, IP and UDP headers.
TCP_HEADER_BYTES, TIMESTAMP_BYTES, UDP_HEADER_BYTES = 40, 12, 28
#: Bounds of the kernel's TCP_MAXSEG.
LEAST_SEGMENT_BYTES, MOST_SEGMENT_BYTES = 88, 32755
#: Windows up to here, half of Linux's default maximum of tcp_rmem, are held to the byte; wider ones and
#: none are the kernel's own tuning, up to this.
MOST_FIXED_WINDOW_BYTES, UNLIMITED_WINDOW_BYTES = (3 << 20) - 1, 32 << 20
#: Devices of more links would not be up in time: guest/common.h.
MOST_FLOWS, MOST_LINKS, MOST_ROWS = 5000, 4000, 10**7


@dataclass
class Queue:
    """The queue and transmitter of one direction of a link."""

    kind: str
    values: list[float]
    device_packets: int
    loss: float = 0.0


@dataclass
class Link:
    """A link between nodes (indices)."""

    id: str
    nodes: tuple[int, int]
    rate_bytes_per_s: int
    delay_ns: int
    queues: list[Queue]


@dataclass
class Flow:
    """A flow; the TCP part is empty for CBR."""

    id: str
    tcp: bool
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    control: str = ""
    segment_bytes: int = 0
    initial_window: int = 0
    maximum_window: int = 0
    sack: bool = False
    timestamps: bool = False
    quick_ack: bool = False
    minimum_rto_ms: int = 0
    packet_bytes: int = 0
    rate_bps: float = 0.0
    parameters: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def tuned_window(self) -> int:
        """Return up to which window the kernel tunes its receive buffer; 0: a fixed window."""
        if not self.tcp or 0 < self.maximum_window <= MOST_FIXED_WINDOW_BYTES:
            return 0
        return self.maximum_window or UNLIMITED_WINDOW_BYTES

    @property
    def largest_packet_bytes(self) -> int:
        """Return the size of its largest IP packet."""
        if not self.tcp:
            return self.packet_bytes
        return self.segment_bytes + TCP_HEADER_BYTES + TIMESTAMP_BYTES * self.timestamps


@dataclass
class Scenario:
    """One run."""

    sha256: str
    duration_ns: int
    interval_ns: int
    seed: int
    host: Host
    nodes: list[str]
    links: list[Link]
    flows: list[Flow]
    monitors: list[tuple[int, int]]

    @property
    def samples(self) -> int:
        """Return how many instants are sampled."""
        return self.duration_ns // self.interval_ns


def _droptail(fields: Fields) -> Queue:
    packets, octets = fields.optional_count("limit_packets"), fields.optional_count("limit_bytes")
    if (packets is None) == (octets is None):
        refuse(
            fields.path("limit_packets"),
            "missing" if packets is None else "and limit_bytes",
            "give exactly one of limit_packets and limit_bytes",
        )
    if packets is not None:
        return Queue("pfifo", [packets], 0)
    return Queue("bfifo", [octets or 0], 0)


def _red(fields: Fields) -> list[float]:
    limit = fields.count("limit_packets")
    low = fields.number("minimum_threshold_packets", 0, 1e6)
    high = fields.number("maximum_threshold_packets", 0, 1e6, above=True)
    weight = fields.number("queue_weight", 0, 1, above=True)
    probability = fields.number("maximum_probability", 0, 1, above=True)
    size = fields.count("mean_packet_bytes")
    if low >= high:
        refuse(
            fields.path("minimum_threshold_packets"),
            "not below maximum_threshold_packets",
            "give a minimum below the maximum",
        )
    for key, default in (("gentle", True), ("byte_mode", False), ("wait", True)):
        if fields.boolean(key, default):
            refuse(fields.path(key), "true", f"not supported by linux: its RED has no {key} mode")
    power = round(-math.log2(weight))
    if weight != 2.0**-power or power > 31:
        nearest = 2.0 ** -min(power, 31)
        refuse(
            fields.path("queue_weight"),
            f"{weight:g}",
            f"not supported by linux: give a power of two, the nearest is {nearest!r}",
        )
    if high * size * 2**power >= 2**31:  # red_check_params
        refuse(fields.path("maximum_threshold_packets"), f"{high:g}", "too large for Linux's RED")
    return [limit, low * size, high * size, power, probability, size]


def _microseconds(fields: Fields, key: str) -> float:
    ns = fields.nanoseconds(key)
    if ns % 1000:
        refuse(fields.path(key), f"{ns / 1e9:g}", "not supported by linux: give whole microseconds")
    return ns / 1000


def _queue(fields: Fields) -> Queue:
    kind = fields.choice("kind", QUEUES, "droptail")
    if kind == "droptail":
        queue = _droptail(fields)
        fields.finish()
        return queue
    device = fields.count("device_queue_packets", 1)
    values = _red(fields) if kind == "red" else [float(fields.count("limit_packets"))]
    if kind in ("codel", "fq_codel"):
        values += [_microseconds(fields, "target_s"), _microseconds(fields, "interval_s")]
    if kind == "fq_codel":
        values += [fields.integer("buckets", 1, 65536, 1024)]
        values += [fields.integer("quantum_bytes", 256, 2**20, 1514)]
    if kind == "pie":
        values += [_microseconds(fields, "target_s"), _microseconds(fields, "update_interval_s")]
        fields.count("mean_packet_bytes", 1000)  # Linux goes by its MTU: see README.md
    fields.finish()
    return Queue(kind, values, device)


def _loss(fields: Fields) -> float:
    kind = fields.choice("kind", ("random", "listed"))
    if kind not in LOSSES:
        refuse(
            fields.path("kind"),
            repr(kind),
            "not supported by linux: netem cannot count; use random",
        )
    probability = fields.number("probability", 0, 1)
    fields.finish()
    return probability


def _link(fields: Fields, nodes: dict[str, int]) -> Link:
    name = fields.identifier("id")
    a, b = (resolve(fields.identifier(end), nodes, fields.path(end), "node") for end in "ab")
    if a == b:
        refuse(fields.path("b"), "the same node as a", "join two different nodes")
    rate_bps = fields.number("rate_bps", 0, 1e12, above=True)
    rate = round(rate_bps / 8)
    if rate == 0:
        refuse(fields.path("rate_bps"), f"{rate_bps:g}", "give at least 8 bit per second")
    delay_ns = fields.nanoseconds("delay_s", positive=False)
    queues = []
    for key in ("ab", "ba"):
        queue = _queue(fields.inner(f"queue_{key}"))
        loss = fields.optional_inner(f"loss_{key}")
        queue.loss = 0.0 if loss is None else _loss(loss)
        queues.append(queue)
    fields.finish()
    return Link(name, (a, b), rate, delay_ns, queues)


def _segments(fields: Fields, flow: Flow) -> None:
    """Read sizes and windows, which the kernel keeps in its own units."""
    flow.segment_bytes = fields.integer("segment_bytes", 64, 65000)
    if not LEAST_SEGMENT_BYTES <= flow.segment_bytes <= MOST_SEGMENT_BYTES:
        refuse(
            fields.path("segment_bytes"),
            flow.segment_bytes,
            f"not supported by linux: give {LEAST_SEGMENT_BYTES} to {MOST_SEGMENT_BYTES}",
        )
    flow.initial_window = fields.integer("initial_window_segments", 1, 1000)
    ssthresh = fields.optional_count("initial_ssthresh_bytes")
    if ssthresh is not None:
        refuse(
            fields.path("initial_ssthresh_bytes"),
            ssthresh,
            "not supported by linux: a connection without a past starts at infinity; use null",
        )
    window = fields.optional_count("maximum_window_bytes")
    if window is not None and (window < 2 * flow.segment_bytes or window < 1200 or window > 2**28):
        refuse(
            fields.path("maximum_window_bytes"),
            window,
            "not supported by linux: give at least 1200 bytes and two segments (a sender keeps "
            "segments to half of the window), and at most 268435456",
        )
    flow.maximum_window = window or 0


def _parameters(fields: Fields, flow: Flow) -> None:
    """Read what the kernel holds once for all flows of an algorithm."""
    for name in ("alpha", "beta", "gamma"):
        default = {"alpha": 2, "beta": 4, "gamma": 1}[name]
        value = fields.integer(f"vegas_{name}_packets", 0, 1000, default)
        if flow.control == "vegas":
            flow.parameters["tcp_vegas", name] = value
    for name in ("tcp_friendliness", "fast_convergence"):
        switch = fields.boolean(f"cubic_{name}", True)
        if flow.control == "cubic":
            flow.parameters["tcp_cubic", name] = int(switch)


def _tcp(fields: Fields, flow: Flow, host: Host) -> None:
    flow.control = kernel_control(fields)
    check_recovery(fields, host)
    flow.quick_ack = check_delayed_acks(fields)
    flow.minimum_rto_ms = minimum_rto_ms(fields, host)
    flow.sack = fields.boolean("sack", False)
    flow.timestamps = fields.boolean("timestamps", False)
    if flow.control == "lp" and not flow.timestamps:
        refuse(fields.path("timestamps"), "false", "lp measures one-way delay by them; use true")
    _segments(fields, flow)
    _parameters(fields, flow)


def _flow(fields: Fields, nodes: dict[str, int], duration_ns: int, host: Host) -> Flow:
    name = fields.identifier("id")
    tcp = fields.choice("kind", ("tcp", "cbr"), "tcp") == "tcp"
    source, destination = (
        resolve(fields.identifier(end), nodes, fields.path(end), "node")
        for end in ("source", "destination")
    )
    if source == destination:
        refuse(fields.path("destination"), "the same node as source", "give two different nodes")
    start_ns = fields.nanoseconds("start_s", positive=False)
    stop_ns = min(fields.nanoseconds("stop_s"), duration_ns)
    if start_ns >= stop_ns:
        refuse(
            fields.path("start_s"),
            "not before stop_s and duration_s",
            "start the flow before it stops and before the run ends",
        )
    flow = Flow(name, tcp, source, destination, start_ns, stop_ns)
    if tcp:
        _tcp(fields, flow, host)
    else:
        flow.rate_bps = fields.number("rate_bps", 0, 1e12, above=True)
        flow.packet_bytes = fields.integer("packet_bytes", 64, 65000)
    fields.finish()
    return flow


def _monitors(items: list[Any], links: dict[str, int]) -> list[tuple[int, int]]:
    monitors: list[tuple[int, int]] = []
    for number, item in enumerate(items):
        fields = Fields(item, f"monitors[{number}]")
        link = resolve(fields.identifier("link"), links, fields.path("link"), "link")
        direction = ("ab", "ba").index(fields.choice("direction", ("ab", "ba"), "ab"))
        fields.finish()
        if (link, direction) in monitors:
            refuse(f"monitors[{number}]", "duplicate id", "watch every queue once")
        monitors.append((link, direction))
    return monitors


def _check_shared(flows: list[Flow]) -> None:
    """Refuse flows that differ in what the kernel holds once for all of them."""
    shared: dict[tuple[str, str], int] = {}
    for number, flow in enumerate(flows):
        for (module, name), value in flow.parameters.items():
            if shared.setdefault((module, name), value) != value:
                refuse(
                    f"flows[{number}].{name}",
                    value,
                    f"not supported by linux: the kernel has one {module}.{name} for all flows; "
                    f"use {shared[module, name]}",
                )
    tuned = [flow.tuned_window for flow in flows if flow.tuned_window]
    for number, flow in enumerate(flows):
        if flow.tuned_window not in (0, *tuned[:1]):
            refuse(
                f"flows[{number}].maximum_window_bytes",
                flow.maximum_window or "null",
                "not supported by linux: the kernel has one bound for all windows above "
                f"{MOST_FIXED_WINDOW_BYTES} bytes; give all of those the same",
            )


def _check_sizes(scenario: Scenario) -> None:
    if scenario.interval_ns > scenario.duration_ns:
        refuse("sampling_interval_s", "longer than duration_s", "sample at least once")
    rows = scenario.samples * (len(scenario.flows) + len(scenario.monitors))
    if rows > MOST_ROWS:
        refuse("sampling_interval_s", f"{rows} rows in series.csv", f"keep to {MOST_ROWS}")
    for key, items, most in (
        ("links", scenario.links, MOST_LINKS),
        ("flows", scenario.flows, MOST_FLOWS),
    ):
        if len(items) > most:
            refuse(key, f"{len(items)} items", f"give at most {most}")


def read_scenario(path: str) -> Scenario:
    """Read and check a scenario file."""
    document = parse(path)
    fields = Fields(document, "")
    fields.integer("schema_version", 1, 1, 1)
    duration_ns, interval_ns = (
        fields.nanoseconds(key) for key in ("duration_s", "sampling_interval_s")
    )
    seed = fields.integer("seed", 1, 2**31 - 1)
    host = read_host(fields.optional_inner("host"))
    node_items, link_items = fields.items("nodes", 2), fields.items("links", 1)
    flow_items, monitor_items = fields.items("flows", 1), fields.items("monitors", 0, [])
    fields.finish()
    nodes, links = index_names(node_items, "nodes"), index_ids(link_items, "links")
    index_ids(flow_items, "flows")
    scenario = Scenario(
        sha256=sha256_of(document),
        duration_ns=duration_ns,
        interval_ns=interval_ns,
        seed=seed,
        host=host,
        nodes=list(nodes),
        links=[_link(Fields(v, f"links[{i}]"), nodes) for i, v in enumerate(link_items)],
        flows=[
            _flow(Fields(v, f"flows[{i}]"), nodes, duration_ns, host)
            for i, v in enumerate(flow_items)
        ],
        monitors=_monitors(monitor_items, links),
    )
    _check_shared(scenario.flows)
    _check_sizes(scenario)
    return scenario
