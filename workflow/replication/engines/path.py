"""The paths of a scenario's flows, and the rate that theory predicts for TCP on a path."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from replication.engines.routing import Routes
from replication.study.link import Cake, DropTail, Link, Queue, Red
from replication.study.scenario import Scenario, TcpFlow


class FlowPaths:
    """The routes between the nodes of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._links = scenario.links
        self._place = {name: number for number, name in enumerate(scenario.nodes)}
        ends = [(self._place[link.a], self._place[link.b]) for link in scenario.links]
        self._routes = Routes(len(self._place), ends)

    def links(self, source: str, destination: str) -> list[tuple[Link, str]]:
        """Return the links from one node to another, each with its direction, ab or ba."""
        hops = self._routes.path(self._place[source], self._place[destination])
        return [(self._links[hop // 2], "ba" if hop % 2 else "ab") for hop in hops]


def path_loss(links: list[tuple[Link, str]]) -> float:
    """Return the share of packets that links lose on a path, as `FlowPaths.links`."""
    return 1 - math.prod(1 - link.loss_rate(way) for link, way in links)


class TcpPath(NamedTuple):
    """The path of a scenario's first TCP flow; rate and queue are those of its slowest link."""

    rate_bps: float
    rtt_s: float  # twice the propagation delay
    segment_bytes: int
    packet_bytes: int  # the IP packet of a full segment
    queue_packets: float
    loss: float  # share of packets that links lose
    active_s: float  # while all flows are sending

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Return the path of the first TCP flow of a scenario."""
        flow, *_ = flows = [flow for flow in scenario.flows if isinstance(flow, TcpFlow)]
        hops = FlowPaths(scenario).links(flow.source, flow.destination)
        slowest, way = min(hops, key=lambda hop: hop[0].rate_bps)
        queue = slowest.queue_ab if way == "ab" else slowest.queue_ba
        return cls(
            rate_bps=slowest.rate_bps,
            rtt_s=2 * sum(link.delay_s for link, _ in hops),
            segment_bytes=flow.segment_bytes,
            packet_bytes=flow.packet_bytes,
            queue_packets=limit_packets(queue, flow.packet_bytes),
            loss=path_loss(hops),
            active_s=min(f.stop_s for f in flows) - max(f.start_s for f in flows),
        )

    @property
    def bdp_packets(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.rtt_s / 8 / self.packet_bytes

    def share(self, window_segments: Any) -> Any:
        """Return the share of the slowest link that a window of this mean carries."""
        return 8 * self.segment_bytes * window_segments / (self.rtt_s * self.rate_bps)


def limit_packets(queue: Queue, packet_bytes: int) -> float:
    """Return how many full packets a queue holds by its limit."""
    match queue:
        case Cake():
            return queue.memory_limit_bytes / packet_bytes
        case DropTail(limit_bytes=int(limit)):
            return limit / packet_bytes
        case Red(byte_mode=True):
            return queue.limit_packets * queue.mean_packet_bytes / packet_bytes
    return float(queue.limit_packets or 0)


def reno_window(loss: Any, constant: float = math.sqrt(1.5)) -> Any:
    """Return Reno's mean window in segments at a probability of random loss: C / sqrt(p).

    Mathis, Semke, Mahdavi and Ott 1997, The Macroscopic Behavior of the TCP Congestion Avoidance
    Algorithm, equation 3.
    """
    return constant / np.sqrt(loss)


def cubic_window(rtt_s: Any, loss: Any) -> Any:
    """Return CUBIC's mean window in segments at random loss: 1.054 (RTT / p)^(3/4).

    RFC 8312, section 5, for C = 0.4 and a window cut to 0.7; Reno's window where that is larger.
    """
    return np.maximum(1.054 * (rtt_s / loss) ** 0.75, reno_window(loss))


def highspeed_window(loss: Any) -> Any:
    """Return HighSpeed's mean window in segments: 0.12 / p^0.835, or Reno's where that is larger.

    RFC 3649, section 5.
    """
    return np.maximum(0.12 / loss**0.835, reno_window(loss))


def bbr_share(path: TcpPath) -> Any:
    """Return the share of one BBR flow against loss-based flows in a buffer of X products.

    Ware, Mukerjee, Seshan and Sherry 2019, Modeling BBR's Interactions with Loss-Based Congestion
    Control (IMC '19): BBR keeps two products in flight, so that the others have 1/2 - 1/(2X) - 4N/q
    of the link in a queue of q packets; every ten seconds it drains its queue and probes for 0.2 s.
    """
    q, bdp = path.queue_packets, path.bdp_packets
    others = 0.5 - bdp / (2 * q) - 4 / q
    full_s = q * 8 * path.packet_bytes / path.rate_bps
    probe_s = (full_s + 0.2 + path.rtt_s) * path.active_s / 10
    share = (1 - others) * np.maximum(0.0, path.active_s - probe_s) / path.active_s
    return np.where((q <= bdp) | (others <= 0), 1.0, share)
