"""A scenario: one engine-neutral run in SI units, named by the hash of its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from replication.study.link import Link, ListedLoss
from replication.study.model import (
    OFF,
    OPTIONAL,
    WHOLE,
    Count,
    Document,
    Identifier,
    PositiveSeconds,
    Rate,
    Seconds,
)
from replication.study.parameter import unique

#: Headers of IPv4 and TCP without options, and the option of timestamps (RFC 7323).
TCP_IP_HEADER_BYTES, TIMESTAMPS_BYTES = 40, 12
_OfThePapers = Literal["tahoe", "reno", "newreno", "linuxreno", "cubic", "vegas", "westwood"]
_Further = Literal["bic", "dctcp", "htcp", "hybla", "illinois", "ledbat", "lp", "scalable", "veno"]
CongestionControl = Literal[_OfThePapers, "westwood_plus", "highspeed", "bbr", _Further, "yeah"]
CONGESTION_CONTROLS: tuple[str, ...] = get_args(CongestionControl)
#: Beyond any series that a machine here could hold.
MOST_SERIES_ROWS = 1e9


class _Flow(Document):
    id: Identifier
    source: Identifier
    destination: Identifier
    start_s: Seconds
    stop_s: PositiveSeconds

    @model_validator(mode="after")
    def _starts_before_it_stops(self) -> _Flow:
        if self.start_s >= self.stop_s:
            raise ValueError(f"flow {self.id}: start_s must be before stop_s")
        if self.source == self.destination:
            raise ValueError(f"flow {self.id}: source and destination are the same node")
        return self


class TcpFlow(_Flow):
    """Bulk TCP transfer, of so many bytes or without end."""

    kind: Literal["tcp"] = "tcp"
    connect_s: Seconds | None = OPTIONAL
    """When the handshake begins; data follow from `start_s` on. Null: at `start_s`."""
    congestion_control: CongestionControl
    """`tahoe`, `reno`, `newreno`, `linuxreno`, `cubic`, `vegas`, `westwood`, `westwood_plus`,
    `highspeed`, `bbr` and others; an engine refuses by name what it lacks."""
    recovery: Literal["classic", "prr", "ns3_prr"] = "classic"
    """`classic`, `prr` (RFC 6937) or `ns3_prr` (ns-3.44's own, which sends too much)."""
    sack: bool = False
    """Selective acknowledgements."""
    timestamps: bool = False
    """The timestamps option."""
    segment_bytes: Annotated[int, Field(ge=64, le=65000), WHOLE]
    """Payload; headers come on top: 40 bytes of IP and TCP, 52 with timestamps."""
    initial_window_segments: Annotated[int, Field(ge=1, le=1000), WHOLE]
    """Congestion window at the start."""
    initial_ssthresh_bytes: Count | None = None
    """Slow-start threshold at the start; null is none."""
    maximum_window_bytes: Count | None = None
    """Most bytes in flight, as a receive window or ns-2's `window_`; null is no limit."""
    delayed_ack_segments: Annotated[int, Field(ge=1, le=10), WHOLE]
    """1: every segment is acknowledged."""
    delayed_ack_timeout_s: PositiveSeconds = 0.2
    """Longest delay of an acknowledgement."""
    minimum_rto_s: PositiveSeconds
    """Least retransmission timeout."""
    initial_rto_s: PositiveSeconds
    """First retransmission timeout."""
    clock_granularity_s: PositiveSeconds = 0.001
    """Of the retransmission timer."""
    limited_transmit: bool = False
    """RFC 3042."""
    vegas_alpha_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 2
    """Of Vegas."""
    vegas_beta_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 4
    """Of Vegas."""
    vegas_gamma_packets: Annotated[int, Field(ge=0, le=1000), WHOLE] = 1
    """Of Vegas."""
    cubic_tcp_friendliness: bool = True
    """Of CUBIC."""
    cubic_fast_convergence: bool = True
    """Of CUBIC."""
    cubic_beta: Annotated[float, Field(gt=0, lt=1)] | None = OPTIONAL
    """Of CUBIC: what its window is multiplied by at a loss. Null is the engine's own: 0.7 in ns-3
    and Linux, 0.8 in ns-2, whose module is older (819/1024)."""
    cubic_hystart: bool | None = OPTIONAL
    """Of CUBIC: whether a growing delay ends its slow start. Null is the engine's own: true in ns-3
    and Linux, false in ns-2, whose module is older."""
    stop_after_bytes: Annotated[int, Field(ge=1, le=10**12), WHOLE] | None = OPTIONAL
    """A transfer of so many bytes of payload, which is complete when the receiver has all of them
    (`completion_time_s`). Null: there are always data."""
    ecn: bool = OFF
    """Explicit congestion notification (RFC 3168): queues with `ecn` mark its packets."""
    socket_samples: bool = OFF
    """Its samples have the goodput too, and on Linux delivery rate and pacing rate as `ss` prints
    them."""

    @model_validator(mode="after")
    def _fits(self) -> TcpFlow:
        if self.connect_s is not None and self.connect_s > self.start_s:
            raise ValueError(f"flow {self.id}: connect_s must not be after start_s")
        window = self.maximum_window_bytes
        if window is not None and window < self.segment_bytes:
            raise ValueError(f"flow {self.id}: maximum_window_bytes is below segment_bytes")
        return self

    @property
    def packet_bytes(self) -> int:
        """Return the size of a full segment with its headers, in IP bytes."""
        options = TIMESTAMPS_BYTES if self.timestamps else 0
        return self.segment_bytes + TCP_IP_HEADER_BYTES + options

    @property
    def connects_early(self) -> bool:
        """Return whether the handshake begins before there are data."""
        return self.connect_s is not None and self.connect_s < self.start_s


class CbrFlow(_Flow):
    """Constant bit rate UDP."""

    kind: Literal["cbr"] = "cbr"
    rate_bps: Rate
    """Of whole IP packets."""
    packet_bytes: Annotated[int, Field(ge=64, le=65000), WHOLE]
    """A whole IP packet."""


Flow = Annotated[TcpFlow | CbrFlow, Field(discriminator="kind")]


class Monitor(Document):
    """A queue that is sampled into `series`: the egress of `link` in `direction`."""

    link: Identifier
    direction: Literal["ab", "ba"] = "ab"


class Host(Document):
    """What all hosts have in common, for engines that run a kernel."""

    segmentation_offload: bool | Annotated[int, Field(ge=4096, le=65536), WHOLE] = False
    """Senders put segments together into one large packet, which crosses the network whole
    (Linux: TSO and GSO). A number bounds it in bytes (`gso_max_size` of ip-link(8))."""
    timer_hz: Literal[100, 250, 300, 1000] = 250
    """The kernel's timer frequency: 100, 250, 300 or 1000. `clock_granularity_s` of every flow
    is its inverse."""


class Scenario(Document):
    """One run. A host with nothing but defaults is left out, as where there was no such key."""

    schema_version: Literal[1] = 1
    duration_s: PositiveSeconds
    sampling_interval_s: PositiveSeconds
    seed: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE]
    nodes: Annotated[list[Identifier], Field(min_length=2, max_length=20000)]
    links: Annotated[list[Link], Field(min_length=1)]
    flows: Annotated[list[Flow], Field(min_length=1)]
    monitors: list[Monitor] = []
    host: Host | None = OPTIONAL

    @field_validator("host")
    @classmethod
    def _defaults_are_no_host(cls, host: Host | None) -> Host | None:
        return None if host == Host() else host

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        unique(self.nodes, "node id")
        unique((link.id for link in self.links), "link id")
        unique((flow.id for flow in self.flows), "flow id")
        unique((f"{m.link}:{m.direction}" for m in self.monitors), "monitor id")
        nodes, links = set(self.nodes), {link.id for link in self.links}
        flows = {flow.id for flow in self.flows}
        for link in self.links:
            _known(nodes, (link.a, link.b), f"link {link.id}", "node")
            if link.a == link.b:
                raise ValueError(f"link {link.id}: both ends are node {link.a}")
            for loss in (link.loss_ab, link.loss_ba):
                if isinstance(loss, ListedLoss):
                    _known(flows, (loss.flow,), f"link {link.id}", "flow")
        for flow in self.flows:
            _known(nodes, (flow.source, flow.destination), f"flow {flow.id}", "node")
            if flow.start_s >= self.duration_s:
                raise ValueError(f"flow {flow.id}: start_s is not before duration_s")
        _known(links, (m.link for m in self.monitors), "monitors", "link")
        if self.sampling_interval_s > self.duration_s:
            raise ValueError("sampling_interval_s is longer than duration_s")
        if self.series_rows > MOST_SERIES_ROWS:
            raise ValueError(f"sampling_interval_s: more than {MOST_SERIES_ROWS:g} rows of series")
        return self

    @property
    def series_rows(self) -> float:
        """Return how many samples there are of all flows and monitors, nearly."""
        return self.duration_s / self.sampling_interval_s * (len(self.flows) + len(self.monitors))

    def host_or_default(self) -> Host:
        """Return what all hosts have in common, said or not."""
        return self.host or Host()

    def host_settings(self) -> dict[str, Any]:
        """Return what of the host differs from the defaults, by name."""
        return {} if self.host is None else self.host.model_dump(exclude_defaults=True)

    def canonical_json(self) -> str:
        """Return the one JSON text that stands for this scenario (sorted keys, no spaces)."""
        return canonical_json(self.model_dump(mode="json"))

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    @property
    def id(self) -> str:
        """Return the first 16 hex digits of that hash."""
        return self.sha256[:16]


def canonical_json(value: Any) -> str:
    """Serialise plain data in the one form that hashes are taken of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _known(known: set[str], names: Any, where: str, what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: unknown {what} {name!r}")
