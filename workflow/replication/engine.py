"""Engines: what each simulator or kernel supports, what a run of it costs, how it is started."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replication.errors import InputError
from replication.files import sha256_of
from replication.scenario import CbrFlow, Queue, Red, Scenario, TcpFlow

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
    refuse_flow, refuse_queue : callable
        Say what of a supported flow or queue is refused all the same; empty for nothing.
    needs : tuple of str, optional
        A command that must be installed, and how to get it.
    cost_base_s, cost_per_packet_hop_s : float
        Linear cost model of CPU seconds, from measured runs; high rather than low.
    """

    name: str
    version: str
    congestion_controls: frozenset[str]
    queues: frozenset[str]
    losses: frozenset[str]
    refuse_flow: Callable[[TcpFlow], str]
    refuse_queue: Callable[[Queue], str]
    needs: tuple[str, str] | None
    cost_base_s: float
    cost_per_packet_hop_s: float

    def source_folder(self, root: Path) -> Path:
        """Return the folder with what runs inside the engine."""
        return root / "workflow" / "engines" / self.name

    def sources(self, root: Path) -> list[Path]:
        """Return the files that decide the results of this engine's runs."""
        folder = self.source_folder(root)
        names = ("*.cpp", "*.hpp", "*.py", "*.tcl", "Makefile", "wheel.lock")
        return sorted(p for name in names for p in folder.rglob(name) if p.is_file())

    def fingerprint(self, root: Path) -> str:
        """Return 12 hex digits over version and sources; results of others are never reused."""
        return _fingerprint(self.version, tuple(self.sources(root)))

    def refusal(self, scenario: Scenario) -> str:
        """Return why this engine cannot run `scenario`, or an empty string."""
        for flow in scenario.flows:
            if not isinstance(flow, TcpFlow):
                continue
            if flow.congestion_control not in self.congestion_controls:
                return f"{self.name} has no congestion control {flow.congestion_control!r}"
            if refused := self.refuse_flow(flow):
                return f"{self.name} has no {flow.congestion_control} {refused}"
        for link in scenario.links:
            for queue in (link.queue_ab, link.queue_ba):
                if queue.kind not in self.queues:
                    return f"{self.name} has no queue {queue.kind!r}"
                if refused := self.refuse_queue(queue):
                    return f"{self.name} has no {queue.kind} {refused}"
            for loss in (link.loss_ab, link.loss_ba):
                if loss is not None and loss.kind not in self.losses:
                    return f"{self.name} has no loss model {loss.kind!r}"
        return ""

    def require(self) -> None:
        """Raise InputError, saying what to install, unless the engine's own needs are met."""
        if self.needs is not None and shutil.which(self.needs[0]) is None:
            raise InputError(f"engines: {self.name} needs {self.needs[0]}: {self.needs[1]}")

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


def _ns3_refuses_flow(flow: TcpFlow) -> str:
    control = flow.congestion_control
    if control in ("tahoe", "reno") and (flow.sack or flow.recovery == "prr"):
        return "with SACK or PRR"
    if control in ("ledbat", "lp") and not flow.timestamps:
        return "without timestamps"
    if control == "bbr" and not (flow.sack or flow.limited_transmit):
        return "with neither SACK nor limited transmit"
    return ""


#: ns-2's agents that run Linux's own modules, on a scoreboard that always uses SACK.
_NS2_LINUX = frozenset(
    [
        "bic",
        "cubic",
        "htcp",
        "hybla",
        "illinois",
        "linuxreno",
        "scalable",
        "veno",
        "westwood_plus",
        "yeah",
    ]
)


def _ns2_refuses_flow(flow: TcpFlow) -> str:
    control = flow.congestion_control
    if flow.recovery == "prr":
        return "with PRR"
    if flow.delayed_ack_segments > 2:
        return "with an acknowledgement for more than two segments"
    if control in ("tahoe", "reno", "vegas") and flow.sack:
        return "with SACK"
    if control in _NS2_LINUX and not (flow.sack and flow.limited_transmit):
        return "without SACK and limited transmit"
    if control == "highspeed" and flow.sack and not flow.limited_transmit:
        return "with SACK but without limited transmit"
    return ""


def _ns2_refuses_queue(queue: Queue) -> str:
    if not isinstance(queue, Red):
        return ""
    if queue.device_queue_packets > 1:
        return "with a device queue of more than one packet"
    return "with a minimum threshold of 0" if queue.minimum_threshold_packets == 0 else ""


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
    refuse_flow=_ns3_refuses_flow,
    refuse_queue=lambda queue: "",
    needs=None,
    cost_base_s=0.05,
    cost_per_packet_hop_s=4e-6,
)
NS2 = Engine(
    name="ns2",
    version="2.35",
    congestion_controls=_NS2_LINUX | {"highspeed", "newreno", "reno", "tahoe", "vegas"},
    queues=frozenset({"droptail", "pfifo", "red"}),
    losses=frozenset({"random", "listed"}),
    refuse_flow=_ns2_refuses_flow,
    refuse_queue=_ns2_refuses_queue,
    needs=("ns", "install Debian's package ns2: apt-get install ns2"),
    cost_base_s=0.13,
    cost_per_packet_hop_s=1.0e-6,
)
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (NS3, NS2)}
