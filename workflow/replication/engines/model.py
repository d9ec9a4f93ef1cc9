"""The model of an engine: supported scenarios, cost of a run, sources, required packages."""

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from replication.base.errors import InputError
from replication.base.files import digest_of, sha256_of
from replication.engines.generation import Generation, load_generation
from replication.engines.path import (
    FlowPaths,
    cubic_window,
    highspeed_window,
    path_loss,
    reno_window,
)
from replication.study.link import Queue
from replication.study.scenario import TCP_IP_HEADER_BYTES, CbrFlow, Flow, Scenario, TcpFlow

#: The code that writes the program's input file.
INPUT_FILE_SOURCES = tuple(
    Path(__file__).with_name(name) for name in ("input_file.py", "routing.py")
)


#: What an engine refuses, and whether a flow, queue or scenario has it.
Refusals = Mapping[str, bool | None]


@dataclass(frozen=True)
class OwnProgram:
    """An engine's program on a simulator that the user installed.

    `path` is below the project's folder, `build` the hash of the simulator's libraries. `as_pinned`
    says whether its results in the canonical scenarios are those of the pinned simulator.
    """

    path: Path
    build: str
    as_pinned: bool


@dataclass(frozen=True)
class Engine:
    """A simulator or kernel.

    Attributes
    ----------
    congestion_controls, queues, losses : frozenset of str
        Supported kinds; others are refused by name.
    refuse_flow, refuse_queue, refuse_scenario : callable
        Features that a flow, queue or scenario of supported kinds must not have.
    lacks : dict of str to str
        Optional keys that the program does not read, as `link.jitter_s` or `fq_codel.ecn`, and what
        they are called. They are not in its input file, and refused unless they have their default.
    reads_json : bool
        Whether the input file is JSON, or lines.
    cost, nominal_cost : tuple of float
        CPU seconds of a run and of a packet on a link: measured, high rather than low; and fixed.
    jitter_cost_s : float
        CPU seconds of a packet on a link with jitter, in addition.
    cubic_beta, cubic_hystart : float, bool
        Defaults of CUBIC.
    released : str
        Release date of the version, for readers.
    most_hops : int
        Most links of a path, limited by the time to live of packets.
    shared : bool
        Whether `workflow/engines/common` is part of the program.
    missing, built : callable
        Missing Debian packages; whether everything that takes minutes to build is built.
    machine : callable
        A text on whatever else of this machine determines results (a compiler, kernel sources).
    own_program : callable
        The program on a simulator that the user installed; None if the workflow builds it.
    """

    name: str
    title: str
    version: str
    congestion_controls: frozenset[str]
    queues: frozenset[str]
    losses: frozenset[str]
    refuse_flow: Callable[[TcpFlow], Refusals]
    refuse_queue: Callable[[Queue], Refusals]
    refuse_scenario: Callable[[Scenario], Refusals]
    cost: tuple[float, float]
    nominal_cost: tuple[float, float]
    jitter_cost_s: float = 0.0
    cubic_beta: float = 0.7
    cubic_hystart: bool = True
    released: str = ""
    most_hops: int = 250
    lacks: Mapping[str, str] = field(default_factory=dict, hash=False)
    reads_json: bool = True
    shared: bool = False
    missing: Callable[[Path], list[str]] = lambda root: []
    built: Callable[[Path], bool] = lambda root: True
    machine: Callable[[Path], str] = lambda root: ""
    own_program: Callable[[Path], OwnProgram | None] = lambda root: None

    @property
    def full_title(self) -> str:
        """Title and version, with the release date if known."""
        return f"{self.title} {self.version}" + (f" ({self.released})" if self.released else "")

    def sources(self, root: Path) -> list[Path]:
        """Return the files that determine the results of this engine's runs."""
        return [*self.program_sources(root), *INPUT_FILE_SOURCES]

    def program_sources(self, root: Path) -> list[Path]:
        """Return the source files of the program, with the lock of this version only."""
        folder = root / "workflow" / "engines" / self.name
        folders = [folder, folder.with_name("common")] if self.shared else [folder]
        files: list[Path] = []
        for folder in folders:
            files += _source_files(folder)
        return sorted(p for p in files if p.suffix != ".lock" or p.stem == self.version)

    def build_key(self, root: Path) -> str:
        """Return a hash of the sources and the version; a program with another one is built."""
        if installed := self.own_program(root):
            machine = "" if installed.as_pinned else installed.build
        else:
            machine = self.machine(root)
        return f"{_digest(tuple(self.sources(root)), machine)}-{self.version}"

    def fingerprint(self, root: Path) -> str:
        """Return the generation of the sources and the version; only its runs are reused."""
        generation = self.generation(root)
        return self.build_key(root) if generation is None else f"{generation.name}-{self.version}"

    def generation(self, root: Path) -> Generation | None:
        """Return the generation that the sources belong to; None if it is not listed."""
        generation = load_generation(root, self.name)
        digest = self.build_key(root).partition("-")[0]
        return generation if generation is not None and generation.has(digest) else None

    def program(self, root: Path, data: Path) -> Path:
        """Return the program below `root`: on the user's simulator, or built in folder `data`."""
        if installed := self.own_program(root):
            return installed.path
        folder = data / "engines" / f"{self.name}-{self.build_key(root)}"
        return folder / f"replicate-{self.name}"

    def listed_version(self, root: Path) -> str:
        """Return the version in the results of a listed generation; empty for any other."""
        generation = self.generation(root)
        return "" if generation is None else generation.version

    def exact_version(self, written: str, fingerprint: str) -> str:
        """Return the version in other results: `written` by the build, or with the hash."""
        if written:
            return "+".join(written.split())
        digest, _, version = fingerprint.partition("-")
        return f"{version}+{digest}"

    def resolved(self, flow: TcpFlow) -> TcpFlow:
        """Return a flow with this engine's defaults of CUBIC filled in."""
        defaults = {"cubic_beta": self.cubic_beta, "cubic_hystart": self.cubic_hystart}
        missing = {key: value for key, value in defaults.items() if getattr(flow, key) is None}
        return flow.model_copy(update=missing)

    def refusal(self, scenario: Scenario) -> str:
        """Return why this engine cannot run `scenario`, or an empty string."""
        for flow in scenario.flows:
            if not isinstance(flow, TcpFlow):
                continue
            flow = self.resolved(flow)
            if flow.congestion_control not in self.congestion_controls:
                return f"{self.name} has no congestion control {flow.congestion_control!r}"
            if refused := _first(self.refuse_flow(flow)):
                return f"{self.name} has no {flow.congestion_control} {refused}"
        for link in scenario.links:
            for queue in (link.queue_ab, link.queue_ba):
                if queue.kind not in self.queues:
                    return f"{self.name} has no queue {queue.kind!r}"
                if refused := _first(self.refuse_queue(queue)):
                    return f"{self.name} has no {queue.kind} {refused}"
            for loss in (link.loss_ab, link.loss_ba):
                if loss is not None and loss.kind not in self.losses:
                    return f"{self.name} has no loss model {loss.kind!r}"
        refused = self._lacking(scenario) or _first(self.refuse_scenario(scenario))
        return f"{self.name} has no {refused}" if refused else ""

    def _lacking(self, scenario: Scenario) -> str:
        """Return what a scenario sets and the program does not read, or an empty string."""
        parts = list(scenario.parts())
        for name, words in self.lacks.items():
            lacking_part, _, key = name.partition(".")
            for part, document in parts:
                if part != lacking_part:
                    continue
                if getattr(document, key) != type(document).model_fields[key].default:
                    return words
        return ""

    def require(self, root: Path) -> None:
        """Raise InputError with the remedy unless the engine can be built and run."""
        self.own_program(root)
        if packages := self.missing(root):
            raise InputError(
                f"engines: {self.name} lacks {', '.join(packages)}: run `make engines "
                f"ENGINES={self.name}`, or apt-get install {' '.join(packages)}"
            )

    def cost_s(self, scenario: Scenario, crossings: Mapping[str, float]) -> float:
        """Return the expected CPU seconds of a run with these `crossings_by_link`."""
        base_s, crossing_s = self.cost
        jittered = sum(crossings[link.id] for link in scenario.links if link.jitter_s)
        return base_s + crossing_s * sum(crossings.values()) + self.jitter_cost_s * jittered

    def nominal_cost_s(self, scenario: Scenario) -> float:
        """Return the fixed cost by which tiers choose lengths and numbers of runs."""
        base_s, crossing_s = self.nominal_cost
        return base_s + crossing_s * nominal_crossings(scenario)


def _first(refusals: Refusals) -> str:
    return next((text for text, is_met in refusals.items() if is_met), "")


@functools.cache
def _source_files(folder: Path) -> tuple[Path, ...]:
    files = (p for p in folder.rglob("*") if p.is_file() and p.name != "README.md")
    return tuple(p for p in files if not _is_cached(p.relative_to(folder.parent)))


def _is_cached(path: Path) -> bool:
    return any(part == "__pycache__" or part.startswith(".") for part in path.parts[:-1])


@functools.cache
def _digest(sources: tuple[Path, ...], machine: str) -> str:
    digest = sha256_of(*sources)
    if machine:
        digest = digest_of(f"{digest} {machine}".encode())
    return digest[:8]


#: Smallest share of a link for TCP when CBR takes the rest.
_LEAST_SHARE = 0.1
#: Shortest round trip in the rate of a window.
_LEAST_RTT_S = 1e-3
#: Senders whose rate at random loss follows Mathis's formula.
_RENO = {"tahoe", "reno", "newreno", "linuxreno", "vegas"}
#: Margin over the formula's mean rate: costs are estimated high rather than low.
_LOSS_MARGIN = 2.0
#: Typical number of segments in a lost packet with segmentation offload.
_MERGED = 8
#: The kernel's default limit of merged packets (GSO_LEGACY_MAX_SIZE).
_LARGEST_MERGED_BYTES = 1 << 16
#: A link and a direction.
_Hop = tuple[str, str]


def crossings_by_link(scenario: Scenario) -> dict[str, float]:
    """Estimate how often packets and acknowledgements cross each link.

    CBR sends at its rate. TCP sends as its window or path allows; where a link cannot carry all,
    TCP flows share what CBR does not use, in proportion.
    """
    routes = FlowPaths(scenario)
    cbr_bps, tcp_bps = defaultdict[_Hop, float](float), defaultdict[_Hop, float](float)
    sent = []
    for flow in scenario.flows:
        path = routes.links(flow.source, flow.destination)
        share = _active_s(scenario, flow) / scenario.duration_s
        if isinstance(flow, CbrFlow):
            used, bps = cbr_bps, flow.rate_bps * share
        else:
            slowest_bps = min((link.peak_bps for link, _ in path), default=0.0)
            rtt_s = max(2 * sum(link.delay_s for link, _ in path), _LEAST_RTT_S)
            bps = _tcp_bps(scenario, flow, path_loss(path), slowest_bps, rtt_s) * share
            used, bps = tcp_bps, min(bps, _transfer_bps(scenario, flow))
        sent.append((flow, path, bps))
        for link, way in path:
            used[link.id, way] += bps
    crossings = {link.id: 0.0 for link in scenario.links}
    for flow, path, bps in sent:
        if isinstance(flow, CbrFlow):
            for link, _ in path:
                bps = min(bps, link.peak_bps)  # what a link cannot carry ends there
                crossings[link.id] += bps * scenario.duration_s / (8 * flow.packet_bytes)
            continue
        share = 1.0
        for link, way in path:
            left_bps = max(link.peak_bps - cbr_bps[link.id, way], _LEAST_SHARE * link.peak_bps)
            share = min(share, left_bps / tcp_bps[link.id, way])
        bps *= share
        merged = _merged_segments(scenario, flow, bps)
        packet_bytes = merged * (flow.segment_bytes + TCP_IP_HEADER_BYTES)
        packets = bps * scenario.duration_s / (8 * packet_bytes)
        acknowledged = 1 + min(1.0, merged / flow.delayed_ack_segments)
        for link, _ in path:
            crossings[link.id] += acknowledged * packets
    return crossings


def _active_s(scenario: Scenario, flow: Flow) -> float:
    return min(flow.stop_s, scenario.duration_s) - flow.start_s


def _tcp_bps(
    scenario: Scenario, flow: TcpFlow, loss: float, slowest_bps: float, rtt_s: float
) -> float:
    """Return the rate at which a flow would send alone.

    With a margin, losses of links bound it: Mathis et al. 1997 for Reno and slower senders,
    RFC 9438 (section 5.1) for CUBIC, RFC 3649 for HighSpeed.
    """
    bps, control = slowest_bps, flow.congestion_control
    if flow.maximum_window_bytes is not None:
        bps = min(bps, 8 * flow.maximum_window_bytes / rtt_s)
    if scenario.host.segmentation_offload:
        loss /= _MERGED
    if loss:
        segments = _window_at_loss(control, rtt_s, loss)
        packet_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
        bps = min(bps, _LOSS_MARGIN * 8 * packet_bytes * segments / rtt_s)
    return bps


def _window_at_loss(control: str, rtt_s: float, loss: float) -> float:
    """Return the mean window in segments that losses of links leave; infinite if unknown."""
    if control == "cubic":
        return float(cubic_window(rtt_s, loss))
    if control == "highspeed":
        return float(highspeed_window(loss))
    return float(reno_window(loss)) if control in _RENO else math.inf


def _transfer_bps(scenario: Scenario, flow: TcpFlow) -> float:
    return 8 * (flow.stop_after_bytes or math.inf) / scenario.duration_s


def _merged_segments(scenario: Scenario, flow: TcpFlow, bps: float) -> float:
    """Estimate the number of segments in a packet of a flow.

    With segmentation offload a packet has the data of a millisecond, but at least two segments
    (`tcp_tso_autosize`). On short paths it has more, which costs less.
    """
    offload = scenario.host.segmentation_offload
    if not offload:
        return 1.0
    most_bytes = _LARGEST_MERGED_BYTES if offload is True else offload
    segment_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    return max(1.0, min(most_bytes, max(2 * segment_bytes, bps / 8 / 1024)) / segment_bytes)


def nominal_crossings(scenario: Scenario) -> float:
    """Return the fixed estimate by which tiers choose lengths and numbers of runs.

    A better estimate would change what is simulated. Every flow crosses three links, the slowest
    link of the network limits TCP, and CBR does not reduce TCP. Random loss limits TCP since
    2026-11-26, when no study of the collection had any: without that, runs of 180 s were shortened
    to 10 s.
    """
    routes = FlowPaths(scenario)
    slowest_bps = min(link.peak_bps for link in scenario.links)
    hops = min(len(scenario.links), 3)
    delays_s = sorted((link.delay_s for link in scenario.links), reverse=True)
    rtt_s = max(2 * sum(delays_s[:3]), _LEAST_RTT_S)
    tcp_bps, segment_bytes, crossings = 0.0, 1500, 0.0
    for flow in scenario.flows:
        active_s = _active_s(scenario, flow)
        if isinstance(flow, CbrFlow):
            crossings += flow.rate_bps * active_s / (8 * flow.packet_bytes) * hops
            continue
        loss = path_loss(routes.links(flow.source, flow.destination))
        bps = _tcp_bps(scenario, flow, loss, slowest_bps, rtt_s) * active_s / scenario.duration_s
        tcp_bps += min(bps, _transfer_bps(scenario, flow))
        segment_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    # An acknowledgement costs about as much as the data packet it answers.
    carried = 2 * min(tcp_bps, slowest_bps) * scenario.duration_s / (8 * segment_bytes)
    return crossings + carried * hops
