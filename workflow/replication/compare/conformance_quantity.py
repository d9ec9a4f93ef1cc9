"""Quantities of the conformance checks: one number from the runs of canonical scenarios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from replication.measure.cwnd import FloatArray, find_reductions
from replication.measure.feature import FlowSeries, feature
from replication.measure.statistic import jain_index
from replication.study.scenario import TCP_IP_HEADER_BYTES, Scenario


@dataclass(frozen=True)
class ObservedRun:
    """One run.

    Attributes
    ----------
    scenario
        What was run; its first link is the one that is monitored.
    flows
        flows.csv, indexed by flow.
    series
        series.csv.
    """

    scenario: Scenario
    flows: pd.DataFrame
    series: pd.DataFrame

    @property
    def rate_bps(self) -> float:
        """Rate of the link."""
        return self.scenario.links[0].rate_bps

    @property
    def rtt_s(self) -> float:
        """Round trip of a data packet and its acknowledgement on the empty link."""
        bits = 8 * (self.packet_bytes + TCP_IP_HEADER_BYTES)
        return 2 * self.scenario.links[0].delay_s + bits / self.rate_bps

    @property
    def packet_bytes(self) -> int:
        """IP size of the first flow's data packets (timestamps off)."""
        return self.scenario.flows[0].packet_bytes

    @property
    def first(self) -> str:
        """Id of the first flow."""
        return self.scenario.flows[0].id

    def total(self, column: str) -> float:
        """Return a number of flows.csv of the first flow."""
        return float(self.flows[column].to_numpy(dtype=float)[0])

    def samples(self, column: str, flow: str = "", after_s: float = 0.0) -> FloatArray:
        """Return the samples of a flow, or of the link, after a time; gaps left out."""
        rows = self.series[self.series["flow"] == flow]
        values = rows.loc[rows["time_s"] > after_s, column].to_numpy(dtype=float)
        return np.asarray(values[np.isfinite(values)], dtype=np.float64)

    def window(self) -> FlowSeries:
        """Return the first flow's samples as features are taken from."""
        rows = self.series[self.series["flow"] == self.first]
        segment = self.packet_bytes - TCP_IP_HEADER_BYTES
        return FlowSeries(
            time_s=rows["time_s"].to_numpy(dtype=float),
            cwnd_segments=rows["cwnd_bytes"].to_numpy(dtype=float) / segment,
            ssthresh_segments=rows["ssthresh_bytes"].to_numpy(dtype=float) / segment,
            rtt_s=rows["rtt_s"].to_numpy(dtype=float),
            throughput_bps=rows["throughput_bps"].to_numpy(dtype=float),
        )


Runs = Sequence[ObservedRun]


@dataclass(frozen=True)
class CheckQuantity:
    """A quantity: its unit, what it is, and how it is taken from runs after a time in s."""

    unit: str
    description: str
    measure: Callable[[Runs, float], float]


def _throughput(runs: Runs, after_s: float) -> float:
    return _mean(runs[0].samples("throughput_bps", runs[0].first, after_s))


def _utilisation(runs: Runs, after_s: float) -> float:
    return _throughput(runs, after_s) / runs[0].rate_bps


def _of_window(name: str) -> Callable[[Runs, float], float]:
    return lambda runs, after_s: feature(name, runs[0].window())


def _growth(runs: Runs, after_s: float) -> float:
    known = runs[0].window().known
    steady = known.steady_cwnd
    step = runs[0].scenario.sampling_interval_s / runs[0].rtt_s
    return float(np.median(np.diff(steady)) / step) if steady.size > 1 else np.nan


def _period(runs: Runs, after_s: float) -> float:
    known = runs[0].window().known
    found = find_reductions(known.steady_cwnd)
    times = known.time_s[known.steady][found]
    return float(np.diff(times).mean()) if times.size > 1 else np.nan


def _segments_per_rtt(run: ObservedRun) -> float:
    return run.total("goodput_bps") / (8 * (run.packet_bytes - TCP_IP_HEADER_BYTES)) * run.rtt_s


def _mathis(runs: Runs, after_s: float) -> float:
    return _segments_per_rtt(runs[0]) * float(np.sqrt(runs[0].total("loss_rate")))


def _exponent(runs: Runs, after_s: float) -> float:
    losses = np.log([run.total("loss_rate") for run in runs])
    rates = np.log([_segments_per_rtt(run) for run in runs])
    return float(np.polyfit(losses, rates, 1)[0])


def _jain(runs: Runs, after_s: float) -> float:
    flows = [flow.id for flow in runs[0].scenario.flows]
    return jain_index([_mean(runs[0].samples("throughput_bps", f, after_s)) for f in flows])


def _queue(runs: Runs, after_s: float) -> float:
    return _mean(runs[0].samples("queue_packets", after_s=after_s))


def _wait(runs: Runs, after_s: float) -> float:
    return _queue(runs, after_s) * 8 * runs[0].packet_bytes / runs[0].rate_bps


def _unaccounted(runs: Runs, after_s: float) -> float:
    missing = 0.0
    for run in runs:
        counted = run.flows[["packets_received", "packets_dropped", "packets_in_flight"]]
        missing += float((run.flows["packets_sent"] - counted.sum(axis=1)).abs().sum())
    return missing


def _total(column: str) -> Callable[[Runs, float], float]:
    return lambda runs, after_s: runs[0].total(column)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else np.nan


#: By name; all but the last and the exponent are of one run, and of its first flow or its link.
QUANTITIES: dict[str, CheckQuantity] = {
    "throughput_bps": CheckQuantity("bit/s", "mean of the sampled throughput", _throughput),
    "utilisation": CheckQuantity(
        "1", "mean of the sampled throughput over the rate of the link", _utilisation
    ),
    "rtt_mean_s": CheckQuantity("s", "mean round-trip time of the run", _total("rtt_mean_s")),
    "delay_mean_s": CheckQuantity("s", "mean one-way delay of the run", _total("delay_mean_s")),
    "loss_rate": CheckQuantity("1", "packets dropped over packets sent", _total("loss_rate")),
    "slow_start_growth": CheckQuantity(
        "1", "factor of the window's growth a round trip", _of_window("slow_start_growth")
    ),
    "growth_per_rtt_segments": CheckQuantity(
        "segments", "median growth of the window a round trip after start-up", _growth
    ),
    "sawtooth_depth": CheckQuantity(
        "1", "window after a reduction over the peak before it", _of_window("sawtooth_depth")
    ),
    "sawtooth_period_s": CheckQuantity("s", "mean time between window reductions", _period),
    "mathis_constant": CheckQuantity(
        "1", "segments delivered a round trip times the root of the loss rate", _mathis
    ),
    "loss_exponent": CheckQuantity("1", "slope of log(goodput) against log(loss rate)", _exponent),
    "jain_index": CheckQuantity("1", "Jain's index of the flows' mean throughput", _jain),
    "queue_mean_packets": CheckQuantity("packets", "mean length of the queue", _queue),
    "queue_wait_mean_s": CheckQuantity(
        "s", "mean length of the queue times the transmission of a packet", _wait
    ),
    "unaccounted_packets": CheckQuantity(
        "packets", "packets neither received, dropped nor in flight, over all flows", _unaccounted
    ),
}
