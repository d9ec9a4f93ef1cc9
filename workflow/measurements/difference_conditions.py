"""The experiments on which engines are compared: paths, queues and flows, and what theory expects.

A condition names the variants that it is for, the runs of a variant on an engine, and the metrics
that it takes from their results.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from replication.study.scenario import TCP_IP_HEADER_BYTES, TIMESTAMPS_BYTES

from measurements.bench import Result, mean
from measurements.scenarios import (
    Part,
    document,
    droptail,
    link,
    marking_threshold,
    pie,
    single_link,
    tcp,
)

SEGMENT = 1448
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
MODERN: Part = {"sack": True, "limited_transmit": True}
CLASSIC: Part = {"sack": False, "limited_transmit": False}
#: Linux's only Reno replaces all but Tahoe.
LINUX = {"newreno": "linuxreno", "reno": "linuxreno"}
BEFORE_SACK = ("tahoe", "reno", "newreno", "vegas", "westwood")
#: The variants of the papers, and those that only regions have.
PAPERS = (
    *("tahoe", "reno", "newreno", "sack", "vegas", "linuxreno", "cubic", "highspeed"),
    *("westwood", "westwood_plus", "bbr"),
)
FURTHER = ("bic", "htcp", "hybla", "illinois", "ledbat", "lp", "scalable", "veno", "yeah")
VARIANTS = (*PAPERS, *FURTHER, "dctcp")
RENO = {"reno", "newreno", "sack", "linuxreno"}
#: They count acknowledged segments, not acknowledgements, so delayed ACKs change nothing.
COUNT_SEGMENTS = {"linuxreno", "cubic"}
LEAST_RTO_S = 0.2
#: A larger part of Padhye's timeouts is no law for random losses.
MOST_WAITING = 0.25
#: The bottleneck's rate at each round trip; under loss, all but three far exceed the window.
RATES_BPS = {0.01: 1e7, 0.1: 4e6, 0.9: 1e6}
PIPE_SEGMENTS, SMALL_PIPE_SEGMENTS = 500, 32
FILL_ANY_PIPE = {"bbr", "westwood", "westwood_plus"}
DURATIONS_S = {0.01: 10, 0.1: 60, 0.9: 240}
#: The large path, where a window has hundreds of segments.
LARGE_BPS, LARGE_RTT_S, LARGE_S = 1e8, 0.1, 10
#: RFC 3649, appendix B: largest window, its increase in segments, and its decrease.
HIGHSPEED = (
    (38, 1, 0.50),
    (118, 2, 0.44),
    (221, 3, 0.41),
    (347, 4, 0.38),
    (495, 5, 0.37),
    (663, 6, 0.35),
    (851, 7, 0.34),
    (1058, 8, 0.33),
)
#: Fewer lost packets make no ratio.
LEAST_LOSSES = 50


def flow_of(variant: str, engine: str, delayed: bool, name: str = "t", **changes: Any) -> Part:
    """Return a flow of a variant, with the engine's fixed settings."""
    classic = variant in BEFORE_SACK
    settings = CLASSIC if classic else MODERN
    control = "newreno" if variant == "sack" else variant
    prr = not classic
    if engine == "linux":
        settings = settings | {"limited_transmit": True, "clock_granularity_s": 0.004}
        control, prr = LINUX.get(control, control), True
    if prr and engine != "ns2":
        settings = settings | {"recovery": "prr"}
    fixed = {
        "segment_bytes": SEGMENT,
        "timestamps": engine != "ns2",
        "initial_window_segments": 10,
        "minimum_rto_s": LEAST_RTO_S,
        "initial_rto_s": 1,
        "delayed_ack_timeout_s": 0.04,
        "delayed_ack_segments": 2 if delayed else 1,
    }
    return tcp(name, control, **fixed | settings | changes)


def bdp_packets(rate_bps: float, rtt_s: float) -> int:
    """Return the packets of one bandwidth-delay product."""
    return max(round(rate_bps * rtt_s / PACKET_BITS), 2)


def after(result: Result, metric: str, start_s: float, flow: str = "t") -> float:
    """Return the mean of a flow's samples after a time."""
    return mean(result.samples(metric, flow=flow, after_s=start_s))


def start_up(result: Result, rtt_s: float, duration_s: float) -> dict[str, float]:
    """Return the window at the end of slow start, and the losses that it causes.

    Slow start ends when a threshold appears, for algorithms without one at a quarter of the run.
    What it has overfilled is lost and repaired within the next round trips.
    """
    rows = [row for row in result.series if row["flow"] == "t" and row["cwnd_bytes"]]
    ends = (float(row["time_s"]) for row in rows if row["ssthresh_bytes"])
    end_s = next(ends, duration_s / 4)
    windows = [float(row["cwnd_bytes"]) for row in rows if float(row["time_s"]) <= end_s]
    repaired_s = end_s + max(1, 5 * rtt_s)
    until = [row for row in result.series if row["flow"] == "t"]
    until = [row for row in until if float(row["time_s"]) <= repaired_s]
    return {
        "startup_window_segments": max(windows) / SEGMENT,
        "startup_drops": sum(int(row["drops"]) for row in until),
        "startup_retransmissions": sum(int(row["retransmissions"]) for row in until),
    }


@dataclass(frozen=True)
class SingleFlow:
    """One flow at a full buffer of one bandwidth-delay product (no loss), or under random loss."""

    loss: float
    rtt_s: float
    delayed: bool
    is_large: bool = False

    def __str__(self) -> str:
        path = f"loss {self.loss * 100:g} %" if self.loss else "buffer 1 BDP"
        where = f"{self.rtt_s * 1000:g} ms"
        where = f"{LARGE_BPS / 1e6:g} Mbit/s x {where}" if self.is_large else where
        acks = "delayed ACKs" if self.delayed else "every segment acknowledged"
        return f"{path}, {where}, {acks}"

    @property
    def variants(self) -> tuple[str, ...]:
        """DCTCP needs a queue that marks; only regions have the further ones, so one path does."""
        if self.loss == 0.0001:
            return ("linuxreno", "cubic", "highspeed")
        if self.rtt_s != 0.1 or (self.is_large and not self.loss):
            return PAPERS
        return (*PAPERS, *FURTHER)

    @property
    def duration_s(self) -> float:
        """Duration of a run: under loss, until tens of Reno's packets are lost."""
        if self.is_large:
            return LARGE_S
        return DURATIONS_S[self.rtt_s] * (2 if self.loss else 1)

    def rate_bps(self, variant: str) -> float:
        """Return the link's rate."""
        if self.is_large:
            return LARGE_BPS
        pipe = SMALL_PIPE_SEGMENTS if variant in FILL_ANY_PIPE else PIPE_SEGMENTS
        pipe *= 4 if self.loss == 0.0001 else 1
        return pipe * PACKET_BITS / self.rtt_s if self.loss else RATES_BPS[self.rtt_s]

    def runs(self, variant: str, engine: str) -> list[Part]:
        """Return one scenario."""
        rate_bps = self.rate_bps(variant)
        duration_s = self.duration_s
        loss = {"kind": "random", "probability": self.loss} if self.loss else None
        path: Part = {"rate_bps": rate_bps, "delay_s": self.rtt_s / 2, "loss": loss}
        queue = droptail(bdp_packets(rate_bps, self.rtt_s) * (2 if self.loss else 1))
        # Slow start doubles the window in a round trip.
        interval_s = duration_s / 1000 if self.loss else min(duration_s / 1000, self.rtt_s / 10)
        run: Part = {"duration_s": duration_s, "sampling_interval_s": interval_s}
        flow = flow_of(variant, engine, self.delayed, stop_s=duration_s)
        return [single_link([flow], **path, queue=queue, **run)]

    def metrics(self, results: list[Result]) -> dict[str, float]:
        """Return what the flow gets after a quarter of the run, and at a full buffer its start."""
        (result,), start_s = results, self.duration_s / 4
        values = {
            "throughput_bps": after(result, "throughput_bps", start_s),
            "timeouts": result.number("t", "timeouts"),
        }
        if self.loss:
            lost = result.number("t", "packets_dropped")
            if lost >= LEAST_LOSSES:
                sent_again = result.number("t", "retransmissions")
                values["retransmissions_per_loss"] = sent_again / lost
            return values
        values["rtt_s"] = after(result, "rtt_s", start_s)
        values["packets_dropped"] = sum(result.samples("drops", flow="t", after_s=start_s))
        values["retransmissions"] = sum(
            result.samples("retransmissions", flow="t", after_s=start_s)
        )
        return values | start_up(result, self.rtt_s, self.duration_s)

    def law(self, variant: str, metric: str) -> float:
        """Return what theory expects of a metric; NaN where there is none, or theories differ."""
        if metric == "retransmissions_per_loss":
            return 1
        rate_bps = self.rate_bps(variant)
        empty_s = self.rtt_s + (PACKET_BITS + 8 * TCP_IP_HEADER_BYTES) / rate_bps
        if metric == "rtt_s" and not self.is_large:
            # At a constant rate the window's square grows evenly, from one to two products.
            full = {"bbr": 1, **dict.fromkeys(RENO, 2 / 3 * (8 - 1) / (4 - 1))}
            return full.get(variant, math.nan) * empty_s
        if metric != "throughput_bps":
            return math.nan
        if not self.loss:
            return rate_bps if variant not in ("tahoe", "vegas", "ledbat", "lp") else math.nan
        return self._under_loss(variant, rate_bps, empty_s)

    def _under_loss(self, variant: str, rate_bps: float, empty_s: float) -> float:
        """Return a rate by the response function, with the timeouts of Padhye et al. 1998."""
        if variant == "bbr":
            return rate_bps * (1 - self.loss)
        p = self.loss
        acked = 2 if self.delayed and variant not in COUNT_SEGMENTS else 1
        window = mean_window(variant, p, acked, self.rtt_s)
        if window * PACKET_BITS / empty_s > rate_bps:
            return math.nan
        without_s = empty_s / window
        # Equation 30: the time that timeouts add per packet if losses of a round come together.
        # Random losses do not, so it is no law where it adds a quarter.
        waits = min(1, 3 * math.sqrt(3 * acked * p / 8)) * p * (1 + 32 * p * p)
        packet_s = without_s + max(LEAST_RTO_S, empty_s) * waits
        return PACKET_BITS / packet_s if packet_s < (1 + MOST_WAITING) * without_s else math.nan


def mean_window(variant: str, loss: float, acked: int, rtt_s: float) -> float:
    """Return the mean window in segments by the variant's response function; NaN without one."""
    reno = math.sqrt(3 / (2 * acked * loss))  # Mathis et al. 1997
    if variant in RENO:
        return reno
    if variant == "cubic":
        cubic = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (rtt_s / loss) ** 0.75
        # RFC 9438, section 5.1; the window is above both functions where they are close.
        return max(reno, cubic) if max(reno, cubic) > 1.25 * min(reno, cubic) else math.nan
    if variant == "highspeed" and loss <= 0.001 and acked == 1:
        return _highspeed_window(loss)
    if variant == "scalable" and loss <= 0.001 and acked == 1:
        return 0.08 / loss  # Kelly 2003, section 3: a of 0.01 and b of 0.125
    return math.nan


def _highspeed_window(loss: float) -> float:
    """Return the mean of HighSpeed's sawtooth by the table of RFC 3649, appendix B.

    Every engine has the table. It rounds the increase up, to 2 segments above a window of 38. So
    the mean is 59 at a loss of 0.001 and 304 at 0.0001; the formula of section 5 gives 38 and 263.
    """
    window = mean_of_cycle = 200.0
    for _ in range(60):
        packets, trips = 0.0, 0
        while packets < 1 / loss:
            packets, trips = packets + window, trips + 1
            window += _highspeed_row(window)[1]
        mean_of_cycle = packets / trips
        window *= 1 - _highspeed_row(window)[2]
    return mean_of_cycle


def _highspeed_row(window: float) -> tuple[int, int, float]:
    return next(row for row in HIGHSPEED if window <= row[0])


@dataclass(frozen=True)
class BehindPie:
    """One flow behind PIE at its target of 15 ms."""

    rate_bps: float = 1e7
    rtt_s: float = 0.1
    duration_s: float = 30
    variants: ClassVar = ("newreno", "linuxreno", "cubic")

    def __str__(self) -> str:
        return f"PIE 15 ms, {self.rate_bps / 1e6:g} Mbit/s x {self.rtt_s * 1000:g} ms, delayed ACKs"

    def runs(self, variant: str, engine: str) -> list[Part]:
        """Return one scenario."""
        flow = flow_of(variant, engine, True, stop_s=self.duration_s)
        path: Part = {"rate_bps": self.rate_bps, "delay_s": self.rtt_s / 2, "queue": pie()}
        run: Part = {"duration_s": self.duration_s, "sampling_interval_s": self.rtt_s / 10}
        return [single_link([flow], **path, **run)]

    def metrics(self, results: list[Result]) -> dict[str, float]:
        """Return rate and losses after a quarter of the run, and its start."""
        (result,), start_s = results, self.duration_s / 4
        return {
            "throughput_bps": after(result, "throughput_bps", start_s),
            "queue_packets": mean(result.queue(after_s=start_s)),
            "packets_dropped": sum(result.samples("drops", flow="t", after_s=start_s)),
            "retransmissions": sum(result.samples("retransmissions", flow="t", after_s=start_s)),
            "timeouts": result.number("t", "timeouts"),
            **start_up(result, self.rtt_s, self.duration_s),
        }

    def law(self, variant: str, metric: str) -> float:
        """No theory."""
        return math.nan


@dataclass(frozen=True)
class UnequalRoundTrips:
    """Two flows of one variant; the access links delay each packet by up to one transmission."""

    rate_bps: float = 5e6
    rtts_s: tuple[float, float] = (0.04, 0.076)
    jitter_s: float = 0.0024
    duration_s: float = 60
    seeds: int = 3
    variants: ClassVar = ("newreno", "linuxreno", "cubic", "bbr")

    def __str__(self) -> str:
        trips = " and ".join(f"{rtt_s * 1000:g}" for rtt_s in self.rtts_s)
        return f"two flows, {trips} ms, {self.rate_bps / 1e6:g} Mbit/s, with jitter, delayed ACKs"

    def runs(self, variant: str, engine: str) -> list[Part]:
        """Return a scenario for each seed."""
        return [self._run(variant, engine, seed) for seed in range(1, self.seeds + 1)]

    def _run(self, variant: str, engine: str, seed: int) -> Part:
        queue = droptail(bdp_packets(self.rate_bps, mean(self.rtts_s)))
        wire = link("wire", "r0", "r1", self.rate_bps, 0.001, queue_ab=queue)
        links = [wire, link("exit", "r1", "d0", 1e9, 0.001)]
        flows = []
        for place, rtt_s in enumerate(self.rtts_s):
            delay_s = rtt_s / 2 - 0.002 - self.jitter_s / 2
            links.append(
                link(f"in{place}", f"s{place}", "r0", 1e9, delay_s, jitter_s=self.jitter_s)
            )
            ends = {"source": f"s{place}", "start_s": 0.5 * place, "stop_s": self.duration_s}
            flows.append(flow_of(variant, engine, True, f"t{place}", **ends))
        run: Part = {"duration_s": self.duration_s, "sampling_interval_s": 0.1, "seed": seed}
        return document(["s0", "s1", "r0", "r1", "d0"], links, flows, **run)

    def metrics(self, results: list[Result]) -> dict[str, float]:
        """Return the ratio of mean rates after a quarter, and the timeouts of all runs."""
        start_s = self.duration_s / 4
        short = mean([after(run, "throughput_bps", start_s, flow="t0") for run in results])
        long = mean([after(run, "throughput_bps", start_s, flow="t1") for run in results])
        timeouts = 0.0
        for run in results:
            timeouts += sum(run.number(name, "timeouts") for name in run.flows)
        return {"throughput_bps": short + long, "rate_ratio": short / long, "timeouts": timeouts}

    def law(self, variant: str, metric: str) -> float:
        """Return the link's rate; ratios have a range by theory, not a value."""
        return self.rate_bps if metric == "throughput_bps" else math.nan


@dataclass(frozen=True)
class DctcpFlows:
    """Several DCTCP flows behind a queue that marks beyond a threshold."""

    rtt_s: float
    threshold: int
    flows: int = 8
    rate_bps: float = 1e8
    duration_s: float = 10
    variants: ClassVar = ("dctcp",)

    def __str__(self) -> str:
        path = f"{self.rate_bps / 1e6:g} Mbit/s x {self.rtt_s * 1000:g} ms"
        return f"{self.flows} flows, marks beyond {self.threshold} packets, {path}, delayed ACKs"

    def runs(self, variant: str, engine: str) -> list[Part]:
        """Return one scenario, whose flows start within a tenth of a second of each other."""
        flows = []
        for place in range(self.flows):
            times = {"start_s": 0.0371 * place, "stop_s": self.duration_s}
            flows.append(flow_of(variant, engine, True, f"t{place}", ecn=True, **times))
        path: Part = {"rate_bps": self.rate_bps, "delay_s": self.rtt_s / 2}
        run: Part = {"duration_s": self.duration_s, "sampling_interval_s": self.rtt_s / 4}
        # Linux's threshold is in bytes.
        queue = marking_threshold(self.threshold)
        queue |= {"mean_packet_bytes": SEGMENT + TCP_IP_HEADER_BYTES + TIMESTAMPS_BYTES}
        return [single_link(flows, **path, queue=queue, **run)]

    def metrics(self, results: list[Result]) -> dict[str, float]:
        """Return the sum of rates, the least flow's share, the queue, losses and timeouts."""
        (result,), start_s = results, self.duration_s / 4
        rates = [after(result, "throughput_bps", start_s, flow=name) for name in result.flows]
        return {
            "throughput_bps": sum(rates),
            "least_share": min(rates) / mean(rates),
            "queue_packets": mean(result.queue(after_s=start_s)),
            "packets_dropped": sum(result.number(n, "packets_dropped") for n in result.flows),
            "timeouts": sum(result.number(name, "timeouts") for name in result.flows),
        }

    def law(self, variant: str, metric: str) -> float:
        """Return the link's rate and an equal share."""
        return {"throughput_bps": self.rate_bps, "least_share": 1}.get(metric, math.nan)


#: An experiment that engines are compared by.
Condition = SingleFlow | BehindPie | UnequalRoundTrips | DctcpFlows
CONDITIONS: list[Condition] = [
    BehindPie(),
    UnequalRoundTrips(),
    DctcpFlows(0.01, 20),
    DctcpFlows(0.04, 20),
    DctcpFlows(0.04, 65),
    SingleFlow(0.05, 0.1, True, is_large=True),
    *(SingleFlow(loss, 0.1, True) for loss in (0, 0.001, 0.01, 0.05)),
    *(SingleFlow(loss, 0.1, False) for loss in (0, 0.0001, 0.001, 0.01, 0.05)),
    *(SingleFlow(loss, 0.01, True) for loss in (0, 0.01, 0.05)),
    *(SingleFlow(loss, 0.01, False) for loss in (0, 0.01, 0.05)),
    *(SingleFlow(loss, 0.9, True) for loss in (0, 0.01, 0.05)),
    # ns-3 takes ten seconds or more for each of them.
    SingleFlow(0, 0.1, True, is_large=True),
]
