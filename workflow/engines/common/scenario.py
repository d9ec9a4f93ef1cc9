"""A scenario as an input file states it (see workflow/replication/engines/input_file.py).

The engines whose program is Python share it. Their builds copy it next to their own modules, so it
needs the standard library only. A field with a default may be missing in the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DIRECTIONS = ("ab", "ba")
#: IP and TCP headers, the TCP option of timestamps, IP and UDP headers.
TCP_HEADER_BYTES, TIMESTAMP_BYTES, UDP_HEADER_BYTES = 40, 12, 28


class InputError(Exception):
    """The input file or the command line is bad, or asks for something unsupported."""


@dataclass
class Run:
    """Duration, sampling interval and random seed."""

    duration_ns: int
    sampling_interval_ns: int
    seed: int


@dataclass
class Host:
    """What all hosts have in common; a simulator's input has none."""

    segmentation_offload: bool | int = False  # a number: on, with a bound in bytes
    timer_hz: int = 0
    loss_probe_floor: str = "2 ms"
    device_queue: bool = False
    segment_memory_bytes: int | None = None


@dataclass
class Node:
    """A host or router."""

    id: str


@dataclass
class DropTail:
    """FIFO of the device itself; one of the limits is None."""

    limit_packets: int | None
    limit_bytes: int | None


@dataclass
class Pfifo:
    """FIFO in front of a device queue."""

    limit_packets: int
    device_queue_packets: int


@dataclass
class Red:
    """Random Early Detection."""

    limit_packets: int
    minimum_threshold_packets: float
    maximum_threshold_packets: float
    queue_weight: float
    maximum_probability: float
    mean_packet_bytes: int
    gentle: bool
    byte_mode: bool
    wait: bool
    device_queue_packets: int
    ecn: bool


@dataclass
class CoDel:
    """Controlled Delay."""

    limit_packets: int
    target_ns: int
    interval_ns: int
    device_queue_packets: int
    ecn: bool


@dataclass
class FqCoDel:
    """Flow Queue CoDel."""

    limit_packets: int
    target_ns: int
    interval_ns: int
    buckets: int
    quantum_bytes: int
    device_queue_packets: int
    ecn: bool


@dataclass
class Pie:
    """Proportional Integral controller Enhanced."""

    limit_packets: int
    target_ns: int
    update_interval_ns: int
    mean_packet_bytes: int
    device_queue_packets: int
    ecn: bool


@dataclass
class FqPie:
    """Flow Queue PIE."""

    limit_packets: int
    target_ns: int
    update_interval_ns: int
    buckets: int
    quantum_bytes: int
    device_queue_packets: int
    ecn: bool


@dataclass
class Cake:
    """Common Applications Kept Enhanced, without its shaper."""

    memory_limit_bytes: int
    target_ns: int
    interval_ns: int
    device_queue_packets: int


Queue = DropTail | Pfifo | Red | CoDel | FqCoDel | Pie | FqPie | Cake


@dataclass
class RandomLoss:
    """Each packet is lost with a probability."""

    probability: float


@dataclass
class ListedLoss:
    """The n-th data packets of a flow are lost; 1 is the first to cross."""

    flow: int
    data_packets: list[int]


Loss = RandomLoss | ListedLoss


@dataclass
class TokenBucket:
    """Linux's HTB with one class."""

    burst_bytes: int
    line_rate_bps: float


@dataclass
class TokenBucketFilter(TokenBucket):
    """Linux's TBF."""


@dataclass
class Change:
    """New values of a link from a time on; None: as before."""

    at_ns: int
    rate_bps: float | None
    delay_ns: int | None
    loss_ab: float | None
    loss_ba: float | None


@dataclass
class Link:
    """A link, with its parts by direction; without a shaper packets are sent at its rate."""

    id: str
    a: int
    b: int
    rate_bps: float
    delay_ns: int
    queue_ab: Queue
    queue_ba: Queue
    loss_ab: Loss | None
    loss_ba: Loss | None
    jitter_ns: int = 0
    frame_bytes: int = 0
    shaper_ab: TokenBucket | None = None
    shaper_ba: TokenBucket | None = None
    changes: list[Change] = field(default_factory=list)
    opportunities_ab: list[int] | None = None
    opportunities_ba: list[int] | None = None

    @property
    def queues(self) -> tuple[Queue, Queue]:
        """Return its queues: that of ab and that of ba."""
        return self.queue_ab, self.queue_ba

    @property
    def losses(self) -> tuple[Loss | None, Loss | None]:
        """Return the losses of ab and ba."""
        return self.loss_ab, self.loss_ba

    @property
    def shapers(self) -> tuple[TokenBucket | None, TokenBucket | None]:
        """Return the shapers of ab and ba."""
        return self.shaper_ab, self.shaper_ba

    @property
    def opportunities(self) -> tuple[list[int] | None, list[int] | None]:
        """Return the times in ms at which 1500 bytes may leave, of ab and ba."""
        return self.opportunities_ab, self.opportunities_ba

    @property
    def ends(self) -> tuple[int, int]:
        """Return its nodes: the sending ends of ab and ba."""
        return self.a, self.b


@dataclass
class Tcp:
    """A bulk transfer; without `stop_after_bytes` the sender always has data."""

    id: str
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    connect_ns: int
    congestion_control: str
    recovery: str
    sack: bool
    timestamps: bool
    segment_bytes: int
    initial_window_segments: int
    initial_ssthresh_bytes: int | None
    maximum_window_bytes: int | None
    delayed_ack_segments: int
    delayed_ack_timeout_ns: int
    minimum_rto_ns: int
    initial_rto_ns: int
    clock_granularity_ns: int
    limited_transmit: bool
    vegas_alpha_packets: int
    vegas_beta_packets: int
    vegas_gamma_packets: int
    cubic_tcp_friendliness: bool
    cubic_fast_convergence: bool
    cubic_beta: float
    cubic_hystart: bool
    stop_after_bytes: int | None
    ecn: bool
    socket_samples: bool

    @property
    def packet_bytes(self) -> int:
        """Return the size of its largest IP packet."""
        return self.segment_bytes + TCP_HEADER_BYTES + TIMESTAMP_BYTES * self.timestamps

    @property
    def payload_bytes(self) -> int:
        """Return the payload of a full packet."""
        return self.segment_bytes


@dataclass
class Cbr:
    """A constant bit rate flow over UDP."""

    id: str
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    rate_bps: float
    packet_bytes: int

    @property
    def payload_bytes(self) -> int:
        """Return the payload of a packet."""
        return self.packet_bytes - UDP_HEADER_BYTES


Flow = Tcp | Cbr


@dataclass
class Monitor:
    """A link direction whose queue is sampled."""

    link: int
    direction: str

    @property
    def hop(self) -> int:
        """Return the direction as a number: 2 * link, plus 1 for ba."""
        return 2 * self.link + DIRECTIONS.index(self.direction)


@dataclass
class Route(Monitor):
    """The sending end of this direction sends packets for node `to` over it."""

    to: int


@dataclass
class Scenario:
    """One run."""

    sha256: str
    run: Run
    nodes: list[Node]
    links: list[Link]
    flows: list[Flow]
    monitors: list[Monitor]
    routes: list[Route]
    host: Host = field(default_factory=Host)

    @property
    def samples(self) -> int:
        """Return the number of sampling times."""
        return self.run.duration_ns // self.run.sampling_interval_ns

    def name(self, hop: int) -> str:
        """Return the name of a direction in the tables."""
        return f"{self.links[hop // 2].id}:{DIRECTIONS[hop % 2]}"


class Routes:
    """The link direction over which each node sends to each other node."""

    def __init__(self, scenario: Scenario) -> None:
        self._links = scenario.links
        self._next = {
            (scenario.links[route.link].ends[route.hop % 2], route.to): route.hop
            for route in scenario.routes
        }

    def path(self, source: int, destination: int) -> list[int]:
        """Return the directions, as numbers, on the path from one node to another."""
        path: list[int] = []
        at = source
        while at != destination:
            hop = self._next.get((at, destination))
            if hop is None or len(path) > len(self._links):
                raise InputError(f"there is no route from node {source} to node {destination}")
            path.append(hop)
            at = self._links[hop // 2].ends[1 - hop % 2]
        return path
