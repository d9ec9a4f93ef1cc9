"""The guest's input: taps, a route for each flow, and a line for each thing to build.

A line is a word, then names and values; the guest reads them by name (guest/statement.h).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scenario import (
    UDP_HEADER_BYTES,
    Cake,
    Cbr,
    Change,
    CoDel,
    DropTail,
    Flow,
    FqCoDel,
    FqPie,
    Host,
    InputError,
    Link,
    ListedLoss,
    Pfifo,
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
#: The kernel's scale of CUBIC's beta, and its own beta on it (tcp_cubic.c).
CUBIC_BETA_SCALE, CUBIC_BETA = 1024, 717

Path = list[int]
Value = str | int | float


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
    changes = _change_lines(scenario)
    run, offload = scenario.run, scenario.host.segmentation_offload
    lines = [
        _line(
            "run",
            duration_ns=run.duration_ns,
            interval_ns=run.sampling_interval_ns,
            mtu=max(largest, ETHERNET_MTU_BYTES),
            nodes=len(scenario.nodes),
            links=len(scenario.links),
            routes=len(route_lines),
            flows=len(scenario.flows),
            monitors=len(scenario.monitors),
            changes=len(changes),
            offload=offload,
            device_queue=scenario.host.device_queue,
            most_receive_buffer=2 * tuned,
        )
    ]
    parameters = _host_parameters(scenario.host)
    for flow in scenario.flows:
        parameters |= _parameters(flow)
    for (module, name), value in sorted(parameters.items()):
        lines.append(_line("parameter", module=module, name=name, value=value))
    taps = _taps(scenario, [forth for forth, _ in paths])
    for link, tap in zip(scenario.links, taps, strict=True):
        lines.append(_line("link", a=link.a, b=link.b, taps=tap))
    lines += _queue_lines(scenario, largest)
    lines += route_lines
    for flow, (forth, _) in zip(scenario.flows, paths, strict=True):
        lines.append(_flow_line(flow, forth))
    for monitor in scenario.monitors:
        lines.append(_line("monitor", link=monitor.link, direction=monitor.hop % 2))
    lines += changes
    return "\n".join(lines) + "\n"


def _line(word: str, **values: Value) -> str:
    parts = [word]
    for name, value in values.items():
        text = value if isinstance(value, str) else repr(+value)  # a truth value as 0 or 1
        parts += [name, text]
    return " ".join(parts)


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


def _host_parameters(host: Host) -> dict[tuple[str, str], int]:
    """Return the parameters of `kernel/hosts.patch` that are not at their default."""
    given = {
        "jiffies_floor": int(host.loss_probe_floor == "2 jiffies"),
        "segment_memory": host.segment_memory_bytes or 0,
    }
    return {("tcp_output", name): value for name, value in given.items() if value}


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
            yield _queue_line(link, number, direction, largest)
            place = {"link": number, "direction": direction}
            loss, opportunities = link.losses[direction], link.opportunities[direction]
            if isinstance(loss, ListedLoss):
                listed = _comma_separated(loss.data_packets)
                yield _line("listed", **place, flow=loss.flow, data_packets=listed)
            if opportunities:
                yield _line("opportunities", **place, at_ms=_comma_separated(opportunities))


def _comma_separated(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _change_lines(scenario: Scenario) -> list[str]:
    """Return a line for each change and direction, with all values, in the order of time."""
    lines: list[tuple[int, str]] = []
    for number, link in enumerate(scenario.links):
        for change in link.changes:
            link = _changed(link, change)
            for direction in range(2):
                place = {"link": number, "direction": direction}
                line = _line("change", at_ns=change.at_ns, **place, **_passage(link, direction))
                lines.append((change.at_ns, line))
    return [line for _, line in sorted(lines, key=lambda entry: entry[0])]


def _changed(link: Link, change: Change) -> Link:
    return replace(
        link,
        rate_bps=link.rate_bps if change.rate_bps is None else change.rate_bps,
        delay_ns=link.delay_ns if change.delay_ns is None else change.delay_ns,
        loss_ab=link.loss_ab if change.loss_ab is None else RandomLoss(change.loss_ab),
        loss_ba=link.loss_ba if change.loss_ba is None else RandomLoss(change.loss_ba),
    )


def _passage(link: Link, direction: int) -> dict[str, Value]:
    """Return how packets pass a direction of a link; at a rate of 0 at once."""
    line_bps, shaper = link.rate_bps, link.shapers[direction]
    if link.opportunities[direction]:
        line_bps = 0
    if isinstance(shaper, TokenBucket):
        line_bps = shaper.line_rate_bps
    loss = link.losses[direction]
    probability = loss.probability if isinstance(loss, RandomLoss) else 0.0
    return {
        "rate_Bps": round(link.rate_bps / 8),
        "line_Bps": round(line_bps / 8),
        "delay_ns": link.delay_ns,
        "loss": round(probability * (2**32 - 1)),
    }


def _queue_line(link: Link, number: int, direction: int, largest: int) -> str:
    device_packets, discipline = _discipline(link.queues[direction])
    burst_bytes = device_packets * largest
    shaper = link.shapers[direction]
    if isinstance(shaper, TokenBucket):
        burst_bytes = shaper.burst_bytes
    if isinstance(link.queues[direction], Red):  # a bucket of its shaper holds a packet
        burst_bytes = max(burst_bytes, largest) + link.frame_bytes * device_packets
    # netem itself keeps the order where a rate and a delay never change, and with jitter.
    is_ordered = bool(link.opportunities[direction] or (link.changes and not link.jitter_ns))
    return _line(
        "queue",
        link=number,
        direction=direction,
        **_passage(link, direction),
        jitter_ns=link.jitter_ns,
        ordered=is_ordered,
        burst_bytes=burst_bytes,
        frame_bytes=link.frame_bytes,
        cuts=isinstance(shaper, TokenBucketFilter),
        **discipline,
    )


#: Disciplines whose settings the guest takes as they are, times in microseconds.
_DISCIPLINES: dict[type, str] = {
    Pfifo: "pfifo",
    CoDel: "codel",
    FqCoDel: "fq_codel",
    Pie: "pie",
    FqPie: "fq_pie",
    Cake: "cake",
}
#: What the guest does not take. PIE of Linux goes by its MTU: see README.md.
_LEFT_OUT = ("device_queue_packets", "mean_packet_bytes")


def _discipline(queue: Queue) -> tuple[int, dict[str, Value]]:
    """Return a queue's device queue in packets, and its kind and settings in the kernel's terms.

    The guest takes each setting by its name (`put` in guest/queue.c).
    """
    if isinstance(queue, DropTail):
        if queue.limit_packets is not None:
            return 0, {"kind": "pfifo", "limit_packets": queue.limit_packets}
        return 0, {"kind": "bfifo", "limit_bytes": queue.limit_bytes or 0}
    if isinstance(queue, Red):
        return queue.device_queue_packets, _red(queue)
    settings: dict[str, Value] = {"kind": _DISCIPLINES[type(queue)]}
    for name, value in vars(queue).items():
        if name.endswith("_ns"):
            settings[f"{name[:-3]}_us"] = value // 1000
        elif name not in _LEFT_OUT:
            settings[name] = value
    return queue.device_queue_packets, settings


def _red(queue: Red) -> dict[str, Value]:
    size = queue.mean_packet_bytes
    return {
        "kind": "red",
        "limit_packets": queue.limit_packets,
        "minimum_bytes": int(queue.minimum_threshold_packets * size),
        "maximum_bytes": int(queue.maximum_threshold_packets * size),
        "weight_halvings": round(-math.log2(queue.queue_weight)),
        "maximum_probability": queue.maximum_probability,
        "mean_packet_bytes": size,
        "ecn": queue.ecn,
    }


def _route_lines(
    scenario: Scenario, flow: Flow, number: int, paths: tuple[Path, Path]
) -> Iterator[str]:
    """Yield one route for every flow and hop; those at the ends hold the flow's TCP settings."""
    for to_source, path in enumerate(paths):
        for place, hop in enumerate(path):
            tcp = flow if place == 0 and isinstance(flow, Tcp) else None
            yield _line(
                "route",
                node=scenario.links[hop // 2].ends[hop % 2],
                link=hop // 2,
                flow=number,
                to_source=to_source,
                initial_window=tcp.initial_window_segments if tcp and not to_source else 0,
                minimum_rto_ms=tcp.minimum_rto_ns // 1_000_000 if tcp else 0,
                quick_ack=bool(tcp and to_source and tcp.delayed_ack_segments == 1),
                ecn=bool(tcp and tcp.ecn),
                sack=bool(tcp and tcp.sack),
                timestamps=bool(tcp and tcp.timestamps),
            )


def _flow_line(flow: Flow, forth: Path) -> str:
    first, last = forth[0], forth[-1]
    ends: dict[str, Value] = {
        "source": flow.source,
        "destination": flow.destination,
        "start_ns": flow.start_ns,
        "stop_ns": flow.stop_ns,
        "source_link": first // 2,
        "source_side": first % 2,
        "last_link": last // 2,
        "last_side": 1 - last % 2,
    }
    if isinstance(flow, Cbr):
        payload_bytes = flow.packet_bytes - UDP_HEADER_BYTES
        interval_ns = 8e9 * flow.packet_bytes / flow.rate_bps
        return _line("cbr", **ends, payload_bytes=payload_bytes, interval_ns=interval_ns)
    window, buffer = 0, 0
    if not tuned_window(flow):
        window = flow.maximum_window_bytes or 0
        buffer = 2 * window + BUFFER_SPARE_BYTES
    if flow.congestion_control not in CONTROLS:
        raise InputError(f"linux has no congestion control {flow.congestion_control!r}")
    return _line(
        "tcp",
        **ends,
        connect_ns=flow.connect_ns,
        control=CONTROLS[flow.congestion_control],
        segment_bytes=flow.segment_bytes,
        maximum_window=window,
        receive_buffer=buffer,
        sack=flow.sack,
        timestamps=flow.timestamps,
        ecn=flow.ecn,
        sampled=flow.socket_samples,
        transfer_bytes=flow.stop_after_bytes or 0,
    )
