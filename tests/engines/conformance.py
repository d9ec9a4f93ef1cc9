"""Conformance: what every engine must show in the canonical scenarios of conformance.yaml.

`PYTHONPATH=. python -m tests.engines.conformance` runs them on every engine and writes
data/conformance.csv, which the report shows.
"""

from __future__ import annotations

import csv
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from replication.engines.catalogue import ENGINES
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.metrics.cwnd import FloatArray, find_reductions
from replication.metrics.feature import FlowSeries, feature
from replication.metrics.statistic import jain_index
from replication.simulate.process import written_version
from replication.study.files import read_yaml
from replication.study.scenario import TCP_IP_HEADER_BYTES, Scenario
from replication.study.storage.table import CONFORMANCE_COLUMNS
from replication.study.study import CONFORMANCE

ROOT = Path(__file__).parents[2]
TABLE = ROOT / CONFORMANCE
Json = dict[str, Any]
DOCUMENT: Json = read_yaml(Path(__file__).with_suffix(".yaml"))
RECOVERY: Json = DOCUMENT["recovery"]
SEGMENT = int(DOCUMENT["tcp"]["segment_bytes"])


@dataclass(frozen=True)
class Observed:
    """One run: its scenario, flows.csv by flow, series.csv, and its only flow's events."""

    scenario: Scenario
    flows: pd.DataFrame
    series: pd.DataFrame
    trace: pd.DataFrame | None = None

    @property
    def rate_bps(self) -> float:
        """Rate of the link."""
        return self.scenario.links[0].rate_bps

    @property
    def packet_bytes(self) -> int:
        """IP size of the first flow's data packets (timestamps off)."""
        return self.scenario.flows[0].packet_bytes

    @property
    def rtt_s(self) -> float:
        """Round trip of a data packet and its acknowledgement on the empty link."""
        bits = 8 * (self.packet_bytes + TCP_IP_HEADER_BYTES)
        return 2 * self.scenario.links[0].delay_s + bits / self.rate_bps

    @property
    def first(self) -> str:
        """Id of the first flow."""
        return self.scenario.flows[0].id

    def total(self, column: str) -> float:
        """Return a number of flows.csv of the first flow."""
        return float(self.flows[column].to_numpy(dtype=float)[0])

    def mean(self, column: str, flow: str, after_s: float) -> float:
        """Return the mean of a flow's samples, or of the link's (""), after a time."""
        rows = self.series[self.series["flow"] == flow]
        values = rows.loc[rows["time_s"] > after_s, column].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        return float(values.mean()) if values.size else math.nan

    def window(self) -> FlowSeries:
        """Return the first flow's samples as features are taken from."""
        rows = self.series[self.series["flow"] == self.first]
        segment = self.packet_bytes - TCP_IP_HEADER_BYTES

        def column(name: str, unit: float = 1) -> FloatArray:
            return rows[name].to_numpy(dtype=float) / unit

        return FlowSeries(
            time_s=column("time_s"),
            cwnd_segments=column("cwnd_bytes", segment),
            ssthresh_segments=column("ssthresh_bytes", segment),
            rtt_s=column("rtt_s"),
            throughput_bps=column("throughput_bps"),
        )


def throughput_bps(runs: Sequence[Observed], after_s: float) -> float:
    """Return the mean of the sampled throughput."""
    return runs[0].mean("throughput_bps", runs[0].first, after_s)


def growth_per_rtt_segments(runs: Sequence[Observed], after_s: float) -> float:
    """Return the median growth of the window a round trip after start-up."""
    steady = runs[0].window().known.steady_cwnd
    step = runs[0].scenario.sampling_interval_s / runs[0].rtt_s
    return float(np.median(np.diff(steady)) / step) if steady.size > 1 else math.nan


def sawtooth_period_s(runs: Sequence[Observed], after_s: float) -> float:
    """Return the mean time between window reductions."""
    known = runs[0].window().known
    times = known.time_s[known.steady][find_reductions(known.steady_cwnd)]
    return float(np.diff(times).mean()) if times.size > 1 else math.nan


def segments_per_rtt(run: Observed) -> float:
    """Return the segments delivered a round trip."""
    segment_bits = 8 * (run.packet_bytes - TCP_IP_HEADER_BYTES)
    return run.total("goodput_bps") / segment_bits * run.rtt_s


def mathis_constant(runs: Sequence[Observed], after_s: float) -> float:
    """Return segments delivered a round trip times the root of the loss rate."""
    return segments_per_rtt(runs[0]) * math.sqrt(runs[0].total("loss_rate"))


def loss_exponent(runs: Sequence[Observed], after_s: float) -> float:
    """Return the slope of log(goodput) against log(loss rate)."""
    losses = np.log([run.total("loss_rate") for run in runs])
    return float(np.polyfit(losses, np.log([segments_per_rtt(run) for run in runs]), 1)[0])


def jain(runs: Sequence[Observed], after_s: float) -> float:
    """Return Jain's index of the flows' mean throughput."""
    run = runs[0]
    return jain_index([run.mean("throughput_bps", f.id, after_s) for f in run.scenario.flows])


def queue_mean_packets(runs: Sequence[Observed], after_s: float) -> float:
    """Return the mean length of the queue."""
    return runs[0].mean("queue_packets", "", after_s)


def unaccounted_packets(runs: Sequence[Observed], after_s: float) -> float:
    """Return the packets neither received, dropped nor in flight, over all flows."""
    missing = 0.0
    for run in runs:
        counted = run.flows[["packets_received", "packets_dropped", "packets_in_flight"]]
        missing += float((run.flows["packets_sent"] - counted.sum(axis=1)).abs().sum())
    return missing


Quantity = tuple[str, Callable[[Sequence[Observed], float], float]]
#: By name: unit, and how it is taken from runs after a time in s.
QUANTITIES: dict[str, Quantity] = {
    "throughput_bps": ("bit/s", throughput_bps),
    "utilisation": ("1", lambda runs, t: throughput_bps(runs, t) / runs[0].rate_bps),
    "rtt_mean_s": ("s", lambda runs, t: runs[0].total("rtt_mean_s")),
    "delay_mean_s": ("s", lambda runs, t: runs[0].total("delay_mean_s")),
    "loss_rate": ("1", lambda runs, t: runs[0].total("loss_rate")),
    "slow_start_growth": ("1", lambda runs, t: feature("slow_start_growth", runs[0].window())),
    "growth_per_rtt_segments": ("segments", growth_per_rtt_segments),
    "sawtooth_depth": ("1", lambda runs, t: feature("sawtooth_depth", runs[0].window())),
    "sawtooth_period_s": ("s", sawtooth_period_s),
    "mathis_constant": ("1", mathis_constant),
    "loss_exponent": ("1", loss_exponent),
    "jain_index": ("1", jain),
    "queue_mean_packets": ("packets", queue_mean_packets),
    # The mean length of the queue times the transmission of a packet.
    "queue_wait_mean_s": (
        "s",
        lambda runs, t: queue_mean_packets(runs, t) * 8 * runs[0].packet_bytes / runs[0].rate_bps,
    ),
    "unaccounted_packets": ("packets", unaccounted_packets),
}
#: What a recovery shows, and its unit; see `recovery_numbers`.
RECOVERED = {
    "first_retransmission_s": "s",
    "lowest_cwnd_segments": "segments",
    "timeouts": "1",
    "recovery_time_s": "s",
    "goodput_bps": "bit/s",
}


def recovery_numbers(trace: pd.DataFrame, goodput_bps: float) -> dict[str, float]:
    """Return what the events of a sender say of the recovery from its first losses.

    Recovery lasts from the first retransmission until everything that was outstanding then is
    acknowledged; the lowest window is that of all events from there on. NaN where there was none.
    """
    again = trace[trace["event"] == "retransmit"]
    numbers = dict.fromkeys(RECOVERED, math.nan)
    numbers["goodput_bps"] = goodput_bps
    numbers["timeouts"] = float((trace["event"] == "timeout").sum())
    if again.empty:
        return numbers
    start = float(again["time_s"].iloc[0])
    before = trace[(trace["event"] == "send") & (trace["time_s"] <= start)]
    highest = float(before["sequence"].max()) + SEGMENT
    later = trace.loc[again.index[0] :]
    repaired = later[(later["event"] == "ack") & (later["sequence"] >= highest)]
    numbers["first_retransmission_s"] = start
    numbers["lowest_cwnd_segments"] = float(later["cwnd_bytes"].min()) / SEGMENT
    if not repaired.empty:
        numbers["recovery_time_s"] = float(repaired["time_s"].iloc[0]) - start
    return numbers


def scenario(canonical: Json, engine: str, settings: Json, loss: Json | None = None) -> Scenario:
    """Return a canonical scenario on an engine: one duplex link from s0 to d0.

    A flow has the common settings, the engine's, the scenario's, the engine's there, `settings`.
    """
    wire = canonical["link"]
    ends = {"source": "s0", "destination": "d0", "start_s": 0, "stop_s": canonical["duration_s"]}
    deep = {"kind": "droptail", "limit_packets": 1000}
    flows = []
    for name, flow in canonical["flows"].items():
        if flow["kind"] == "tcp":
            common = ends | DOCUMENT["tcp"] | DOCUMENT["engines"][engine]["tcp"]
            own = canonical.get("engines", {}).get(engine, {})
            flows.append(common | flow | own | settings | {"id": name})
        else:
            flows.append(ends | flow | {"id": name})
    link = {"id": "wire", "a": "s0", "b": "d0", "rate_bps": wire["rate_bps"]}
    link |= {"delay_s": wire["delay_s"], "queue_ab": wire.get("queue", deep), "queue_ba": deep}
    document = {key: canonical[key] for key in ("duration_s", "sampling_interval_s")}
    document |= {"seed": DOCUMENT["seed"], "nodes": ["s0", "d0"], "flows": flows}
    document["links"] = [link | {"loss_ab": loss or wire.get("loss")}]
    return Scenario.model_validate(document | {"monitors": [{"link": "wire"}]})


def run(program: Path, engine: str, scenario: Scenario, traced: bool = False) -> Observed:
    """Run a scenario on an engine's program."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        work, output = Path(name), Path(name) / "out"
        write_inputs(work, scenario, ENGINES[engine])
        words = [program, "--plan", work / PLAN_FILE, "--output", output]
        words += ["--trace", work / "trace.csv"] if traced else []
        subprocess.run(words, check=True, timeout=300)
        texts = {"flow": "string", "link": "string", "kind": "string"}
        flows = pd.read_csv(output / "flows.csv", dtype=texts).set_index("flow")
        series = pd.read_csv(output / "series.csv", dtype=texts).fillna({"flow": "", "link": ""})
        trace = pd.read_csv(work / "trace.csv") if traced else None
        return Observed(scenario, flows, series, trace)


def version_of(program: Path, engine: str) -> str:
    """Return the exact version of an engine's program."""
    return ENGINES[engine].exact_version(
        written_version(program), ENGINES[engine].fingerprint(ROOT)
    )


def check_rows(program: Path, engine: str, only: Sequence[str] = ()) -> Iterator[Json]:
    """Yield a row for each check (of `only`): measured, or why the engine refuses it."""
    runs: dict[str, Observed] = {}
    for check in DOCUMENT["checks"]:
        if only and check["id"] not in only:
            continue
        # An engine may have another expectation, for another reason.
        expected = check | check.get("engines", {}).get(engine, {})
        unit, measure = QUANTITIES[check["quantity"]]
        row = dict(zip(("low", "expected", "high"), expected["bounds"], strict=True))
        row |= {"engine": engine, "check": check["id"], "scenario": check["title"]}
        row |= {"version": version_of(program, engine), "quantity": check["quantity"]}
        row |= {"unit": unit, "source": f"{expected['source']}; tolerance: {expected['tolerance']}"}
        built = {n: scenario(DOCUMENT["scenarios"][n], engine, {}) for n in check["scenarios"]}
        if refused := next(filter(None, map(ENGINES[engine].refusal, built.values())), ""):
            yield row | {"value": math.nan, "holds": "refused", "note": refused}
            continue
        for name, one in built.items():
            if name not in runs:
                runs[name] = run(program, engine, one)
        yield _judged(row, measure([runs[n] for n in built], check.get("after_s", 0)))


def recovery_rows(programs: dict[str, Path]) -> Iterator[Json]:
    """Yield a row for each number of a recovery: an engine's own variant against a reference's."""
    subject, reference = RECOVERY["subject"], RECOVERY["reference"]
    for variant, settings in RECOVERY["variants"].items():
        for losses, packets in RECOVERY["losses"].items():
            found = {}
            for engine in (reference, subject):
                lost = {"kind": "listed", "flow": "t", "data_packets": packets}
                one = scenario(RECOVERY["scenario"], engine, settings, lost)
                seen = run(programs[engine], engine, one, traced=True)
                assert seen.trace is not None
                found[engine] = recovery_numbers(seen.trace, seen.total("goodput_bps"))
            for quantity, allowed in RECOVERY["quantities"].items():
                expected = found[reference][quantity]
                width = allowed.get("absolute", abs(expected) * allowed.get("relative", 0))
                row = {"engine": subject, "version": version_of(programs[subject], subject)}
                row |= {"check": f"{variant}.{losses}.{quantity}", "quantity": quantity}
                row |= {
                    "scenario": f"{variant.title()} after losing {', '.join(map(str, packets))}"
                }
                row |= {"expected": expected, "low": expected - width, "high": expected + width}
                row |= {"unit": RECOVERED[quantity]}
                row |= {"source": f"{reference}; tolerance: {allowed['source']}"}
                yield _judged(row, found[subject][quantity])


def _judged(row: Json, value: float) -> Json:
    both_none = math.isnan(value) and math.isnan(row["expected"])
    holds = both_none or row["low"] <= value <= row["high"]
    note = known_deviation(row["check"], row["engine"])
    return row | {"value": value, "holds": "true" if holds else "false", "note": note}


def known_deviation(check: str, engine: str) -> str:
    """Return why an engine is known not to show what is expected; empty where it must."""
    for known in DOCUMENT["known_deviations"]:
        if check in known["checks"] and known["engine"] == engine:
            return f"{known['cause']} ({known['evidence']})"
    return ""


def write(rows: list[Json], path: Path) -> None:
    """Write rows as CSV, numbers with nine digits."""
    frame = pd.DataFrame(rows, columns=list(CONFORMANCE_COLUMNS))
    frame.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")


def read(path: Path = TABLE) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of the table by engine and check, as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["engine"], row["check"]): row for row in csv.DictReader(file)}


def main() -> None:
    """Run every check on every engine, and write the table."""
    from tests.workflow.project import program

    programs = {engine: program(engine) for engine in ENGINES}
    rows = [row for engine in programs for row in check_rows(programs[engine], engine)]
    rows += recovery_rows(programs)
    write(rows, TABLE)
    deviates = [row for row in rows if row["holds"] == "false"]
    print(f"{TABLE}: {len(rows)} rows, {len(deviates)} that do not hold")


if __name__ == "__main__":
    main()
