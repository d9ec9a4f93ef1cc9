"""What the workflow needs to know of an engine: support, cost, sources, needs."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.engines.path import FlowPaths, cubic_window, reno_window
from replication.study.errors import InputError
from replication.study.files import sha256_of
from replication.study.link import Queue
from replication.study.scenario import TCP_IP_HEADER_BYTES, CbrFlow, Flow, Scenario, TcpFlow

#: What turns a scenario into what the program reads: as it is imported, wherever the root is.
_LOWERING = tuple(Path(__file__).with_name(name) for name in ("lowering.py", "routing.py"))


def knows_no_host(scenario: Scenario) -> str:
    """Return the first setting of a scenario's hosts: a simulator has none."""
    settings = list(scenario.host_settings())
    return f"host setting {settings[0]!r}" if settings else ""


@dataclass(frozen=True)
class OwnProgram:
    """An engine's program on a simulator that the user installed.

    `path` is below the project's folder, `build` the hash of the simulator's libraries. It is
    `as_pinned` if it writes the pinned simulator's bytes in the canonical scenarios.
    """

    path: Path
    build: str
    as_pinned: bool

    @property
    def machine(self) -> str:
        """Return what its results are named after: nothing if they are the pinned simulator's."""
        return "" if self.as_pinned else self.build


@dataclass(frozen=True)
class Engine:
    """What the workflow needs to know of one engine.

    Attributes
    ----------
    released : str
        When its version came out, where readers judge by that whether it is modern.
    congestion_controls, queues, losses : frozenset of str
        What is supported; anything else is refused by name.
    refuse_flow, refuse_queue, refuse_scenario : callable
        Say what of a supported flow, queue or scenario is refused all the same; empty for nothing.
    cubic_beta, cubic_hystart : float, bool
        What CUBIC has where a flow does not say.
    most_hops : int
        How many links a path may have, by the time to live of its packets.
    shared : bool
        Whether `workflow/engines/common` is a part of its program.
    missing, built : callable
        Debian packages that it lacks, and whether what takes minutes to build is there already.
    machine : callable
        What else of this machine decides its results (a compiler, a kernel's sources), as text.
    own_program : callable
        Its program on a simulator that the user installed; None where the workflow builds it.
    cost_base_s, cost_per_crossing_s : float
        Linear cost model of CPU seconds, from measured runs; high rather than low.
    nominal_cost : tuple of float
        Seconds a run and a nominal crossing by which tiers choose, see `nominal_cost_s`.
    """

    name: str
    title: str
    version: str
    congestion_controls: frozenset[str]
    queues: frozenset[str]
    losses: frozenset[str]
    refuse_flow: Callable[[TcpFlow], str]
    refuse_queue: Callable[[Queue], str]
    cost_base_s: float
    cost_per_crossing_s: float
    nominal_cost: tuple[float, float]
    refuse_scenario: Callable[[Scenario], str] = knows_no_host
    cubic_beta: float = 0.7
    cubic_hystart: bool = True
    released: str = ""
    most_hops: int = 250
    shared: bool = False
    missing: Callable[[Path], list[str]] = lambda root: []
    built: Callable[[Path], bool] = lambda root: True
    machine: Callable[[Path], str] = lambda root: ""
    own_program: Callable[[Path], OwnProgram | None] = lambda root: None

    @property
    def full_title(self) -> str:
        """Return name and version, with when that came out."""
        return f"{self.title} {self.version}" + (f" ({self.released})" if self.released else "")

    def source_folder(self, root: Path) -> Path:
        """Return the folder with what runs inside the engine."""
        return root / "workflow" / "engines" / self.name

    def sources(self, root: Path) -> list[Path]:
        """Return the files that decide the results of this engine's runs."""
        return [*self.program_sources(root), *_LOWERING]

    def program_sources(self, root: Path) -> list[Path]:
        """Return the files that its program is made of."""
        folder = self.source_folder(root)
        folders = [folder, folder.with_name("common")] if self.shared else [folder]
        return sorted(
            p
            for folder in folders
            for p in folder.rglob("*")
            if p.is_file()
            and p.name != "README.md"
            # What tools leave behind decides nothing.
            and not any(
                part == "__pycache__" or part.startswith(".")
                for part in p.relative_to(folder).parts[:-1]
            )
            # A lock that is named by another version pins nothing of this one.
            and (p.suffix != ".lock" or p.stem == self.version)
        )

    def fingerprint(self, root: Path) -> str:
        """Return 12 hex digits over version and sources; results of others are never reused."""
        own = self.own_program(root)
        machine = own.machine if own else self.machine(root)
        return _fingerprint(self.version, tuple(self.sources(root)), machine)

    def program(self, root: Path, data: Path) -> Path:
        """Return its program below `root`: on the user's simulator, or built below `data`."""
        own = self.own_program(root)
        folder = data / "engines" / f"{self.name}-{self.fingerprint(root)}"
        return own.path if own else folder / f"replicate-{self.name}"

    def exact_version(self, written: str, fingerprint: str) -> str:
        """Return the version that results carry: what its builder wrote, else with our hash."""
        if written:
            return "+".join(written.split())
        digest, _, version = fingerprint.partition("-")
        return f"{version}+{digest}"

    def resolved(self, flow: TcpFlow) -> TcpFlow:
        """Return a flow that says what this engine has where the flow left it to the engine."""
        own = {"cubic_beta": self.cubic_beta, "cubic_hystart": self.cubic_hystart}
        return flow.model_copy(update={k: v for k, v in own.items() if getattr(flow, k) is None})

    def refusal(self, scenario: Scenario) -> str:
        """Return why this engine cannot run `scenario`, or an empty string."""
        for flow in scenario.flows:
            if not isinstance(flow, TcpFlow):
                continue
            flow = self.resolved(flow)
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
        refused = self.refuse_scenario(scenario)
        return f"{self.name} has no {refused}" if refused else ""

    def require(self, root: Path) -> None:
        """Raise InputError, saying what to do, unless the engine can be built and run."""
        self.own_program(root)
        if packages := self.missing(root):
            raise InputError(
                f"engines: {self.name} lacks {', '.join(packages)}: run `make engines "
                f"ENGINES={self.name}`, or apt-get install {' '.join(packages)}"
            )

    def is_available(self, root: Path) -> bool:
        """Return whether the engine runs here without installing or building for minutes."""
        return not self.missing(root) and self.built(root)

    def cost_s(self, crossings: float) -> float:
        """Return the expected CPU seconds of a run in which packets cross so many links."""
        return self.cost_base_s + self.cost_per_crossing_s * crossings

    def nominal_cost_s(self, scenario: Scenario) -> float:
        """Return the frozen cost by which tiers shorten runs and choose how many there are."""
        base_s, crossing_s = self.nominal_cost
        return base_s + crossing_s * nominal_crossings(scenario)


@functools.cache
def _fingerprint(version: str, sources: tuple[Path, ...], machine: str) -> str:
    digest = sha256_of(*sources)
    if machine:
        digest = hashlib.sha256(f"{digest} {machine}".encode()).hexdigest()
    return f"{digest[:8]}-{version}"


#: The least share of a link that TCP is counted with beside CBR.
_LEAST_SHARE = 0.1
#: The least round trip that a window is divided by.
_LEAST_RTT_S = 1e-3
#: Senders whose rate at random loss is known in a formula; others may send what the path allows.
_RENO = {"tahoe", "reno", "newreno", "linuxreno", "vegas"}
#: How much more than the formula's mean is counted: a cost is high rather than low.
_LOSS_MARGIN = 2.0
#: Segments that segmentation offload has merged in a packet that is lost, about.
_MERGED = 8
#: The kernel's bound of merged packets where a host states none (GSO_LEGACY_MAX_SIZE).
_LARGEST_MERGED_BYTES = 1 << 16


def loss_bound_bps(flow: TcpFlow, rtt_s: float, loss: float) -> float:
    """Return what a flow sends at most at a random loss of packets, in the long run.

    Mathis and others 1997 for Reno and what is no faster, RFC 9438 (section 5.1) for CUBIC.
    """
    control = flow.congestion_control
    if not loss or (control not in _RENO and control != "cubic"):
        return math.inf
    segments = float(cubic_window(rtt_s, loss) if control == "cubic" else reno_window(loss))
    packet_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    return _LOSS_MARGIN * 8 * packet_bytes * segments / rtt_s


def link_crossings(scenario: Scenario) -> float:
    """Return an estimate of how often a packet or an acknowledgement crosses a link.

    CBR sends at its rate; TCP has what its window or the links of its path allow, shares a link
    with the other TCP flows in proportion to that, and leaves CBR its part.
    """
    routes = FlowPaths(scenario)
    rates = [link.rate_bps for link in scenario.links for _ in "ab"]
    cbr_bps, tcp_bps = [0.0] * len(rates), [0.0] * len(rates)
    flows = []
    for flow in scenario.flows:
        path = routes.hops(flow.source, flow.destination)
        bps = _wanted_bps(scenario, flow, path)
        flows.append((flow, path, bps))
        for hop in path:
            (cbr_bps if isinstance(flow, CbrFlow) else tcp_bps)[hop] += bps
    crossings = 0.0
    for flow, path, bps in flows:
        if isinstance(flow, CbrFlow):
            for hop in path:
                bps = min(bps, rates[hop])  # what a link cannot carry ends there
                crossings += bps * scenario.duration_s / (8 * flow.packet_bytes)
            continue
        shares = [
            max(rates[hop] - cbr_bps[hop], _LEAST_SHARE * rates[hop]) / tcp_bps[hop] for hop in path
        ]
        bps *= min([1.0, *shares])
        merged = _merged_segments(scenario, flow, bps)
        packet_bytes = merged * (flow.segment_bytes + TCP_IP_HEADER_BYTES)
        packets = bps * scenario.duration_s / (8 * packet_bytes)
        acknowledged = 1 + min(1.0, merged / flow.delayed_ack_segments)
        crossings += acknowledged * packets * len(path)
    return crossings


def _merged_segments(scenario: Scenario, flow: TcpFlow, bps: float) -> float:
    """Return how many segments a packet of a flow is, about.

    With segmentation offload it holds what is sent in a millisecond, two segments at least
    (`tcp_tso_autosize`); on short paths it holds more, which costs less.
    """
    offload = scenario.host_or_default().segmentation_offload
    if not offload:
        return 1.0
    most_bytes = _LARGEST_MERGED_BYTES if offload is True else offload
    segment_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    return max(1.0, min(most_bytes, max(2 * segment_bytes, bps / 8 / 1024)) / segment_bytes)


def _wanted_bps(scenario: Scenario, flow: Flow, path: list[int]) -> float:
    """Return what a flow would send alone, as a mean over the whole run."""
    active = max(0.0, min(flow.stop_s, scenario.duration_s) - flow.start_s) / scenario.duration_s
    if isinstance(flow, CbrFlow):
        return flow.rate_bps * active
    links = [scenario.links[hop // 2] for hop in path]
    bps = min((link.rate_bps for link in links), default=0.0)
    rtt_s = max(2 * sum(link.delay_s for link in links), _LEAST_RTT_S)
    if flow.maximum_window_bytes is not None:
        bps = min(bps, 8 * flow.maximum_window_bytes / rtt_s)
    bps = min(bps, loss_bound_bps(flow, rtt_s, _random_loss(scenario, path))) * active
    return min(bps, _transfer_bps(flow, scenario))


def _transfer_bps(flow: TcpFlow, scenario: Scenario) -> float:
    return 8 * (flow.stop_after_bytes or math.inf) / scenario.duration_s


def _random_loss(scenario: Scenario, path: Sequence[int]) -> float:
    """Return the share of events of random loss among the segments on the hops of a path."""
    kept = 1.0
    for hop in path:
        kept *= 1 - scenario.links[hop // 2].random_loss("ba" if hop % 2 else "ab")
    return (1 - kept) / (_MERGED if scenario.host_or_default().segmentation_offload else 1)


def nominal_crossings(scenario: Scenario) -> float:
    """Return the estimate by which tiers shorten runs and choose how many replicates there are.

    It is frozen: were it to follow a better one, so would what is simulated. Every flow crosses
    three links, the slowest of the whole graph bounds TCP, and CBR takes nothing of it. Random loss
    bounds TCP since 2026-11-26, when no study of the collection had any: runs of 180 s were cut to
    10 s for packets that loss never lets go.
    """
    routes = FlowPaths(scenario)
    slowest_bps = min(link.rate_bps for link in scenario.links)
    hops = min(len(scenario.links), 3)
    delays_s = sorted((link.delay_s for link in scenario.links), reverse=True)
    rtt_s = max(2 * sum(delays_s[:3]), _LEAST_RTT_S)
    tcp_bps, segment_bytes, crossings = 0.0, 1500, 0.0
    for flow in scenario.flows:
        active_s = flow.stop_s - flow.start_s
        if isinstance(flow, CbrFlow):
            crossings += flow.rate_bps * active_s / (8 * flow.packet_bytes) * hops
            continue
        window = flow.maximum_window_bytes
        demand_bps = slowest_bps if window is None else min(slowest_bps, 8 * window / rtt_s)
        if any(link.loss_ab or link.loss_ba for link in scenario.links):
            loss = _random_loss(scenario, routes.hops(flow.source, flow.destination))
            demand_bps = min(demand_bps, loss_bound_bps(flow, rtt_s, loss))
        tcp_bps += min(demand_bps * active_s / scenario.duration_s, _transfer_bps(flow, scenario))
        segment_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    # An acknowledgement costs about as much as the data packet it answers.
    carried = 2 * min(tcp_bps, slowest_bps) * scenario.duration_s / (8 * segment_bytes)
    return crossings + carried * hops
