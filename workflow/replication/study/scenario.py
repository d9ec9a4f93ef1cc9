"""Scenarios: engine-neutral runs in SI units, named by a hash of what they say."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from replication.base.errors import InputError, check_known
from replication.base.files import digest_of
from replication.base.model import (
    WHOLE,
    Count,
    Document,
    Identifier,
    PositiveSeconds,
    Rate,
    Seconds,
)
from replication.study.link import OPPORTUNITY_BYTES, Link, ListedLoss
from replication.study.parameter import unique

#: Sizes of IPv4 and TCP headers without options, and of the timestamps option (RFC 7323).
TCP_IP_HEADER_BYTES, TIMESTAMPS_BYTES = 40, 12
_OfThePapers = Literal["tahoe", "reno", "newreno", "linuxreno", "cubic", "vegas", "westwood"]
_Further = Literal["bic", "dctcp", "htcp", "hybla", "illinois", "ledbat", "lp", "scalable", "veno"]
CongestionControl = Literal[_OfThePapers, "westwood_plus", "highspeed", "bbr", _Further, "yeah"]
CONGESTION_CONTROLS: tuple[str, ...] = get_args(CongestionControl)
#: More rows than fit into memory.
_MOST_SERIES_ROWS = 1e9


class _Flow(Document):
    id: Identifier
    source: Identifier
    destination: Identifier
    start_s: Seconds
    stop_s: PositiveSeconds

    @model_validator(mode="after")
    def _starts_before_it_stops(self) -> Self:
        if self.start_s >= self.stop_s:
            raise ValueError(f"flow {self.id}: start_s must be before stop_s")
        if self.source == self.destination:
            raise ValueError(f"flow {self.id}: source and destination are the same node")
        return self


class TcpFlow(_Flow):
    """TCP flow, a transfer of `stop_after_bytes` or without end."""

    kind: Literal["tcp"]
    connect_s: Seconds | None = None
    """Start of the handshake; data follow at `start_s`. Null: both at `start_s`."""
    congestion_control: CongestionControl
    """`tahoe`, `reno`, `newreno`, `linuxreno`, `cubic`, `vegas`, `westwood`, `westwood_plus`,
    `highspeed`, `bbr` and others; an engine refuses by name what it lacks."""
    recovery: Literal["classic", "prr", "ns3_prr"] = "classic"
    """`classic`, `prr` (RFC 6937) or `ns3_prr` (that of ns-3.44, which sends too much)."""
    sack: bool = False
    """Selective acknowledgements."""
    timestamps: bool = False
    """The timestamps option."""
    segment_bytes: Annotated[int, Field(ge=64, le=65000), WHOLE]
    """Payload of a segment, without headers of 40 bytes (IP and TCP), or 52 with timestamps."""
    initial_window_segments: Annotated[int, Field(ge=1, le=1000), WHOLE]
    """Initial congestion window."""
    initial_ssthresh_bytes: Count | None = None
    """Initial slow-start threshold; null: none."""
    maximum_window_bytes: Count | None = None
    """Most bytes in flight, by the receive window or ns-2's `window_`; null: no limit."""
    delayed_ack_segments: Annotated[int, Field(ge=1, le=10), WHOLE]
    """Segments per acknowledgement; 1: every segment is acknowledged."""
    delayed_ack_timeout_s: PositiveSeconds = 0.2
    """Longest delay of an acknowledgement."""
    minimum_rto_s: PositiveSeconds
    """Minimum retransmission timeout."""
    initial_rto_s: PositiveSeconds
    """Initial retransmission timeout."""
    clock_granularity_s: PositiveSeconds = 0.001
    """Clock granularity of the retransmission timer."""
    limited_transmit: bool = False
    """Limited transmit (RFC 3042)."""
    vegas_alpha_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 2
    vegas_beta_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 4
    vegas_gamma_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 1
    cubic_tcp_friendliness: bool = True
    cubic_fast_convergence: bool = True
    cubic_beta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Factor of CUBIC's window at a loss. Null: the engine's default, 0.7 in ns-3 and Linux, 0.8
    (819/1024) in ns-2, whose module is older."""
    cubic_hystart: bool | None = None
    """Whether a growing delay ends CUBIC's slow start. Null: the engine's default, true in ns-3 and
    Linux, false in ns-2, whose module is older."""
    stop_after_bytes: Annotated[int, Field(ge=1, le=10**12), WHOLE] | None = None
    """Payload of a transfer, which is complete when the receiver has all of it
    (`completion_time_s`). Null: there are always data to send."""
    ecn: bool = False
    """Explicit congestion notification (RFC 3168): queues with `ecn` mark the flow's packets."""
    socket_samples: bool = False
    """Whether samples have the goodput too, and on Linux delivery rate and pacing rate as `ss`
    prints them."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.connect_s is not None and self.connect_s > self.start_s:
            raise ValueError(f"flow {self.id}: connect_s must not be after start_s")
        window = self.maximum_window_bytes
        if window is not None and window < self.segment_bytes:
            raise ValueError(f"flow {self.id}: maximum_window_bytes is below segment_bytes")
        return self

    @property
    def packet_bytes(self) -> int:
        """Size of a full segment with its headers, in IP bytes."""
        options = TIMESTAMPS_BYTES if self.timestamps else 0
        return self.segment_bytes + TCP_IP_HEADER_BYTES + options


class CbrFlow(_Flow):
    """UDP flow of constant bit rate."""

    kind: Literal["cbr"]
    rate_bps: Rate
    """Rate, including IP and UDP headers."""
    packet_bytes: Annotated[int, Field(ge=64, le=65000), WHOLE]
    """Size of a packet, including IP and UDP headers."""


Flow = Annotated[TcpFlow | CbrFlow, Field(discriminator="kind")]


class Monitor(Document):
    """A queue that is sampled in the series: that of `link` in `direction`."""

    link: Identifier
    direction: Literal["ab", "ba"] = "ab"


class Host(Document):
    """Settings of all hosts, for engines that run a kernel."""

    segmentation_offload: bool | Annotated[int, Field(ge=4096, le=65536), WHOLE] = False
    """Whether senders merge segments into one large packet, which crosses the network whole (Linux:
    TSO and GSO). A number is its largest size in bytes (`gso_max_size` of ip-link(8))."""
    timer_hz: Literal[100, 250, 300, 1000] = 250
    """Timer frequency of the kernel. `clock_granularity_s` of every flow must be its inverse."""
    loss_probe_floor: Literal["2 ms", "2 jiffies"] = "2 ms"
    """What a loss probe and a reordering timer add to their time: 2 ms, or two ticks of the
    kernel's timer, as before Linux 6.6."""
    device_queue: bool = False
    """Whether a packet counts as its sender's memory until its transmission on the first link ends,
    so that TCP small queues bound the sender's bursts. False: until it is handed to that link."""
    segment_memory_bytes: Annotated[int, Field(ge=512, le=65536), WHOLE] | None = None
    """Memory that TCP small queues count for each segment; matters only with `device_queue`. Null:
    the kernel's own count."""


class Scenario(Document):
    """One run.

    Its id is a hash of what it says, without what it leaves at a default. So a new optional key
    changes no id, and a default never changes: `tests/unit/scenario_defaults.yaml` has them all.
    """

    schema_version: Literal[1] = 1
    duration_s: PositiveSeconds
    sampling_interval_s: PositiveSeconds
    seed: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE]
    nodes: Annotated[list[Identifier], Field(min_length=2, max_length=20000)]
    links: Annotated[list[Link], Field(min_length=1)]
    flows: Annotated[list[Flow], Field(min_length=1)]
    monitors: list[Monitor] = []
    host: Host = Host()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique(self.nodes, "node id", "nodes")
        unique((link.id for link in self.links), "link id", "links")
        unique((flow.id for flow in self.flows), "flow id", "flows")
        unique((f"{m.link}:{m.direction}" for m in self.monitors), "monitor id", "monitors")
        nodes = set(self.nodes)
        links = {link.id for link in self.links}
        flows = {flow.id for flow in self.flows}
        for link in self.links:
            at = "links", link.id
            for end in ("a", "b"):
                check_known(f"link {link.id}: node", [getattr(link, end)], nodes, (*at, end))
            if link.a == link.b:
                raise InputError(f"link {link.id}: both ends are node {link.a}", at)
            for loss in (link.loss_ab, link.loss_ba):
                if isinstance(loss, ListedLoss):
                    check_known(f"link {link.id}: flow", [loss.flow], flows, at)
        is_series = any(link.opportunities("ab") or link.opportunities("ba") for link in self.links)
        for flow in self.flows:
            for end in ("source", "destination"):
                place = "flows", flow.id, end
                check_known(f"flow {flow.id}: node", [getattr(flow, end)], nodes, place)
            if flow.start_s >= self.duration_s:
                text = f"flow {flow.id}: start_s is not before duration_s"
                raise InputError(text, ("flows", flow.id, "start_s"))
            if is_series and flow.packet_bytes > OPPORTUNITY_BYTES:
                size = "packet_bytes" if isinstance(flow, CbrFlow) else "segment_bytes"
                text = (
                    f"flow {flow.id}: {size} gives packets of {flow.packet_bytes} bytes, but an "
                    f"opportunity of a link carries {OPPORTUNITY_BYTES}"
                )
                raise InputError(text, ("flows", flow.id, size))
        check_known("monitors: link", (m.link for m in self.monitors), links, ("monitors",))
        if self.sampling_interval_s > self.duration_s:
            raise ValueError("sampling_interval_s is longer than duration_s")
        if self.series_rows > _MOST_SERIES_ROWS:
            raise ValueError(f"sampling_interval_s: more than {_MOST_SERIES_ROWS:g} rows of series")
        return self

    def parts(self) -> Iterator[tuple[str, Document]]:
        """Yield host, links, their queues, losses, shapers, changes, and flows with their kinds."""
        yield "host", self.host
        for link in self.links:
            yield "link", link
            yield link.queue_ab.kind, link.queue_ab
            yield link.queue_ba.kind, link.queue_ba
            for part in (link.loss_ab, link.loss_ba, link.shaper_ab, link.shaper_ba):
                if part is not None:
                    yield part.kind, part
            for change in link.changes:
                yield "change", change
        for flow in self.flows:
            yield flow.kind, flow

    @property
    def series_rows(self) -> float:
        """Approximate number of samples of all flows and monitors."""
        return self.duration_s / self.sampling_interval_s * (len(self.flows) + len(self.monitors))

    def to_json(self) -> str:
        """Return the scenario as JSON text with every key."""
        return canonical_json(self.model_dump(mode="json"))

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON of what the scenario says."""
        stated = self.model_dump(mode="json", exclude_defaults=True)
        return digest_of(canonical_json(stated).encode())

    @property
    def id(self) -> str:
        """First 16 hex digits of the SHA-256."""
        return self.sha256[:16]


def canonical_json(value: Any) -> str:
    """Serialise plain data for hashing: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
