"""The guest's plain numbers as flows.csv, series.csv and run.json (definitions: README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from scenario import Cbr, Scenario, Tcp

FLOW_COLUMNS = (
    "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,packets_sent,"
    "packets_received,packets_dropped,packets_in_flight,retransmissions,timeouts,loss_rate,"
    "delivery_ratio"
)
SERIES_COLUMNS = (
    "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,queue_packets,"
    "drops,retransmissions"
)
#: Further columns, where a flow has `socket_samples`.
SOCKET_COLUMNS = ",goodput_bps,delivery_rate_bps,pacing_rate_bps"
#: What the kernel calls no limit of pacing (`sk_pacing_rate`).
UNPACED = 2**64 - 1


def shortest(number: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def decimal_seconds(ns: int) -> str:
    """Return nanoseconds as exact decimal seconds."""
    text = f"{ns // 10**9}.{ns % 10**9:09d}".rstrip("0")
    return text.rstrip(".")


def _ratio(a: float, b: float) -> str:
    return "" if b == 0 else shortest(a / b)


class Results:
    """What the guest measured, cell by cell."""

    def __init__(self, text: str) -> None:
        self.flows: list[list[int]] = []
        self.samples: list[list[int]] = []
        self.control_dropped = 0
        for line in text.splitlines():
            kind, *numbers = line.split()
            if kind == "flow":
                self.flows.append([int(n) for n in numbers[1:]])
            elif kind in ("f", "m"):
                self.samples.append([int(n) for n in numbers])
            elif kind == "total":
                self.control_dropped = int(numbers[0])

    def total(self, column: int) -> int:
        """Return the sum over flows of a count."""
        return sum(flow[column] for flow in self.flows)


def flows_csv(scenario: Scenario, results: Results) -> str:
    """Return the table of flows."""
    transfers = any(isinstance(f, Tcp) and f.stop_after_bytes for f in scenario.flows)
    lines = [FLOW_COLUMNS + (",completion_time_s" if transfers else "")]
    for flow, (*numbers, complete_ns) in zip(scenario.flows, results.flows, strict=True):
        sent, received, dropped, again, ip_bytes, app_bytes, delay, p95, samples, rtt, timeouts = (
            numbers
        )
        # A transfer is active until its last byte has arrived.
        active_s = ((complete_ns or flow.stop_ns) - flow.start_ns) / 1e9
        cells = [
            flow.id,
            "cbr" if isinstance(flow, Cbr) else "tcp",
            shortest(ip_bytes * 8 / active_s),
            shortest(app_bytes * 8 / active_s),
            _ratio(delay / 1e9, received),
            shortest(p95 / 1e9) if received else "",
            _ratio(rtt / 1e6, samples),
            *(str(n) for n in (sent, received, dropped, sent - received - dropped)),
            str(again),
            str(timeouts),
            _ratio(dropped, sent),
            _ratio(received, sent),
            *([shortest(active_s) if complete_ns else ""] if transfers else []),
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def _flow_cells(segment_bytes: int, span_s: float, numbers: list[int]) -> str:
    ip_bytes, delay, received, drops, again, cwnd, ssthresh, rtt = numbers
    cells = [
        shortest(ip_bytes * 8 / span_s),
        str(cwnd * segment_bytes) if cwnd else "",
        str(ssthresh * segment_bytes) if ssthresh else "",
        shortest(rtt / 1e6) if rtt else "",
        _ratio(delay / 1e9, received),
        "",
        str(drops),
        str(again),
    ]
    return ",".join(cells)


def _socket_cells(span_s: float, numbers: list[int]) -> str:
    """Return what follows a flow's cells; rates that there are not are empty, as `ss` has them."""
    delivered, *rates = numbers
    shown = [shortest(8 * rate) if 0 < rate < UNPACED else "" for rate in rates]
    return ",".join(["", shortest(delivered * 8 / span_s), *shown])


def _series(scenario: Scenario, results: Results) -> Iterator[str]:
    sampled = any(isinstance(f, Tcp) and f.socket_samples for f in scenario.flows)
    empty = ",,," if sampled else ""
    yield SERIES_COLUMNS + (SOCKET_COLUMNS if sampled else "")
    interval_ns = scenario.run.sampling_interval_ns
    span_s = interval_ns / 1e9
    samples = iter(results.samples)
    for k in range(1, scenario.samples + 1):
        time = decimal_seconds(k * interval_ns)
        for flow in scenario.flows:
            segment_bytes = flow.segment_bytes if isinstance(flow, Tcp) else 0
            numbers = next(samples)
            cells = _flow_cells(segment_bytes, span_s, numbers[:8])
            more = _socket_cells(span_s, numbers[8:]) if numbers[8:] else empty
            yield f"{time},{flow.id},,{cells}{more}"
        for monitor in scenario.monitors:
            ip_bytes, packets, drops = next(samples)
            rate = shortest(ip_bytes * 8 / span_s)
            yield f"{time},,{scenario.name(monitor.hop)},{rate},,,,,{packets},{drops},{empty}"


def series_csv(scenario: Scenario, results: Results) -> str:
    """Return the table of samples."""
    return "\n".join(_series(scenario, results)) + "\n"


def run_json(scenario: Scenario, results: Results, version: str) -> str:
    """Return what was run and its totals; nothing of the machine it ran on."""
    sent, received, dropped = (results.total(column) for column in range(3))
    document = {
        "engine": "linux",
        "version": version,
        "scenario": scenario.sha256[:16],
        "scenario_sha256": scenario.sha256,
        "duration_s": scenario.run.duration_ns / 1e9,
        "seed": scenario.run.seed,
        "data_packets_sent": sent,
        "data_packets_received": received,
        "data_packets_dropped": dropped,
        "data_packets_in_flight": sent - received - dropped,
        "control_packets_dropped": results.control_dropped,
    }
    return json.dumps(document, indent=2) + "\n"
