"""Where engines differ: one flow of every variant at a full buffer and under random loss.

`PYTHONPATH=. python -m tests.engines.differences` runs every condition on every engine that has the
variant (some twenty minutes of CPU) and writes data/engine_differences.csv, which the report shows.
"""

import fnmatch
import itertools
import math
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from replication.compare.agreement import load_differences
from replication.engines.catalogue import ENGINES
from replication.study.scenario import TCP_IP_HEADER_BYTES, Scenario
from replication.study.study import DIFFERENCES
from replication.study.table import DIFFERENCE_COLUMNS

from tests.engines.engine_bench import Bench
from tests.engines.engine_scenarios import droptail, single_link, tcp
from tests.workflow.project import ROOT, program

TABLE = ROOT / DIFFERENCES
SEGMENT = 1448
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
#: A larger difference needs a named cause.
LARGEST = 0.25
MODERN = {"sack": True, "limited_transmit": True}
CLASSIC = {"sack": False, "limited_transmit": False}
#: Each variant's name on every engine; Linux's only Reno replaces all but Tahoe.
BEFORE_SACK = ("tahoe", "reno", "newreno", "vegas")
NAMES = ("tahoe", "reno", "newreno", "sack", "vegas", "linuxreno", "cubic", "highspeed")
NAMES += ("westwood_plus", "bbr", "htcp", "illinois", "scalable", "veno", "yeah")
VARIANTS = {
    name: {"congestion_control": name if name != "sack" else "newreno"}
    | (CLASSIC if name in BEFORE_SACK else MODERN)
    for name in NAMES
}
#: Only regions have these, so they run at one round trip.
REGIONS_ONLY = {"htcp", "illinois", "scalable", "veno", "yeah"}
LINUX = {"newreno": "linuxreno", "reno": "linuxreno"}
RENO = {"reno", "newreno", "sack", "linuxreno"}
#: They count acknowledged segments, not acknowledgements, so delayed ACKs change nothing.
COUNT_SEGMENTS = {"linuxreno", "cubic"}
LEAST_RTO_S = 0.2
#: The bottleneck's rate at each round trip; under loss, all but two far exceed the window.
RATES_BPS = {0.01: 1e7, 0.1: 4e6, 0.9: 1e6}
PIPE_SEGMENTS, SMALL_PIPE_SEGMENTS = 500, 32
FILL_ANY_PIPE = {"bbr", "westwood_plus"}
DURATIONS_S = {0.01: 10, 0.1: 60, 0.9: 240}


class Condition(NamedTuple):
    """One flow's path, and whether its receiver delays acknowledgements; no loss: a full buffer."""

    loss: float
    rtt_s: float
    delayed: bool

    def __str__(self):
        path = f"loss {self.loss * 100:g} %" if self.loss else "buffer 1 BDP"
        acks = "delayed ACKs" if self.delayed else "every segment acknowledged"
        return f"{path}, {self.rtt_s * 1000:g} ms, {acks}"

    @property
    def duration_s(self):
        """Duration of a run: under loss, until tens of Reno's packets are lost."""
        rare = self.loss == 0.001 and self.rtt_s == 0.9
        return DURATIONS_S[self.rtt_s] * (10 if rare else 2 if self.loss else 1)

    def rate_bps(self, variant):
        """Return the link's rate."""
        pipe = SMALL_PIPE_SEGMENTS if variant in FILL_ANY_PIPE else PIPE_SEGMENTS
        return pipe * PACKET_BITS / self.rtt_s if self.loss else RATES_BPS[self.rtt_s]


CONDITIONS = [
    Condition(loss, rtt_s, delayed)
    for loss, rtt_s, delayed in itertools.product(
        (0, 0.001, 0.01, 0.05), DURATIONS_S, (False, True)
    )
]


def scenario(variant, condition, engine):
    """Return one flow of a variant in a condition, with the engine's fixed settings."""
    own = {"segment_bytes": SEGMENT, "timestamps": engine != "ns2", "initial_window_segments": 10}
    own |= {"minimum_rto_s": LEAST_RTO_S, "initial_rto_s": 1, "delayed_ack_timeout_s": 0.04}
    own |= {"delayed_ack_segments": 2 if condition.delayed else 1} | VARIANTS[variant]
    if engine == "linux":
        own |= {"limited_transmit": True, "clock_granularity_s": 0.004}
        own["congestion_control"] = LINUX.get(own["congestion_control"], own["congestion_control"])
    if engine == "linux" or (engine == "ns3" and own["sack"]):
        own["recovery"] = "prr"
    rate_bps, duration_s = condition.rate_bps(variant), condition.duration_s
    bdp_packets = round(rate_bps * condition.rtt_s / PACKET_BITS)
    loss = {"kind": "random", "probability": condition.loss} if condition.loss else None
    flow = tcp("t", own.pop("congestion_control"), **own)
    path = {"rate_bps": rate_bps, "delay_s": condition.rtt_s / 2, "loss": loss}
    queue = droptail(max(bdp_packets, 2) * (2 if condition.loss else 1))
    run = {"duration_s": duration_s, "sampling_interval_s": duration_s / 1000}
    return single_link([flow | {"stop_s": duration_s}], **path, queue=queue, **run)


def measure(bench, variant, condition):
    """Return the flow's results after a quarter of the run; None if the engine refuses it."""
    one = scenario(variant, condition, bench.name)
    if ENGINES[bench.name].refusal(Scenario.model_validate(one)):
        return {}
    result = bench.run(one)
    after_s = one["duration_s"] / 4
    found = {}
    for metric in ("throughput_bps",) if condition.loss else ("throughput_bps", "rtt_s"):
        values = result.samples(metric, flow="t", after_s=after_s)
        found[metric] = sum(values) / len(values)
    return found


def law(variant, condition, metric):
    """Return what theory expects of a metric; NaN where there is none, or theories differ."""
    rate_bps = condition.rate_bps(variant)
    empty_s = condition.rtt_s + (PACKET_BITS + 8 * TCP_IP_HEADER_BYTES) / rate_bps
    if metric == "rtt_s":
        # At a constant rate the window's square grows evenly, from one to two products.
        full = {"bbr": 1, **dict.fromkeys(RENO, 2 / 3 * (8 - 1) / (4 - 1))}.get(variant, math.nan)
        return full * empty_s
    if not condition.loss:
        return rate_bps if variant not in ("tahoe", "vegas") else math.nan
    if variant == "bbr":
        return rate_bps * (1 - condition.loss)
    p, acked = condition.loss, 2 if condition.delayed and variant not in COUNT_SEGMENTS else 1
    without_s = empty_s / _window(variant, p, acked, condition.rtt_s)
    # Padhye et al. 1998, equation 30: the time that timeouts add per packet if losses of a round
    # come together. Random losses do not, so it is no law where it adds a quarter.
    waits = min(1, 3 * math.sqrt(3 * acked * p / 8)) * p * (1 + 32 * p * p)
    packet_s = without_s + max(LEAST_RTO_S, empty_s) * waits
    return PACKET_BITS / packet_s if packet_s < (1 + LARGEST) * without_s else math.nan


def _window(variant, loss, acked, rtt_s):
    """Return the mean window in segments by the variant's response function."""
    reno = math.sqrt(3 / (2 * acked * loss))  # Mathis et al. 1997
    if variant != "cubic":
        return reno if variant in RENO else math.nan
    cubic = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (rtt_s / loss) ** 0.75
    # RFC 9438, section 5.1; the window is above both functions where they are close.
    return max(reno, cubic) if largest([reno], [cubic]) > LARGEST else math.nan


def rows(benches, conditions=CONDITIONS, variants=VARIANTS):
    """Return a row for each variant, condition, engine and metric, with law and difference."""
    wanted = [
        (variant, condition)
        for variant, condition in itertools.product(variants, conditions)
        if variant not in REGIONS_ONLY or condition.rtt_s == 0.1
    ]
    tasks = [(bench, *one) for one in wanted for bench in benches]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = list(pool.map(lambda task: measure(*task), tasks))
    found = [
        {"variant": variant, "condition": str(condition), "engine": bench.name, "metric": metric}
        | {"value": value, "law": law(variant, condition, metric)}
        for (bench, variant, condition), values in zip(tasks, measured, strict=True)
        for metric, value in values.items()
    ]
    known = load_differences(ROOT).differences
    for row in found:
        same = [o for o in found if all(o[k] == row[k] for k in ("variant", "condition", "metric"))]
        row["difference"] = largest([row["value"]], [row["law"], *(o["value"] for o in same)])
    for row in found:
        row["entry"] = "; ".join(one.id for one in known if explains(one, row))
    return found


def largest(values, others):
    """Return the largest relative excess of one value over another: 0.5 is 1.5 times as large."""
    ratios = [max(a / b, b / a) for a in values for b in others if not math.isnan(b)]
    return max(ratios) - 1


def explains(entry, row):
    """Return whether an entry of engine_differences.yaml says why a row differs."""
    named = f"{row['variant']}, {row['condition']}, {row['metric']}"
    large = row["difference"] > LARGEST
    return large and any(fnmatch.fnmatch(named, found) for found in entry.found_in)


def main():
    """Run everything on every engine, and write the table."""
    with tempfile.TemporaryDirectory(prefix="differences-") as name:
        found = rows([Bench(engine, program(engine), Path(name)) for engine in ENGINES])
    frame = pd.DataFrame(found, columns=list(DIFFERENCE_COLUMNS))
    frame.to_csv(TABLE, index=False, float_format="%.6g", lineterminator="\n")
    large = [row for row in found if row["difference"] > LARGEST]
    nameless = sum(not row["entry"] for row in large)
    print(f"{TABLE}: {len(found)} rows, {len(large)} that differ, {nameless} without an entry")


if __name__ == "__main__":
    main()
