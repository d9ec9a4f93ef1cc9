"""The guest's input: taps, a route for each flow, and a line for each thing to build."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fair_queues import Cake, FqPie
from scenario import (
    UDP_HEADER_BYTES,
    Cbr,
    CoDel,
    DropTail,
    Flow,
    FqCoDel,
    InputError,
    Link,
    ListedLoss,
    Loss,
    Pie,
    Queue,
    RandomLoss,
    Red,
    Routes,
    Scenario,
    Tcp,
    TokenBucket,
    TokenBucketFilter,
)

#: Congestion controls, and the kernel's names of them.
CONTROLS = {
    "bbr": "bbr",
    "bic": "bic",
    "cubic": "cubic",
    "dctcp": "dctcp",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "linuxreno": "reno",
    "lp": "lp",
    "scalable": "scalable",
    "vegas": "vegas",
    "veno": "veno",
    "westwood_plus": "westwood",
    "yeah": "yeah",
}
#: Bits of guest/network.h: where the packet tap listens, by side of the link.
TAP_IN, TAP_OUT, TAP_MONITOR = (1, 4), (2, 8), (16, 32)
ETHERNET_MTU_BYTES = 1500
#: Receive buffers hold twice the window, since the kernel counts its own overhead into them.
BUFFER_SPARE_BYTES = 1 << 20
#: Windows up to here, half of Linux's default maximum of tcp_rmem, are held to the byte; wider ones
#: and none are the kernel's own tuning, up to this.
MOST_FIXED_WINDOW_BYTES, UNLIMITED_WINDOW_BYTES = (3 << 20) - 1, 32 << 20
QUEUE_VALUES = 8
#: The kernel's scale of CUBIC's beta, and its own beta on it (tcp_cubic.c).
CUBIC_BETA_SCALE, CUBIC_BETA = 1024, 717

Path = list[int]


def make_guest_input(scenario: Scenario) -> str:
    """Return the guest's input: numbers and the kernel's own names only."""
    routes = Routes(scenario)
    paths = [
        (routes.path(f.source, f.destination), routes.path(f.destination, f.source))
        for f in scenario.flows
    ]
    route_lines = [
        line
        for number, flow in enumerate(scenario.flows)
        for line in _route_lines(scenario, flow, number, paths[number])
    ]
    largest = max(flow.packet_bytes for flow in scenario.flows)
    tuned = max(MOST_FIXED_WINDOW_BYTES + 1, *(tuned_window(flow) for flow in scenario.flows))
    run, offload = scenario.run, scenario.host.segmentation_offload
    lines = [
        f"run {run.duration_ns} {run.sampling_interval_ns} {max(largest, ETHERNET_MTU_BYTES)}"
        f" {len(scenario.nodes)} {len(scenario.links)} {len(route_lines)} {len(scenario.flows)}"
        f" {len(scenario.monitors)} {offload} {2 * tuned}"
    ]
    parameters = {key: v for flow in scenario.flows for key, v in _parameters(flow).items()}
    lines += [f"parameter {module} {name} {v}" for (module, name), v in sorted(parameters.items())]
    taps = _taps(scenario, [forth for forth, _ in paths])
    for link, tap in zip(scenario.links, taps, strict=True):
        lines.append(f"link {link.a} {link.b} {tap}")
    lines += _queue_lines(scenario, largest)
    lines += route_lines
    for flow, (forth, _) in zip(scenario.flows, paths, strict=True):
        lines.append(_flow_line(flow, forth))
    lines += [f"monitor {monitor.link} {monitor.hop % 2}" for monitor in scenario.monitors]
    return "\n".join(lines) + "\n"


def tuned_window(flow: Flow) -> int:
    """Return the largest window of the kernel's receive buffer tuning; 0: a fixed window."""
    if isinstance(flow, Cbr) or 0 < (flow.maximum_window_bytes or 0) <= MOST_FIXED_WINDOW_BYTES:
        return 0
    return flow.maximum_window_bytes or UNLIMITED_WINDOW_BYTES


def _taps(scenario: Scenario, forths: list[Path]) -> list[int]:
    taps = [0] * len(scenario.links)
    for forth in forths:
        first, last = forth[0], forth[-1]
        taps[first // 2] |= TAP_IN[first % 2]
        taps[last // 2] |= TAP_OUT[1 - last % 2]
    for monitor in scenario.monitors:
        taps[monitor.link] |= TAP_MONITOR[monitor.hop % 2]
        if scenario.host.segmentation_offload:  # the queue's packets are counted there
            taps[monitor.link] |= TAP_IN[monitor.hop % 2]
    return taps


def _parameters(flow: Flow) -> dict[tuple[str, str], int]:
    """Return the module parameters that all flows of an algorithm share."""
    control = flow.congestion_control if isinstance(flow, Tcp) else ""
    if isinstance(flow, Tcp) and control == "vegas":
        vegas = (flow.vegas_alpha_packets, flow.vegas_beta_packets, flow.vegas_gamma_packets)
        names = (("tcp_vegas", name) for name in ("alpha", "beta", "gamma"))
        return dict(zip(names, vegas, strict=True))
    if isinstance(flow, Tcp) and control == "cubic":
        return {
            ("tcp_cubic", "tcp_friendliness"): int(flow.cubic_tcp_friendliness),
            ("tcp_cubic", "fast_convergence"): int(flow.cubic_fast_convergence),
            ("tcp_cubic", "hystart"): int(flow.cubic_hystart),
        }
    return {}


def kernel_words(scenario: Scenario) -> list[str]:
    """Return the settings that the kernel takes at its start, as words of its command line.

    `cubictcp_register` derives Reno's equivalent from beta once. The kernel's own value is omitted,
    since the command line is one of the sources of its random numbers.
    """
    cubic = (f for f in scenario.flows if isinstance(f, Tcp) and f.congestion_control == "cubic")
    betas = {round(CUBIC_BETA_SCALE * flow.cubic_beta) for flow in cubic}
    return [f"tcp_cubic.beta={beta}" for beta in sorted(betas - {CUBIC_BETA})]


def needs_dctcp(scenario: Scenario) -> bool:
    """Return whether a scenario needs the kernel with DCTCP."""
    return any(isinstance(f, Tcp) and f.congestion_control == "dctcp" for f in scenario.flows)


def _queue_lines(scenario: Scenario, largest: int) -> Iterator[str]:
    for number, link in enumerate(scenario.links):
        for direction in range(2):
            yield f"queue {number} {direction} {_queue_values(link, direction, largest)}"


def _queue_values(link: Link, direction: int, largest: int) -> str:
    kind, device_packets, values = _discipline(link.queues[direction])
    line_bps, burst_bytes = link.rate_bps, device_packets * largest
    shaper = link.shapers[direction]
    if isinstance(shaper, TokenBucket):
        line_bps, burst_bytes = shaper.line_rate_bps, shaper.burst_bytes
    cuts = isinstance(shaper, TokenBucketFilter)
    if kind == "red":  # a bucket of its shaper holds a packet
        burst_bytes = max(burst_bytes, largest) + link.frame_bytes * device_packets
    ecn = getattr(link.queues[direction], "ecn", False)
    loss = round(_probability(link.losses[direction]) * (2**32 - 1))
    padded = " ".join(repr(float(v)) for v in [*values, *[0] * (QUEUE_VALUES - len(values))])
    return (
        f"{round(link.rate_bps / 8)} {round(line_bps / 8)} {link.delay_ns} {link.jitter_ns} {loss}"
        f" {burst_bytes} {link.frame_bytes} {int(ecn)} {int(cuts)} {kind} {padded}"
    )


def _probability(loss: Loss) -> float:
    if isinstance(loss, ListedLoss):
        raise InputError("linux has no loss model 'listed'")
    return loss.probability if isinstance(loss, RandomLoss) else 0.0


def _discipline(queue: Queue | FqPie | Cake) -> tuple[str, int, list[float]]:
    """Return the kernel's name of a queue, its device queue in packets, and its values in order."""
    if isinstance(queue, DropTail):
        if queue.limit_packets is not None:
            return "pfifo", 0, [queue.limit_packets]
        return "bfifo", 0, [queue.limit_bytes or 0]
    device = queue.device_queue_packets
    if isinstance(queue, Cake):
        times = [queue.target_ns / 1000, queue.interval_ns / 1000]
        return "cake", device, [float(queue.memory_limit_bytes), *times]
    values = [float(queue.limit_packets)]
    if isinstance(queue, Red):
        return "red", device, _red(queue)
    if isinstance(queue, CoDel):
        return "codel", device, [*values, queue.target_ns / 1000, queue.interval_ns / 1000]
    if isinstance(queue, FqCoDel):
        values += [queue.target_ns / 1000, queue.interval_ns / 1000]
        return "fq_codel", device, [*values, queue.buckets, queue.quantum_bytes]
    if isinstance(queue, Pie):  # Linux goes by its MTU, not by mean_packet_bytes: see README.md
        return "pie", device, [*values, queue.target_ns / 1000, queue.update_interval_ns / 1000]
    if isinstance(queue, FqPie):
        values += [queue.target_ns / 1000, queue.update_interval_ns / 1000]
        return "fq_pie", device, [*values, queue.buckets, queue.quantum_bytes]
    return "pfifo", device, values


def _red(queue: Red) -> list[float]:
    size = queue.mean_packet_bytes
    power = round(-math.log2(queue.queue_weight))
    low = queue.minimum_threshold_packets * size
    high = queue.maximum_threshold_packets * size
    return [queue.limit_packets, low, high, power, queue.maximum_probability, size]


def _route_lines(
    scenario: Scenario, flow: Flow, number: int, paths: tuple[Path, Path]
) -> Iterator[str]:
    """Yield one route for every flow and hop; those at the ends hold the flow's TCP settings."""
    for to_source, path in enumerate(paths):
        for place, hop in enumerate(path):
            settings = "0 0 0 0"
            if place == 0 and isinstance(flow, Tcp):
                rto_ms = flow.minimum_rto_ns // 1_000_000
                quick_ack = int(flow.delayed_ack_segments == 1)
                first = f"{flow.initial_window_segments} {rto_ms} 0"
                settings = f"0 {rto_ms} {quick_ack}" if to_source else first
                settings += f" {int(flow.ecn)}"
            node = scenario.links[hop // 2].ends[hop % 2]
            yield f"route {node} {hop // 2} {number} {to_source} {settings}"


def _flow_line(flow: Flow, forth: Path) -> str:
    first, last = forth[0], forth[-1]
    ends = (
        f"{flow.source} {flow.destination} {flow.start_ns} {flow.stop_ns}"
        f" {first // 2} {first % 2} {last // 2} {1 - last % 2}"
    )
    if isinstance(flow, Cbr):
        interval_ns = 8e9 * flow.packet_bytes / flow.rate_bps
        return f"cbr {ends} {flow.packet_bytes - UDP_HEADER_BYTES} {interval_ns!r}"
    window, buffer = 0, 0
    if not tuned_window(flow):
        window = flow.maximum_window_bytes or 0
        buffer = 2 * window + BUFFER_SPARE_BYTES
    if flow.congestion_control not in CONTROLS:
        raise InputError(f"linux has no congestion control {flow.congestion_control!r}")
    return (
        f"tcp {ends} {CONTROLS[flow.congestion_control]} {flow.segment_bytes} {window} {buffer}"
        f" {int(flow.sack)} {int(flow.timestamps)} {flow.connect_ns}"
        f" {flow.stop_after_bytes or 0} {int(flow.ecn)} {int(flow.socket_samples)}"
    )
