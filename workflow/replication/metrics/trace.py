"""Read published traces of congestion windows, and their flows (`trace_source`: where they are)."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from replication.base.errors import InputError

#: A data flow has at least this share of the busiest flow's samples. iperf3's control connection is
#: sampled only at the start and the end of a test.
DATA_FLOW_FRACTION = 0.10

TRIO_COLUMNS = (
    "time_s",
    "source",
    "retransmissions_in_flight",
    "retransmissions",
    "cwnd_segments",
    "ssthresh_segments",
)
#: Columns that every sample has; `ss` leaves out the others at times.
_NEEDED = ("time_s", "port", "cwnd_segments")
PAIR_COLUMNS = (*TRIO_COLUMNS[:2], "delivery_rate_kbps", "rtt_ms", *TRIO_COLUMNS[2:])


def _malformed(path: Path, reason: str) -> InputError:
    expected = "expected the CSV that the study's script makes of `ss -ein`"
    return InputError(f"{path}: {reason}; {expected}")


def read_trace(path: Path) -> pd.DataFrame:
    """Read one `ss` trace of all connections of a sender, a CSV without header.

    Returns the columns of `TRIO_COLUMNS` or `PAIR_COLUMNS` in SI units, the source as port. NaN is
    what `ss` does not print: a count of zero or an unset threshold. InputError names a wrong line.
    """
    try:
        raw = pd.read_csv(path, header=None, dtype=str, skip_blank_lines=False)
    except ValueError as error:
        # The parser's message names the line: "Expected 6 fields in line 3, saw 7".
        raise _malformed(path, str(error).strip()) from error
    layouts = {len(names): names for names in (TRIO_COLUMNS, PAIR_COLUMNS)}
    if raw.shape[1] not in layouts:
        raise _malformed(path, f"line 1: {raw.shape[1]} columns")
    raw.columns = pd.Index(layouts[raw.shape[1]])
    counters = ["retransmissions_in_flight", "retransmissions"]
    # Before the first retransmission `ss` may print another counter there, such as "sacked:1
    # rcv_space", and the study's script then cuts out that counter and the next word.
    raw.loc[raw["retransmissions"] == "rcv_space", counters] = None
    raw["port"] = raw.pop("source").str.rpartition(":")[2]
    trace: pd.DataFrame = raw.apply(pd.to_numeric, errors="coerce").astype(float)
    wrong = (raw.notna() | raw.columns.isin(_NEEDED)) & ~np.isfinite(trace)
    wrong["cwnd_segments"] |= trace["cwnd_segments"] <= 0
    if wrong.any(axis=None):
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        name = str(wrong.columns[wrong.iloc[row]][0])
        shown = "nothing" if pd.isna(raw[name].iloc[row]) else repr(raw[name].iloc[row])
        kind = "a positive number" if name == "cwnd_segments" else "a number"
        raise _malformed(path, f"line {row + 1}: {name} is {shown}, not {kind}")
    trace["port"] = trace["port"].astype(int)
    if "rtt_ms" in trace:
        trace["rtt_s"] = trace.pop("rtt_ms") / 1e3
        trace["delivery_rate_bps"] = trace.pop("delivery_rate_kbps") * 1e3
    return trace


def read_flows(path: Path, names: Collection[str]) -> dict[str, pd.DataFrame]:
    """Return the samples of each data flow by its name; `names` are in the order of the ports."""
    trace = read_trace(path)
    counts = trace["port"].value_counts()
    ports = sorted(counts.index[counts >= DATA_FLOW_FRACTION * counts.max()])
    if len(names) != len(ports):
        raise _malformed(path, f"{len(ports)} data flows for {len(names)} names")
    flows = {}
    for name, port in zip(names, ports, strict=True):
        flows[name] = trace[trace["port"] == port].sort_values("time_s", ignore_index=True)
    return flows
