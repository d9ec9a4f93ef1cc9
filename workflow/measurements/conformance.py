"""Conformance: what every engine must show in the canonical scenarios of conformance.yaml.

`make measurements` runs them on every engine and writes data/conformance.csv, which the report
shows.
"""

import itertools
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from replication.base.files import read_yaml
from replication.base.table import CONFORMANCE, CONFORMANCE_COLUMNS
from replication.engines.catalogue import ENGINES
from replication.metrics.cwnd import FloatArray, find_reductions
from replication.metrics.feature import FlowSeries, feature
from replication.metrics.statistic import jain_index
from replication.simulate.process import written_version
from replication.study.scenario import TCP_IP_HEADER_BYTES, Scenario

from measurements.bench import ROOT, Bench, Result, program
from measurements.scenarios import Part, document, droptail, link, listed

#: A row of the table.
Row = dict[str, Any]

TABLE = ROOT / CONFORMANCE
DOCUMENT = read_yaml(Path(__file__).with_suffix(".yaml"))
RECOVERY = DOCUMENT["recovery"]
SEGMENT: int = DOCUMENT["tcp"]["segment_bytes"]
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
ACCESS_BPS = 1e9
#: The window of BBR while it looks for the least round trip.
PROBE_RTT_SEGMENTS = 4


class Observed:
    """One run: its scenario, what was written, and what its first link gives of TCP's packets."""

    def __init__(self, scenario: Scenario, result: Result) -> None:
        self.scenario, self.result = scenario, result
        self.flows = pd.read_csv(result.directory / "flows.csv", index_col="flow")
        self.series = pd.read_csv(result.directory / "series.csv")
        wire = scenario.links[0]
        self.rate_bps = wire.rate_bps
        self.packet_s = PACKET_BITS / wire.rate_bps
        self.rtt_s: float = (
            2 * wire.delay_s + self.packet_s + 8 * TCP_IP_HEADER_BYTES / wire.rate_bps
        )

    def total(self, column: str) -> float:
        """Return a number of flows.csv of the first flow."""
        return float(self.flows[column].iloc[0])

    def throughput_bps(self, after_s: float, flow: str = "") -> float:
        """Return the mean of a flow's sampled throughput, or of the first one's."""
        return self._mean("flow", flow or self.flows.index[0], "throughput_bps", after_s)

    def queue_packets(self, after_s: float) -> float:
        """Return the mean length of the queue."""
        return self._mean("link", "wire:ab", "queue_packets", after_s)

    def rtt_s_of(self, flow: str, after_s: float) -> float:
        """Return the mean of a flow's sampled round trip."""
        return self._mean("flow", flow, "rtt_s", after_s)

    def _mean(self, kind: str, name: str, column: str, after_s: float) -> float:
        chosen = (self.series[kind] == name) & (self.series["time_s"] > after_s)
        return float(self.series.loc[chosen, column].mean())

    @property
    def window(self) -> FlowSeries:
        """The first flow's samples as features are taken from."""
        rows = self.series[self.series["flow"] == self.flows.index[0]]
        columns = ("time_s", "cwnd_bytes", "ssthresh_bytes", "rtt_s")
        time_s, cwnd, ssthresh, rtt_s = (rows[name].to_numpy(float) for name in columns)
        return FlowSeries(time_s, cwnd / SEGMENT, ssthresh / SEGMENT, rtt_s)

    def segments_per_rtt(self) -> float:
        """Return the segments delivered a round trip."""
        return self.total("goodput_bps") / (8 * SEGMENT) * self.rtt_s

    def window_segments(self, after_s: float) -> float:
        """Return the packets that leave a round trip."""
        return self.throughput_bps(after_s) / PACKET_BITS * self.rtt_s

    def growth_per_rtt_segments(self) -> float:
        """Return the median growth of the window a round trip after start-up."""
        growth = np.diff(self.window.known.steady_cwnd)
        return float(np.median(growth) / (self.scenario.sampling_interval_s / self.rtt_s))

    def sawtooth_period_s(self) -> float:
        """Return the mean time between window reductions."""
        known = self.window.known
        times = known.time_s[known.steady][find_reductions(known.steady_cwnd)]
        return float(np.diff(times).mean())

    def unaccounted_packets(self) -> float:
        """Return the packets neither received, dropped nor in flight, over all flows."""
        ends = self.flows[["packets_received", "packets_dropped", "packets_in_flight"]]
        return float((self.flows["packets_sent"] - ends.sum(axis=1)).abs().sum())


def sawtooth_depth(window: FloatArray) -> float:
    """Return the window after a reduction over the one before, mean over reductions.

    Before is the peak since the last trough, after the lowest sample until the next peak; the last
    fall ends at the first rise.
    """
    reductions, kept = find_reductions(window), []
    start = 0
    for index, following in itertools.zip_longest(reductions, reductions[1:]):
        peak = window[start:index].max()
        if following is None:
            rises = np.flatnonzero(np.diff(window[index:]) > 0)
            stop = index + int(rises[0]) + 1 if rises.size else window.size
        else:
            stop = index + int(window[index:following].argmax()) + 1
        start = index + int(window[index:stop].argmin())
        kept.append(window[start] / peak)
    return float(np.mean(kept)) if kept else math.nan


def mathis_constant(run: Observed) -> float:
    """Return segments delivered a round trip times the root of the loss rate."""
    return run.segments_per_rtt() * math.sqrt(run.total("loss_rate"))


def loss_exponent(runs: list[Observed]) -> float:
    """Return the slope of log(goodput) against log(loss rate)."""
    losses = np.log([run.total("loss_rate") for run in runs])
    return float(np.polyfit(losses, np.log([run.segments_per_rtt() for run in runs]), 1)[0])


def jain(run: Observed, after_s: float) -> float:
    """Return Jain's index of the flows' mean throughput."""
    return jain_index([run.throughput_bps(after_s, flow) for flow in run.flows.index])


def goodput_ratio(run: Observed) -> float:
    """Return the goodput of the first flow over that of the second."""
    first, second = run.flows["goodput_bps"]
    return float(first / second)


def rtt_fairness_exponent(run: Observed, after_s: float) -> float:
    """Return x for which throughput of two flows falls with the round trip to the power of x."""
    near, far = run.flows.index
    shares = run.throughput_bps(after_s, near) / run.throughput_bps(after_s, far)
    return math.log(shares) / math.log(run.rtt_s_of(far, after_s) / run.rtt_s_of(near, after_s))


def probe_rtt_times(run: Observed, after_s: float) -> tuple[FloatArray, FloatArray]:
    """Return when each of BBR's probes for the least round trip starts and ends."""
    window = run.window.known
    is_probe = (window.time_s > after_s) & (window.cwnd_segments <= PROBE_RTT_SEGMENTS)
    edges = np.diff(is_probe.astype(int))
    return window.time_s[1:][edges == 1], window.time_s[1:][edges == -1]


def probe_rtt_interval_s(run: Observed, after_s: float) -> float:
    """Return the mean time between the starts of probes."""
    return float(np.diff(probe_rtt_times(run, after_s)[0]).mean())


def probe_rtt_duration_s(run: Observed, after_s: float) -> float:
    """Return the mean duration of a probe."""
    starts, ends = probe_rtt_times(run, after_s)
    return float((ends - starts[: ends.size]).mean())


#: By name: unit, and the function of a check's runs after a time in s.
QUANTITIES: dict[str, tuple[str, Callable[[list[Observed], float], float]]] = {
    "throughput_bps": ("bit/s", lambda runs, t: runs[0].throughput_bps(t)),
    "utilisation": ("1", lambda runs, t: runs[0].throughput_bps(t) / runs[0].rate_bps),
    "rtt_mean_s": ("s", lambda runs, t: runs[0].total("rtt_mean_s")),
    "delay_mean_s": ("s", lambda runs, t: runs[0].total("delay_mean_s")),
    "loss_rate": ("1", lambda runs, t: runs[0].total("loss_rate")),
    "slow_start_growth": ("1", lambda runs, t: feature("slow_start_growth", runs[0].window)),
    "growth_per_rtt_segments": ("segments", lambda runs, t: runs[0].growth_per_rtt_segments()),
    "sawtooth_depth": ("1", lambda runs, t: sawtooth_depth(runs[0].window.known.steady_cwnd)),
    "sawtooth_period_s": ("s", lambda runs, t: runs[0].sawtooth_period_s()),
    "mathis_constant": ("1", lambda runs, t: mathis_constant(runs[0])),
    "loss_exponent": ("1", lambda runs, t: loss_exponent(runs)),
    "goodput_ratio": ("1", lambda runs, t: goodput_ratio(runs[0])),
    "window_segments": ("segments", lambda runs, t: runs[0].window_segments(t)),
    "rtt_fairness_exponent": ("1", lambda runs, t: rtt_fairness_exponent(runs[0], t)),
    "probe_rtt_interval_s": ("s", lambda runs, t: probe_rtt_interval_s(runs[0], t)),
    "probe_rtt_duration_s": ("s", lambda runs, t: probe_rtt_duration_s(runs[0], t)),
    "jain_index": ("1", lambda runs, t: jain(runs[0], t)),
    "queue_mean_packets": ("packets", lambda runs, t: runs[0].queue_packets(t)),
    "queue_wait_mean_s": ("s", lambda runs, t: runs[0].queue_packets(t) * runs[0].packet_s),
    "unaccounted_packets": ("packets", lambda runs, t: sum(r.unaccounted_packets() for r in runs)),
}
#: Quantities of a recovery and their units; see `recovery_numbers`.
RECOVERED = {
    "first_retransmission_s": "s",
    "lowest_cwnd_segments": "segments",
    "timeouts": "1",
    "recovery_time_s": "s",
    "goodput_bps": "bit/s",
}


def recovery_numbers(run: Observed) -> dict[str, float]:
    """Return quantities of a sender's recovery from its first losses.

    Recovery lasts from the first retransmission until everything that was outstanding then is
    acknowledged; the lowest window is that of all events from there on. NaN where there was none.
    """
    numbers = dict.fromkeys(RECOVERED, math.nan)
    numbers["goodput_bps"] = run.total("goodput_bps")
    numbers["timeouts"] = float(len(run.result.events("timeout")))
    if not (again := run.result.events("retransmit")):
        return numbers
    start_s = again[0].time_s
    sent = [e.sequence for e in run.result.events("send") if e.time_s <= start_s]
    later = run.result.trace[run.result.trace.index(again[0]) :]
    numbers["first_retransmission_s"] = start_s
    numbers["lowest_cwnd_segments"] = min(e.cwnd for e in later) / SEGMENT
    for event in later:
        if event.event == "ack" and event.sequence >= max(sent) + SEGMENT:
            return numbers | {"recovery_time_s": event.time_s - start_s}
    return numbers


def scenario(
    canonical: Part, engine: str, settings: Part | None = None, loss: Part | None = None
) -> Scenario:
    """Return a canonical scenario on an engine: one duplex link from s0 to d0, and access links.

    A flow has the common settings, the engine's, the scenario's, the engine's there, `settings`.
    """
    given = canonical["link"]
    ends = {"source": "s0", "destination": "d0", "start_s": 0, "stop_s": canonical["duration_s"]}
    flows = []
    changes = {"queue_ab": given.get("queue", droptail()), "loss_ab": loss or given.get("loss")}
    links = [link("wire", "s0", "d0", given["rate_bps"], given["delay_s"], **changes)]
    for name, flow in canonical["flows"].items():
        if access := flow.get("access"):
            links.append(link(f"access_{name}", name, "s0", ACCESS_BPS, **access))
            flow = {key: flow[key] for key in flow if key != "access"} | {"source": name}
        if flow["kind"] == "tcp":
            common = ends | DOCUMENT["tcp"] | DOCUMENT["engines"][engine]["tcp"]
            of_engine = canonical.get("engines", {}).get(engine, {})
            flows.append(common | flow | of_engine | (settings or {}) | {"id": name})
        else:
            flows.append(ends | flow | {"id": name})
    run = {key: canonical[key] for key in ("duration_s", "sampling_interval_s")}
    nodes = ["s0", "d0", *(access["a"] for access in links[1:])]
    built = document(nodes, links, flows, seed=DOCUMENT["seed"], **run)
    return Scenario.model_validate(built)


def observe(bench: Bench, canonical: Scenario, **options: Any) -> Observed:
    """Run a scenario on an engine."""
    return Observed(canonical, bench.run(canonical.model_dump(mode="json"), **options))


def version_of(bench: Bench) -> str:
    """Return the exact version of an engine's program."""
    engine = ENGINES[bench.name]
    return engine.exact_version(written_version(bench.program), engine.fingerprint(ROOT))


def check_rows(bench: Bench, only: Collection[str] = ()) -> Iterator[Row]:
    """Yield a row for each check (of `only`): the value, or why the engine refuses it."""
    runs = {}
    for check in DOCUMENT["checks"]:
        if only and check["id"] not in only:
            continue
        # An engine may have a different expectation, with its reason.
        expected = check | check.get("engines", {}).get(bench.name, {})
        unit, take = QUANTITIES[check["quantity"]]
        low, wanted, high = expected["bounds"]
        row = {
            "engine": bench.name,
            "version": version_of(bench),
            "check": check["id"],
            "scenario": check["title"],
            "quantity": check["quantity"],
            "unit": unit,
            "low": low,
            "expected": wanted,
            "high": high,
            "source": f"{expected['source']}; tolerance: {expected['tolerance']}",
        }
        named = check["scenarios"]
        built = {name: scenario(DOCUMENT["scenarios"][name], bench.name) for name in named}
        refusals = [ENGINES[bench.name].refusal(canonical) for canonical in built.values()]
        if any(refusals):
            first = next(refusal for refusal in refusals if refusal)
            yield row | {"value": math.nan, "holds": "refused", "note": first}
            continue
        for name, canonical in built.items():
            if name not in runs:
                runs[name] = observe(bench, canonical)
        yield _judged(row, take([runs[n] for n in named], check.get("after_s", 0)))


def recovery_rows(subject: Bench, reference: Bench) -> Iterator[Row]:
    """Yield a row for each number of a recovery: an engine's own variant against a reference's."""

    def numbers(bench: Bench, settings: Part, packets: Sequence[int]) -> dict[str, float]:
        losing = scenario(RECOVERY["scenario"], bench.name, settings, listed(*packets))
        return recovery_numbers(observe(bench, losing, trace=True))

    cases = itertools.product(RECOVERY["variants"].items(), RECOVERY["losses"].items())
    for (variant, settings), (losses, packets) in cases:
        recovered = numbers(subject, settings, packets)
        known = numbers(reference, settings, packets)
        title = f"{variant.title()} after losing {', '.join(map(str, packets))}"
        for quantity, allowed in RECOVERY["quantities"].items():
            expected = known[quantity]
            width = allowed.get("absolute", abs(expected) * allowed.get("relative", 0))
            row = {
                "engine": subject.name,
                "version": version_of(subject),
                "check": f"{variant}.{losses}.{quantity}",
                "scenario": title,
                "quantity": quantity,
                "unit": RECOVERED[quantity],
                "low": expected - width,
                "expected": expected,
                "high": expected + width,
                "source": f"{reference.name}; tolerance: {allowed['source']}",
            }
            yield _judged(row, recovered[quantity])


def _judged(row: Row, value: float) -> Row:
    both_none = math.isnan(value) and math.isnan(row["expected"])
    holds = both_none or row["low"] <= value <= row["high"]
    note = known_deviation(row["check"], row["engine"])
    return row | {"value": value, "holds": "true" if holds else "false", "note": note}


def known_deviation(check: str, engine: str) -> str:
    """Return the known cause of an engine's deviation; empty if it must meet the expectation."""
    for known in DOCUMENT["known_deviations"]:
        if check in known["checks"] and known["engine"] == engine:
            return f"{known['cause']} ({known['evidence']})"
    return ""


def write(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV, numbers with nine digits."""
    frame = pd.DataFrame(rows, columns=list(CONFORMANCE_COLUMNS))
    frame.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")


def main() -> None:
    """Run every check on every engine, and write the table."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        benches = {engine: Bench(engine, program(engine), Path(name)) for engine in ENGINES}
        rows: list[Row] = []
        for bench in benches.values():
            rows += check_rows(bench)
        rows += recovery_rows(benches[RECOVERY["subject"]], benches[RECOVERY["reference"]])
    write(rows, TABLE)
    deviates = [row for row in rows if row["holds"] == "false"]
    print(f"{TABLE}: {len(rows)} rows, {len(deviates)} that do not hold")


if __name__ == "__main__":
    main()
