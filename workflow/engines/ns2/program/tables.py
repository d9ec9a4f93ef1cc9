"""The result files, as text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agents import SIMULATOR_VERSION, agent_of
from metrics import FlowCount, FlowSample
from reader import Reader
from scenario import Cbr, Flow, Red, Scenario, Tcp

FLOWS_HEAD = (
    "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
    "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
    "delivery_ratio"
)
SERIES_HEAD = (
    "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
    "drops,retransmissions"
)
#: Further columns, where a flow has `socket_samples`: ns-2's agents estimate no rates.
SOCKET_HEAD = ",goodput_bps,delivery_rate_bps,pacing_rate_bps"
TRACE_HEAD = "time_s,flow,event,sequence,cwnd_bytes,ssthresh_bytes"


def shortest(value: float) -> str:
    """Return the shortest text that reads back as `value`."""
    return repr(float(value)).removesuffix(".0")


def ratio(a: float, b: float) -> str:
    """Return a / b, or nothing where b is zero."""
    return shortest(a / b) if b else ""


def decimal_s(ns: int) -> str:
    """Return nanoseconds as seconds, without rounding and without trailing zeros."""
    return f"{ns // 10**9}.{ns % 10**9:09d}".rstrip("0").removesuffix(".")


def flows_csv(scenario: Scenario, reader: Reader) -> str:
    """Return flows.csv."""
    rows = zip(scenario.flows, reader.flows, strict=True)
    lines = [FLOWS_HEAD, *(_flow_line(flow, count) for flow, count in rows)]
    if any(count.wanted is not None for count in reader.flows):
        times = [
            _completion(flow, count)
            for flow, count in zip(scenario.flows, reader.flows, strict=True)
        ]
        lines = [",".join(pair) for pair in zip(lines, ["completion_time_s", *times], strict=True)]
    return "\n".join(lines) + "\n"


def _active_s(flow: Flow, count: FlowCount) -> float:
    """Return how long a flow is active: a transfer until its last byte has arrived."""
    stop_ns = flow.stop_ns if count.completed_us is None else 1000 * count.completed_us
    return (stop_ns - flow.start_ns) / 1e9


def _completion(flow: Flow, count: FlowCount) -> str:
    return "" if count.completed_us is None else shortest(_active_s(flow, count))


def _flow_line(flow: Flow, count: FlowCount) -> str:
    active_s = _active_s(flow, count)
    fields = [
        flow.id,
        "cbr" if isinstance(flow, Cbr) else "tcp",
        shortest(count.counted_bytes * 8 / active_s),
        shortest(_delivered(flow, count) * flow.payload_bytes * 8 / active_s),
        ratio(count.delay_us / 1e6, count.received),
        shortest(count.delay_quantile_us(0.95) / 1e6) if count.received else "",
        ratio(count.rtt_us / 1e6, count.rtt_samples),
        str(count.sent),
        str(count.received),
        str(count.dropped),
        str(count.in_flight),
        str(count.retransmissions),
        str(count.timeouts),
        ratio(count.dropped, count.sent),
        ratio(count.received, count.sent),
    ]
    return ",".join(fields)


def _delivered(flow: Flow, count: FlowCount) -> int:
    """Return packets for the application: all of CBR's, in order or not."""
    return count.counted if isinstance(flow, Cbr) else count.delivered_packets


def series_csv(scenario: Scenario, reader: Reader) -> Iterator[str]:
    """Yield series.csv piece by piece."""
    sampled = {f.id for f in scenario.flows if isinstance(f, Tcp) and f.socket_samples}
    yield SERIES_HEAD + (SOCKET_HEAD if sampled else "") + "\n"
    empty = ",,," if sampled else ""
    interval_s = scenario.run.sampling_interval_ns / 1e9
    monitors = [scenario.name(monitor.hop) for monitor in scenario.monitors]
    for number, sample in enumerate(reader.samples, start=1):
        now_ns = number * scenario.run.sampling_interval_ns
        time = decimal_s(now_ns)
        for flow, row in zip(scenario.flows, sample.flows, strict=True):
            goodput_bps = row.interval.delivered * flow.payload_bytes * 8 / interval_s
            more = f",{shortest(goodput_bps)},," if flow.id in sampled else empty
            yield f"{time},{flow.id},,{_flow_row(flow, row, now_ns, interval_s)}{more}\n"
        for name, link in zip(monitors, sample.links, strict=True):
            rate = shortest(link.left_bytes * 8 / interval_s)
            yield f"{time},,{name},{rate},,,,,{link.waiting},{link.drops},{empty}\n"


def _flow_row(flow: Flow, row: FlowSample, now_ns: int, interval_s: float) -> str:
    interval = row.interval
    cwnd = ssthresh = rtt = ""
    if isinstance(flow, Tcp) and row.connected and now_ns <= flow.stop_ns:
        segment = flow.segment_bytes
        cwnd = str(round(row.cwnd * segment))
        ssthresh = FlowCount.bytes_or_empty(row.ssthresh, segment)
        rtt = shortest(row.rtt_us / 1e6) if row.rtt_us else ""
    rate = shortest(interval.counted_bytes * 8 / interval_s)
    delay = ratio(interval.delay_us / 1e6, interval.received)
    return f"{rate},{cwnd},{ssthresh},{rtt},{delay},,{interval.drops},{interval.retransmissions}"


def run_json(scenario: Scenario, reader: Reader) -> str:
    """Return run.json: what ran, its totals, and what the agents do not do as asked."""
    flows = reader.flows
    document = {
        "engine": "ns2",
        "version": SIMULATOR_VERSION,
        "scenario": scenario.sha256[:16],
        "scenario_sha256": scenario.sha256,
        "duration_s": scenario.run.duration_ns / 1e9,
        "seed": scenario.run.seed,
        "agents": {f.id: agent_of(f).title for f in scenario.flows if isinstance(f, Tcp)},
        "traits": _traits(scenario, flows),
        "data_packets_sent": sum(flow.sent for flow in flows),
        "data_packets_received": sum(flow.received for flow in flows),
        "data_packets_dropped": sum(flow.dropped for flow in flows),
        "data_packets_in_flight": sum(flow.in_flight for flow in flows),
        "control_packets_dropped": reader.control_dropped,
    }
    return json.dumps(document, indent=2) + "\n"


def _traits(scenario: Scenario, flows: list[FlowCount]) -> list[str]:
    """Return where ns-2's agents and queues differ from the scenario's words."""
    traits = set()
    if any(flow.syns_again for flow in flows):
        traits.add("a SYN sent again lowers ssthresh to two segments and counts as a timeout")
    for flow in scenario.flows:
        if isinstance(flow, Cbr):
            continue
        agent = agent_of(flow)
        if not agent.syn:
            bare = ", without headers" if agent.bare_first else ""
            traits.add(f"{agent.title} has no handshake: its first packet carries data{bare}")
        if agent.name == "Vegas" and flow.limited_transmit:
            traits.add(f"{agent.title} has no limited transmit")
        if (flow.stop_after_bytes or 0) % flow.segment_bytes:
            traits.add("a transfer's last segment is a whole one")
    if any(isinstance(queue, Red) for link in scenario.links for queue in link.queues):
        traits.add("Queue/RED has no device queue below it")
    return sorted(traits)
