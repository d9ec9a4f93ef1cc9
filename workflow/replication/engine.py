"""Engines: what each simulator or kernel supports, what a run of it costs, how it is started."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.files import sha256_of
from replication.scenario import CbrFlow, Scenario, TcpFlow

#: Pinned with its hash in workflow/engines/ns3/wheel.lock.
NS3_VERSION = "3.44.post0"


@dataclass(frozen=True)
class Engine:
    """What the workflow needs to know of one engine.

    Attributes
    ----------
    name : str
        The word used in configuration and results.
    version : str
        The pinned version of the simulator itself.
    congestion_controls, queues, losses : frozenset of str
        What is supported; anything else is refused by name.
    cost_base_s, cost_per_packet_hop_s : float
        Linear cost model of CPU seconds, fitted to measured runs (`make bench` shows its error).
    """

    name: str
    version: str
    congestion_controls: frozenset[str]
    queues: frozenset[str]
    losses: frozenset[str]
    cost_base_s: float
    cost_per_packet_hop_s: float

    def source_folder(self, root: Path) -> Path:
        """Return the folder with what runs inside the engine."""
        return root / "workflow" / "engines" / self.name

    def sources(self, root: Path) -> list[Path]:
        """Return the files that decide the results of this engine's runs."""
        folder = self.source_folder(root)
        names = ("*.cpp", "*.hpp", "Makefile", "wheel.lock")
        return sorted(p for name in names for p in folder.rglob(name) if p.is_file())

    def fingerprint(self, root: Path) -> str:
        """Return 12 hex digits over version and sources; results of others are never reused."""
        return _fingerprint(self.version, tuple(self.sources(root)))

    def refusal(self, scenario: Scenario) -> str:
        """Return why this engine cannot run `scenario`, or an empty string."""
        for flow in scenario.flows:
            if (
                isinstance(flow, TcpFlow)
                and flow.congestion_control not in self.congestion_controls
            ):
                return f"{self.name} has no congestion control {flow.congestion_control!r}"
        for link in scenario.links:
            for queue in (link.queue_ab, link.queue_ba):
                if queue.kind not in self.queues:
                    return f"{self.name} has no queue {queue.kind!r}"
            for loss in (link.loss_ab, link.loss_ba):
                if loss is not None and loss.kind not in self.losses:
                    return f"{self.name} has no loss model {loss.kind!r}"
        return ""

    def cost_s(self, scenario: Scenario) -> float:
        """Return the expected CPU seconds of one run."""
        work = sum(packets * hops for packets, hops in packet_hops(scenario))
        return self.cost_base_s + self.cost_per_packet_hop_s * work


@functools.cache
def _fingerprint(version: str, sources: tuple[Path, ...]) -> str:
    return sha256_of(*sources)[:8] + "-" + version if sources else version


def packet_hops(scenario: Scenario) -> Iterator[tuple[float, int]]:
    """Yield an upper estimate of data packets and the hops each crosses, per group of flows.

    The flows' demand is capped by the slowest link of the whole graph or, for TCP, by the
    window over the propagation round trip.
    """
    slowest = min(link.rate_bps for link in scenario.links)
    hops = min(len(scenario.links), 3)
    rtt_s = max(2 * sum(sorted((link.delay_s for link in scenario.links), reverse=True)[:3]), 1e-3)
    tcp_bps = 0.0
    segment = 1500
    for flow in scenario.flows:
        active_s = flow.stop_s - flow.start_s
        if isinstance(flow, CbrFlow):
            yield flow.rate_bps * active_s / (8 * flow.packet_bytes), hops
            continue
        window = flow.maximum_window_bytes
        demand = slowest if window is None else min(slowest, 8 * window / rtt_s)
        tcp_bps += demand * active_s / scenario.duration_s
        segment = flow.segment_bytes + 40
    # An acknowledgement costs about as much as the data packet it answers.
    yield 2 * min(tcp_bps, slowest) * scenario.duration_s / (8 * segment), hops


NS3 = Engine(
    name="ns3",
    version=NS3_VERSION,
    congestion_controls=frozenset(
        {
            "tahoe",
            "reno",
            "newreno",
            "linuxreno",
            "cubic",
            "vegas",
            "westwood_plus",
            "highspeed",
            "bbr",
            "bic",
            "htcp",
            "hybla",
            "illinois",
            "ledbat",
            "lp",
            "scalable",
            "veno",
            "yeah",
        }
    ),
    queues=frozenset({"droptail", "pfifo", "red", "codel", "fq_codel", "pie"}),
    losses=frozenset({"random", "listed"}),
    cost_base_s=0.05,
    cost_per_packet_hop_s=4e-6,
)
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (NS3,)}
