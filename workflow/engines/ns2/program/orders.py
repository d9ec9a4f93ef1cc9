"""The scenario as data for driver.tcl: words of a fixed vocabulary and numbers, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agents import UNLIMITED_PACKETS, Agent, agent_of
from scenario import (
    TIMESTAMP_BYTES,
    Cbr,
    DropTail,
    Flow,
    InputError,
    Link,
    ListedLoss,
    Pfifo,
    Queue,
    RandomLoss,
    Red,
    Routes,
    Scenario,
    Tcp,
)

Paths = list[tuple[list[int], list[int]]]

#: The largest acknowledgement; it may wait in front of data.
_ACK_BYTES = 52


def make_orders(scenario: Scenario) -> str:
    """Return the data file."""
    paths = find_paths(scenario)
    lines = [f"seed {scenario.run.seed}", f"nodes {len(scenario.nodes)}"]
    watched = [monitor.hop for monitor in scenario.monitors]
    used = sorted({i for there, back in paths for i in (*there, *back)} | set(watched))
    lines += [_link(i, scenario.links[i // 2]) for i in used]
    # Each part of a link is put at its beginning: losses strike last, and monitors count first.
    lines += _losses(scenario, used, paths)
    lines += _jitter(scenario, used)
    lines += [f"monitor {n} {i}" for n, i in enumerate(watched)]
    lines += _routes(scenario, paths)
    for i, flow in enumerate(scenario.flows):
        lines += _tcp(i, flow) if isinstance(flow, Tcp) else _cbr(i, flow)
        # A flow is active in [start, stop): nothing leaves at the instant it stops.
        lines.append(f"silence {_seconds(flow.stop_ns - 1)} {i}")
    lines += _timetable(scenario, paths)
    return "\n".join(lines) + "\n"


def find_paths(scenario: Scenario) -> Paths:
    """Return each flow's path there, and that of its acknowledgements back."""
    routes = Routes(scenario)
    return [
        (
            routes.path(flow.source, flow.destination),
            routes.path(flow.destination, flow.source) if isinstance(flow, Tcp) else [],
        )
        for flow in scenario.flows
    ]


def _seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _link(hop: int, link: Link) -> str:
    start, end = link.ends[hop % 2], link.ends[1 - hop % 2]
    text = f"link {hop} {start} {end} {link.rate_bps:.6f} {_seconds(link.delay_ns)}"
    queue = link.queues[hop % 2]
    if isinstance(queue, Red):
        return (
            f"{text} red {queue.limit_packets} {queue.minimum_threshold_packets:.17g}"
            f" {queue.maximum_threshold_packets:.17g} {queue.queue_weight:.17g}"
            f" {1 / queue.maximum_probability:.17g} {queue.mean_packet_bytes}"
            f" {_flag(queue.gentle)} {_flag(queue.byte_mode)} {_flag(queue.wait)}"
            f" {_flag(queue.ecn)}"
        )
    packets, octets = _fifo(queue)
    return f"{text} droptail_bytes {octets}" if octets else f"{text} droptail {packets}"


def _fifo(queue: Queue) -> tuple[int, int]:
    """Return the limits in packets and bytes of a FIFO; the other is 0."""
    if isinstance(queue, DropTail):
        return queue.limit_packets or 0, queue.limit_bytes or 0
    if not isinstance(queue, Pfifo):
        raise InputError(f"ns2 has no queue {type(queue).__name__}")
    # A FIFO that overflows into nothing, behind a full FIFO, is one FIFO of both lengths.
    return queue.limit_packets + queue.device_queue_packets, 0


def _losses(scenario: Scenario, used: list[int], paths: Paths) -> Iterator[str]:
    for i in used:
        loss = scenario.links[i // 2].losses[i % 2]
        if isinstance(loss, RandomLoss):
            yield f"random {i} {loss.probability:.17g}"
        elif isinstance(loss, ListedLoss) and i in paths[loss.flow][0]:
            # ns-2 counts from 0, and the SYN is the flow's first packet.
            first = 1 if has_syn(scenario.flows[loss.flow]) else 0
            numbers = " ".join(str(n - 1 + first) for n in loss.data_packets)
            yield f"listed {i} {loss.flow} {{{numbers}}}"


def _jitter(scenario: Scenario, used: list[int]) -> Iterator[str]:
    for i in used:
        link = scenario.links[i // 2]
        if link.jitter_ns:
            yield f"jitter {i} {_seconds(link.jitter_ns)} {link.rate_bps:.6f}"


def has_syn(flow: Flow) -> bool:
    """Return whether the flow's packet 0 is a SYN."""
    return isinstance(flow, Tcp) and agent_of(flow).syn


def segments_of(flow: Flow) -> int | None:
    """Return how many segments a transfer is, each a whole one; None: without end."""
    if isinstance(flow, Cbr) or flow.stop_after_bytes is None:
        return None
    return -(-flow.stop_after_bytes // flow.segment_bytes)


def _routes(scenario: Scenario, paths: Paths) -> list[str]:
    found: dict[tuple[int, int], int] = {}
    for flow, (there, back) in zip(scenario.flows, paths, strict=True):
        for path, end in ((there, flow.destination), (back, flow.source)):
            for i in path:
                found.setdefault((scenario.links[i // 2].ends[i % 2], end), i)
    return [f"route {at} {end} {i}" for (at, end), i in found.items()]


def _tcp(index: int, flow: Tcp) -> list[str]:
    agent = agent_of(flow)
    segment = flow.segment_bytes
    tick = _seconds(flow.clock_granularity_ns)
    # What follows from no key of the scenario stays as ns-2 has it.
    options: dict[str, object] = {
        "packetSize_": segment if agent.own_headers else flow.packet_bytes,
        "window_": min(UNLIMITED_PACKETS, (flow.maximum_window_bytes or 1 << 62) // segment),
        "windowInit_": flow.initial_window_segments,
        "tcpTick_": tick,
        "minrto_": _seconds(flow.minimum_rto_ns),
        "rtxcur_init_": _seconds(flow.initial_rto_ns),
        "singledup_": int(flow.limited_transmit),
    }
    sink_options: dict[str, object] = {}
    if flow.ecn:
        options["ecn_"] = 1
    if flow.timestamps:
        options |= {"timestamps_": "true", "ts_option_size_": TIMESTAMP_BYTES}
        sink_options["packetSize_"] = _ACK_BYTES
    if flow.congestion_control == "highspeed" and not agent.linux:
        options["windowOption_"] = 8
    if agent.linux:
        options["syn_"] = "false"
    if agent.name == "Vegas":
        options |= {
            "v_alpha_": flow.vegas_alpha_packets,
            "v_beta_": flow.vegas_beta_packets,
            "v_gamma_": flow.vegas_gamma_packets,
        }
    sink = "Agent/TCPSink" + ("/Sack1" if flow.sack else "")
    if flow.delayed_ack_segments == 2:
        sink += "/DelAck"
        sink_options["interval_"] = _seconds(flow.delayed_ack_timeout_ns)
    name = f"Agent/TCP/{agent.name}" if agent.name else "Agent/TCP"
    limit = min(UNLIMITED_PACKETS, max(1, (flow.initial_ssthresh_bytes or 1 << 62) // segment))
    return [
        f"tcp {index} {flow.source} {flow.destination} {name} {sink}"
        f" {{{_pairs(options)}}} {{{_pairs(sink_options)}}}",
        f"start_tcp {_seconds(flow.start_ns)} {index} {limit} {tick} {agent.linux or 'none'}"
        f" {{{_linux_parameters(flow, agent)}}} {segments_of(flow) or 'endless'}",
    ]


def _linux_parameters(flow: Tcp, agent: Agent) -> str:
    if agent.linux != "cubic":
        return ""
    parameters = {
        "tcp_friendliness": int(flow.cubic_tcp_friendliness),
        "fast_convergence": int(flow.cubic_fast_convergence),
    }
    return _pairs(parameters)


def _pairs(options: Mapping[str, object]) -> str:
    return " ".join(f"{name} {value}" for name, value in options.items())


def _cbr(index: int, flow: Cbr) -> list[str]:
    return [
        f"cbr {index} {flow.source} {flow.destination} {flow.rate_bps:.6f} {flow.packet_bytes}",
        f"start_cbr {_seconds(flow.start_ns)} {index}",
    ]


def _timetable(scenario: Scenario, paths: Paths) -> Iterator[str]:
    """Yield samples and end, each one nanosecond late: all events of that instant come first."""
    interval, end = scenario.run.sampling_interval_ns, scenario.run.duration_ns
    last = scenario.samples
    yield f"sample {_seconds(interval + 1)} 1 {interval} {last}"
    slowest = 0
    for n, monitor in enumerate(scenario.monitors):
        delay = scenario.links[monitor.link].delay_ns
        slowest = max(slowest, delay)
        yield f"sample_monitor {_seconds(interval + delay + 1)} {n} 1 {interval} {last} {delay}"
    yield f"end {_seconds(end + 2)}"
    yield f"finish {_seconds(end + slowest + longest_transit_ns(scenario, paths) + 10**6)}"


def longest_transit_ns(scenario: Scenario, paths: Paths) -> int:
    """Return the longest time any packet can be under way: through full queues, on its path."""
    largest = max(*(flow.packet_bytes for flow in scenario.flows), _ACK_BYTES)
    longest = 0
    for there, _ in paths:
        total = 0
        for i in there:
            link = scenario.links[i // 2]
            waiting = _most_bytes(link.queues[i % 2], largest) + 2 * largest
            total += link.delay_ns + link.jitter_ns + int(waiting * 8e9 / link.rate_bps) + 1
        longest = max(longest, total)
    return longest


def _most_bytes(queue: Queue, largest: int) -> int:
    if isinstance(queue, Red):
        return queue.limit_packets * max(largest, queue.mean_packet_bytes)
    packets, octets = _fifo(queue)
    return max(packets * largest, octets)
