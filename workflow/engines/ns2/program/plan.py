"""The scenario as data for driver.tcl: words of a fixed vocabulary and numbers, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from features import UNLIMITED_PACKETS, Agent, agent_of
from scenario import Direction, Flow, Scenario

Paths = list[tuple[list[int], list[int]]]

#: The largest acknowledgement; it may wait in front of data.
_ACK_BYTES = 52


def write_plan(scenario: Scenario, paths: Paths) -> str:
    """Return the data file."""
    lines = [f"seed {scenario.seed}", f"nodes {len(scenario.nodes)}"]
    used = sorted({i for there, back in paths for i in (*there, *back)} | set(scenario.monitors))
    lines += [_link(i, scenario.directions[i]) for i in used]
    lines += [f"monitor {n} {i}" for n, i in enumerate(scenario.monitors)]
    lines += _losses(scenario, used, paths)
    lines += _routes(scenario, paths)
    for i, flow in enumerate(scenario.flows):
        lines += _tcp(i, flow) if flow.kind == "tcp" else _cbr(i, flow)
        # A flow is active in [start, stop): nothing leaves at the instant it stops.
        lines.append(f"silence {_seconds(flow.stop_ns - 1)} {i}")
    lines += _timetable(scenario, paths)
    return "\n".join(lines) + "\n"


def _seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _link(index: int, link: Direction) -> str:
    queue = link.queue
    text = f"link {index} {link.source} {link.target} {link.rate_bps:.6f} {_seconds(link.delay_ns)}"
    if queue.kind == "red":
        red = queue.settings
        return (
            f"{text} red {queue.limit_packets} {red['low']:.17g} {red['high']:.17g}"
            f" {red['weight']:.17g} {1 / red['probability']:.17g} {red['mean_bytes']}"
            f" {_flag(red['gentle'])} {_flag(red['byte_mode'])} {_flag(red['wait'])}"
        )
    if queue.limit_bytes:
        return f"{text} droptail_bytes {queue.limit_bytes}"
    # A FIFO that overflows into nothing, behind a full FIFO, is one FIFO of both lengths.
    return f"{text} droptail {queue.limit_packets + queue.device_queue_packets}"


def _losses(scenario: Scenario, used: list[int], paths: Paths) -> Iterator[str]:
    for i in used:
        loss = scenario.directions[i].loss
        if loss is None:
            continue
        if loss.flow < 0:
            yield f"random {i} {loss.probability:.17g}"
        elif i in paths[loss.flow][0]:
            # ns-2 counts from 0, and the SYN is the flow's first packet.
            first = 1 if has_syn(scenario.flows[loss.flow]) else 0
            numbers = " ".join(str(n - 1 + first) for n in loss.data_packets)
            yield f"listed {i} {loss.flow} {{{numbers}}}"


def has_syn(flow: Flow) -> bool:
    """Return whether the flow's packet 0 is a SYN."""
    return flow.kind == "tcp" and agent_of(flow.settings).syn


def _routes(scenario: Scenario, paths: Paths) -> list[str]:
    found: dict[tuple[int, int], int] = {}
    for flow, (there, back) in zip(scenario.flows, paths, strict=True):
        for path, end in ((there, flow.destination), (back, flow.source)):
            for i in path:
                found.setdefault((scenario.directions[i].source, end), i)
    return [f"route {at} {end} {i}" for (at, end), i in found.items()]


def _tcp(index: int, flow: Flow) -> list[str]:
    settings = flow.settings
    agent = agent_of(settings)
    header = flow.packet_bytes - flow.payload_bytes
    window = settings["window_bytes"]
    ssthresh = settings["ssthresh_bytes"]
    segment = settings["segment_bytes"]
    tick = _seconds(settings["tick_ns"])
    # What follows from no key of the scenario stays as ns-2 has it.
    options: dict[str, object] = {
        "packetSize_": segment if agent.own_headers else flow.packet_bytes,
        "window_": min(UNLIMITED_PACKETS, (window or 1 << 62) // segment),
        "windowInit_": settings["initial_window"],
        "tcpTick_": tick,
        "minrto_": _seconds(settings["minimum_rto_ns"]),
        "rtxcur_init_": _seconds(settings["initial_rto_ns"]),
        "singledup_": int(settings["limited_transmit"]),
    }
    sink_options: dict[str, object] = {}
    if settings["timestamps"]:
        options |= {"timestamps_": "true", "ts_option_size_": header - 40}
        sink_options["packetSize_"] = _ACK_BYTES
    if settings["control"] == "highspeed" and not agent.linux:
        options["windowOption_"] = 8
    if agent.linux:
        options["syn_"] = "false"
    if agent.name == "Vegas":
        options |= {f"v_{k}_": settings[f"vegas_{k}"] for k in ("alpha", "beta", "gamma")}
    sink = "Agent/TCPSink" + ("/Sack1" if settings["sack"] else "")
    if settings["ack_every"] == 2:
        sink += "/DelAck"
        sink_options["interval_"] = _seconds(settings["ack_timeout_ns"])
    name = f"Agent/TCP/{agent.name}" if agent.name else "Agent/TCP"
    limit = min(UNLIMITED_PACKETS, max(1, (ssthresh or 1 << 62) // segment))
    return [
        f"tcp {index} {flow.source} {flow.destination} {name} {sink}"
        f" {{{_pairs(options)}}} {{{_pairs(sink_options)}}}",
        f"start_tcp {_seconds(flow.start_ns)} {index} {limit} {tick} {agent.linux or 'none'}"
        f" {{{_linux_parameters(flow, agent)}}}",
    ]


def _linux_parameters(flow: Flow, agent: Agent) -> str:
    if agent.linux != "cubic":
        return ""
    parameters = {
        "tcp_friendliness": int(flow.settings["cubic_friendliness"]),
        "fast_convergence": int(flow.settings["cubic_fast_convergence"]),
    }
    return _pairs(parameters)


def _pairs(options: Mapping[str, object]) -> str:
    return " ".join(f"{name} {value}" for name, value in options.items())


def _cbr(index: int, flow: Flow) -> list[str]:
    return [
        f"cbr {index} {flow.source} {flow.destination} {flow.rate_bps:.6f} {flow.packet_bytes}",
        f"start_cbr {_seconds(flow.start_ns)} {index}",
    ]


def _timetable(scenario: Scenario, paths: Paths) -> Iterator[str]:
    """Yield samples and end, each one nanosecond late: all events of that instant come first."""
    interval, end = scenario.interval_ns, scenario.duration_ns
    last = end // interval
    yield f"sample {_seconds(interval + 1)} 1 {interval} {last}"
    slowest = 0
    for n, i in enumerate(scenario.monitors):
        delay = scenario.directions[i].delay_ns
        slowest = max(slowest, delay)
        yield f"sample_monitor {_seconds(interval + delay + 1)} {n} 1 {interval} {last} {delay}"
    yield f"end {_seconds(end + 2)}"
    yield f"finish {_seconds(end + slowest + longest_transit_ns(scenario, paths) + 10**6)}"


def longest_transit_ns(scenario: Scenario, paths: Paths) -> int:
    """Return the longest time any packet can be under way: through full queues, on its path."""
    largest = max(max(flow.packet_bytes for flow in scenario.flows), _ACK_BYTES)
    longest = 0
    for there, _ in paths:
        total = 0
        for i in there:
            link = scenario.directions[i]
            queue = link.queue
            waiting = (queue.limit_packets + queue.device_queue_packets) * largest
            if queue.kind == "red":
                waiting = queue.limit_packets * max(largest, queue.settings["mean_bytes"])
            waiting = max(waiting, queue.limit_bytes) + 2 * largest
            total += link.delay_ns + int(waiting * 8e9 / link.rate_bps) + 1
        longest = max(longest, total)
    return longest
