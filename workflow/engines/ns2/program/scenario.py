"""The scenario as checked, plain data: times in nanoseconds, names as indices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from features import check_host, check_queue, check_tcp
from fields import (
    Fields,
    index_ids,
    index_names,
    parse,
    refuse,
    register,
    resolve,
    sha256_of,
    show,
)

DIRECTIONS = ("ab", "ba")


@dataclass
class Queue:
    """An egress queue; `settings` holds what only its kind has."""

    kind: str
    limit_packets: int
    limit_bytes: int
    device_queue_packets: int
    settings: dict[str, Any]


@dataclass
class Loss:
    """A loss model: `data_packets` of `flow` if given, else each with `probability`."""

    probability: float
    flow: int
    data_packets: list[int]


@dataclass
class Direction:
    """One direction of a link."""

    name: str
    source: int
    target: int
    rate_bps: float
    delay_ns: int
    queue: Queue
    loss: Loss | None


@dataclass
class Flow:
    """A flow; `settings` holds the fields that only TCP has."""

    id: str
    kind: str
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    rate_bps: float = 0
    #: On the wire, headers included.
    packet_bytes: int = 0
    #: What of it the application gets.
    payload_bytes: int = 0
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Scenario:
    """One run."""

    sha256: str
    duration_ns: int
    interval_ns: int
    seed: int
    nodes: list[str]
    #: Two for each link: ab, then ba.
    directions: list[Direction]
    flows: list[Flow]
    #: Directions that are sampled into series.csv.
    monitors: list[int]


def read_scenario(path: str) -> Scenario:
    """Read and check a scenario file."""
    document = parse(path)
    fields = Fields(document, "")
    fields.integer("schema_version", 1, 1, 1)
    duration_ns = fields.nanoseconds("duration_s")
    interval_ns = fields.nanoseconds("sampling_interval_s")
    seed = fields.integer("seed", 1, 2**31 - 1)
    check_host(fields)
    nodes = fields.items("nodes", 2)
    links, flows = fields.items("links", 1), fields.items("flows", 1)
    monitors = fields.items("monitors", 0, [])
    fields.finish()
    if len(nodes) > 20000:
        refuse("nodes", f"{len(nodes)} items", "give at most 20000")
    node_index = index_names(nodes, "nodes")
    flow_index, link_index = index_ids(flows, "flows"), index_ids(links, "links")
    directions: list[Direction] = []
    for i, link in enumerate(links):
        directions += _link(Fields(link, f"links[{i}]"), node_index, flow_index)
    read = [_flow(Fields(f, f"flows[{i}]"), node_index, duration_ns) for i, f in enumerate(flows)]
    watched = [_monitor(Fields(m, f"monitors[{i}]"), link_index) for i, m in enumerate(monitors)]
    register([directions[i].name for i in watched], [f"monitors[{i}]" for i in range(len(watched))])
    if interval_ns > duration_ns:
        refuse("sampling_interval_s", "longer than duration_s", "sample at least once")
    if duration_ns / interval_ns * (len(flows) + len(watched)) > 1e9:
        refuse("sampling_interval_s", "more than 1e9 rows in series.csv", "sample less often")
    return Scenario(
        sha256=sha256_of(document),
        duration_ns=duration_ns,
        interval_ns=interval_ns,
        seed=seed,
        nodes=list(node_index),
        directions=directions,
        flows=read,
        monitors=watched,
    )


def _queue(fields: Fields) -> Queue:
    kinds = ("droptail", "pfifo", "red", "codel", "fq_codel", "pie")
    kind = fields.choice("kind", kinds, "droptail")
    packets = bytes_ = None
    settings: dict[str, Any] = {}
    device = 0
    check_queue(kind, fields)
    if kind == "droptail":
        packets, bytes_ = (
            fields.optional_count("limit_packets"),
            fields.optional_count("limit_bytes"),
        )
        if (packets is None) == (bytes_ is None):
            refuse(
                fields.path("limit_packets"), "with limit_bytes", "give one of them, not both"
            ) if packets else refuse(fields.path("limit_packets"), "missing", "give a limit")
    else:
        packets, device = fields.count("limit_packets"), fields.count("device_queue_packets", 1)
    if kind == "red":
        settings = _red(fields)
        if device > 1:
            refuse(
                fields.path("device_queue_packets"),
                str(device),
                "ns2 has no device queue below RED; give 1",
            )
    fields.finish()
    return Queue(kind, packets or 0, bytes_ or 0, device, settings)


def _red(fields: Fields) -> dict[str, Any]:
    low = fields.number("minimum_threshold_packets", 0, 1e9)
    high = fields.number("maximum_threshold_packets", 0, 1e9, above=True)
    if low >= high:
        refuse(
            fields.path("minimum_threshold_packets"),
            f"{low:g}",
            "give less than maximum_threshold_packets",
        )
    if low == 0:
        refuse(
            fields.path("minimum_threshold_packets"),
            "0",
            "ns2 takes 0 for its own default; give more",
        )
    return {
        "low": low,
        "high": high,
        "weight": fields.number("queue_weight", 0, 1, above=True),
        "probability": fields.number("maximum_probability", 0, 1, above=True),
        "mean_bytes": fields.count("mean_packet_bytes"),
        "gentle": fields.boolean("gentle", True),
        "byte_mode": fields.boolean("byte_mode", False),
        "wait": fields.boolean("wait", True),
    }


def _loss(fields: Fields, flows: dict[str, int]) -> Loss:
    if fields.choice("kind", ("random", "listed"), "random") == "random":
        loss = Loss(fields.number("probability", 0, 1), -1, [])
    else:
        flow = resolve(fields.identifier("flow"), flows, fields.path("flow"), "flow")
        numbers = fields.items("data_packets", 1)
        for number in numbers:
            if type(number) is not int or not 1 <= number <= 1_000_000_000:
                refuse(fields.path("data_packets"), show(number), "give integers from 1")
        loss = Loss(0, flow, sorted(set(numbers)))
    fields.finish()
    return loss


def _link(fields: Fields, nodes: dict[str, int], flows: dict[str, int]) -> list[Direction]:
    name = fields.identifier("id")
    ends = [resolve(fields.identifier(k), nodes, fields.path(k), "node") for k in ("a", "b")]
    if ends[0] == ends[1]:
        refuse(fields.path("b"), "the same node as a", "join two different nodes")
    rate = fields.number("rate_bps", 0, 1e12, above=True)
    if rate < 1:
        refuse(fields.path("rate_bps"), f"{rate:g}", "give at least 1 bit per second")
    delay_ns = fields.nanoseconds("delay_s", positive=False)
    both = []
    for way, (a, b) in zip(DIRECTIONS, (ends, ends[::-1]), strict=True):
        queue = _queue(fields.inner(f"queue_{way}"))
        given = fields.optional_inner(f"loss_{way}")
        loss = None if given is None else _loss(given, flows)
        both.append(Direction(f"{name}:{way}", a, b, rate, delay_ns, queue, loss))
    fields.finish()
    return both


def _flow(fields: Fields, nodes: dict[str, int], duration_ns: int) -> Flow:
    name = fields.identifier("id")
    kind = fields.choice("kind", ("tcp", "cbr"), "tcp")
    ends = [
        resolve(fields.identifier(key), nodes, fields.path(key), "node")
        for key in ("source", "destination")
    ]
    if ends[0] == ends[1]:
        refuse(fields.path("destination"), "the same node as source", "give two different nodes")
    start_ns = fields.nanoseconds("start_s", positive=False)
    stop_ns = min(fields.nanoseconds("stop_s"), duration_ns)
    if start_ns >= stop_ns:
        refuse(
            fields.path("start_s"),
            "not before stop_s and duration_s",
            "start the flow before it stops and before the run ends",
        )
    flow = Flow(name, kind, ends[0], ends[1], start_ns, stop_ns)
    if kind == "cbr":
        flow.rate_bps = fields.number("rate_bps", 0, 1e12, above=True)
        flow.packet_bytes = fields.integer("packet_bytes", 64, 65000)
        flow.payload_bytes = flow.packet_bytes - 28  # IP and UDP headers
    else:
        flow.settings = _tcp(fields)
        header = 52 if flow.settings["timestamps"] else 40
        flow.payload_bytes = flow.settings["segment_bytes"]
        flow.packet_bytes = flow.payload_bytes + header
    fields.finish()
    return flow


def _tcp(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "control": fields.text("congestion_control"),
        "recovery": fields.choice("recovery", ("classic", "prr"), "classic"),
        "sack": fields.boolean("sack", False),
        "timestamps": fields.boolean("timestamps", False),
        "segment_bytes": fields.integer("segment_bytes", 64, 65000),
        "initial_window": fields.integer("initial_window_segments", 1, 1000),
        "ssthresh_bytes": fields.optional_count("initial_ssthresh_bytes"),
        "window_bytes": fields.optional_count("maximum_window_bytes"),
        "ack_every": fields.integer("delayed_ack_segments", 1, 10),
        "ack_timeout_ns": fields.nanoseconds("delayed_ack_timeout_s", 0.2),
        "minimum_rto_ns": fields.nanoseconds("minimum_rto_s"),
        "initial_rto_ns": fields.nanoseconds("initial_rto_s"),
        "tick_ns": fields.nanoseconds("clock_granularity_s", 0.001),
        "limited_transmit": fields.boolean("limited_transmit", False),
        "vegas_alpha": fields.integer("vegas_alpha_packets", 0, 1000, 2),
        "vegas_beta": fields.integer("vegas_beta_packets", 0, 1000, 4),
        "vegas_gamma": fields.integer("vegas_gamma_packets", 0, 1000, 1),
        "cubic_friendliness": fields.boolean("cubic_tcp_friendliness", True),
        "cubic_fast_convergence": fields.boolean("cubic_fast_convergence", True),
    }
    window = settings["window_bytes"]
    if window is not None and window < settings["segment_bytes"]:
        refuse(
            fields.path("maximum_window_bytes"),
            str(window),
            "give at least segment_bytes, else nothing could ever be sent",
        )
    check_tcp(settings, fields)
    return settings


def _monitor(fields: Fields, links: dict[str, int]) -> int:
    link = resolve(fields.identifier("link"), links, fields.path("link"), "link")
    way = fields.choice("direction", DIRECTIONS, "ab")
    fields.finish()
    return 2 * link + DIRECTIONS.index(way)
