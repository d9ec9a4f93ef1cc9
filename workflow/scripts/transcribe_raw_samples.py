"""Transcribe a study's raw samples of `ss -ti`: a row a flow, from its authors' recordings.

    python workflow/scripts/transcribe_raw_samples.py STUDY FOLDER

writes data/published/STUDY/raw_samples.csv, whose columns data/README.md explains. FOLDER has
<trace>.sender-ss.txt.xz, which are the authors' data/<trace>/sender-ss.txt compressed.
"""

from __future__ import annotations

import lzma
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from replication.base.table import write_table
from replication.compare.trace_comparison import TRANSCRIBED
from replication.design.config import load_study
from replication.metrics.trace_source import TABLE_PREFIX

SUFFIX = ".sender-ss.txt.xz"
#: The row of the first connection of a recording, by which iperf3 controls the test.
CONTROL = "control"
#: Of a connection without as many sent segments nothing but its handshake is transcribed.
_DATA_SEGMENTS = 100
#: iperf3 opens each connection with a cookie of 37 bytes; the SYN counts as another.
_COOKIE_ACKED_BYTES = 38
#: When, after a recording's start, every flow sends.
_BUSY_S = (8.0, 58.0)
_HEAD = re.compile(r"^([\d.]+) +tcp +\S+ +\d+ +\d+ +[\d.]+:(\d+) ")
_FIELD = re.compile(r"\b([a-z_]+):([\d.]+)(?:/([\d.]+))?")
_RATE = re.compile(r"(pacing_rate|delivery_rate) ([\d.]+)([KMG]?)bps")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_BEHIND = {"rtt": "rttvar", "retrans": "retransmissions"}
#: Acknowledgements of one flow's packets that wait one behind another are 12 ms apart: a gap of
#: three says that packets of other flows are between.
_PAUSE_MS = 36
#: A segment of 1448 bytes in one piece, as a device without scatter-gather needs it.
_SEGMENT_MEMORY_BYTES = 4352
_COUNTED_IN_TICKS = ["rto", "lastsnd", "lastrcv", "lastack", "busy"]


def read_samples(path: Path) -> pd.DataFrame:
    """Return the samples of all connections by the names of `ss`, NaN where it prints nothing.

    Times are in ms, as printed, but for `time_s`; `rttvar` and `retransmissions` are what follows
    the stroke of `rtt` and `retrans`.
    """
    rows: list[dict[str, float]] = []
    head = None
    for line in lzma.decompress(path.read_bytes()).decode("ascii").splitlines():
        if match := _HEAD.match(line):
            head = match
        elif head is not None:
            row = {"time_s": float(head[1]), "port": float(head[2])}
            for name, value, behind in _FIELD.findall(line):
                row[name] = float(value)
                if behind and name in _BEHIND:
                    row[_BEHIND[name]] = float(behind)
            row |= {name: float(v) * _SCALE[unit] for name, v, unit in _RATE.findall(line)}
            rows.append(row)
            head = None
    return pd.DataFrame(rows)


def empty_round_trips(flow: pd.DataFrame) -> tuple[float, float]:
    """Return the round trips of the SYN and of the cookie, in ms; NaN where no sample has them.

    With two of them the smoothed round trip is 7/8 of the first and 1/8 of the second (RFC 6298),
    and `minrtt` is one of the two. The rate at which the cookie was delivered, which the kernel
    counts as one segment, says which.
    """
    early = flow[(flow["bytes_acked"] == _COOKIE_ACKED_BYTES) & flow["delivery_rate"].notna()]
    if early.empty:
        return math.nan, math.nan
    least, smoothed, mss, rate_bps = early.iloc[0][["minrtt", "rtt", "mss", "delivery_rate"]]
    pairs = (least, 8 * smoothed - 7 * least), ((8 * smoothed - least) / 7, least)
    return min(pairs, key=lambda pair: abs(pair[1] - mss * 8e3 / rate_bps))


def first_probe_s(first: pd.Series) -> float:
    """Return how long after the first window the next segment was sent; NaN if something else was.

    The first sample has a loss probe if nothing is acknowledged and 11 segments are out.
    """
    probed = first["bytes_acked"] == _COOKIE_ACKED_BYTES and first["unacked"] == 11
    return (first["busy"] - first["lastsnd"]) / 1e3 if probed else math.nan


def first_burst_segments(flow: pd.DataFrame) -> float:
    """Return how many segments were acknowledged when acknowledgements first paused."""
    acked = (flow["bytes_acked"] - _COOKIE_ACKED_BYTES) / flow["mss"]
    samples = flow.assign(acked=acked, reached=flow["busy"] - flow["lastack"])[acked > 0]
    reached = samples.groupby("acked")["reached"].first()
    # The next segment's acknowledgement came then or later.
    lasted = samples.groupby("acked")["busy"].max()
    following = reached.reindex(reached.index + 1).to_numpy()
    pause = np.fmax(lasted, following) - reached
    return float(pause.index[pause >= _PAUSE_MS].min())


def small_queue_segments(pacing_rate_bps: float, memory_bytes: int) -> int:
    """Return how many segments of a first window TCP small queues let out at once.

    `tcp_small_queue_check` holds a segment back while those below the socket take more memory than
    is sent in a millisecond (`sk_pacing_shift`), but never the first two.
    """
    limit_bytes = max(int(pacing_rate_bps / 8) >> 10, 2 * memory_bytes)
    return min(10, (limit_bytes - 1) // memory_bytes + 1)


def payload_rate_bps(flows: Sequence[pd.DataFrame]) -> float:
    """Return the rate at which what the flows have delivered together grows, by a line's fit."""
    start = min(float(flow["time_s"].min()) for flow in flows)
    times = start + np.arange(*_BUSY_S, 0.1)
    total = np.zeros_like(times)
    for flow in flows:
        delivered = flow["bytes_acked"].ffill() + flow["sacked"].fillna(0) * flow["mss"]
        total += np.interp(times, flow["time_s"], delivered)
    return 8 * float(np.polyfit(times - start, total, 1)[0])


def _handshake(flow: pd.DataFrame) -> dict[str, float]:
    syn, cookie = empty_round_trips(flow)
    last, first = flow.iloc[-1], flow.iloc[0]
    return {
        "minrtt_s": last["minrtt"] / 1e3,
        "syn_rtt_s": syn / 1e3,
        "cookie_rtt_s": cookie / 1e3,
        "mss_bytes": last["mss"],
        "window_scale": last["wscale"],
        "rcv_ssthresh_bytes": first["rcv_ssthresh"],
    }


def _burst(flow: pd.DataFrame) -> dict[str, float]:
    rate_bps = flow.loc[flow["bytes_acked"] == _COOKIE_ACKED_BYTES, "pacing_rate"].max()
    predicted = math.nan
    if rate_bps > 0:
        predicted = small_queue_segments(rate_bps, _SEGMENT_MEMORY_BYTES)
    return {
        "first_burst_segments": first_burst_segments(flow),
        "unanswered_pacing_rate_bps": rate_bps,
        "small_queue_segments": predicted,
    }


def _data(flow: pd.DataFrame) -> dict[str, float]:
    # The first sample with data beyond the cookie.
    first, last = flow[flow["data_segs_out"] > 2].iloc[0], flow.iloc[-1]
    ticks = flow[_COUNTED_IN_TICKS].to_numpy().ravel()
    segments = (last["bytes_acked"] - _COOKIE_ACKED_BYTES) / last["mss"]
    return {
        "tick_s": np.gcd.reduce(ticks[np.isfinite(ticks)].astype(int)) / 1e3,
        "least_rto_s": flow["rto"].min() / 1e3,
        "first_busy_s": first["busy"] / 1e3,
        "first_cwnd_segments": first["cwnd"],
        "first_acked_segments": (first["bytes_acked"] - _COOKIE_ACKED_BYTES) / first["mss"],
        # Without those of the SYN and the cookie.
        "first_acknowledgements": first["segs_in"] - 2,
        "first_data_segments": first["data_segs_out"] - 1,
        "first_unacked_segments": first["unacked"],
        "first_notsent_bytes": first["notsent"],
        "first_rtt_s": first["rtt"] / 1e3,
        "first_rttvar_s": first["rttvar"] / 1e3,
        "first_probe_s": first_probe_s(first),
        "first_pacing_rate_bps": first["pacing_rate"],
        "first_delivery_rate_bps": first["delivery_rate"],
        "most_unacked_segments": flow["unacked"].max(),
        "largest_rtt_s": flow["rtt"].max() / 1e3,
        "acknowledgements_per_segment": (last["segs_in"] - 2) / segments,
        "retransmissions": flow["retransmissions"].fillna(0).max(),
        "sending_s": last["time_s"] - flow["time_s"].iloc[0],
    }


def transcribe(root: Path, study: str, folder: Path) -> pd.DataFrame:
    """Return the table of a study's raw samples: a row a flow, in the order of its traces."""
    rows: list[dict[str, object]] = []
    for table in load_study(root, study).tables:
        if table.id.startswith(TABLE_PREFIX):
            name = table.id.removeprefix(TABLE_PREFIX)
            samples = read_samples(folder / f"{name}{SUFFIX}")
            # In the order of their client ports, in which iperf3 connected them.
            by_port = samples[samples["minrtt"].notna()].groupby("port")
            connected = [connection for _, connection in by_port]
            flows = [f for f in connected if f["data_segs_out"].max() > _DATA_SEGMENTS]
            rate = {"payload_rate_bps": payload_rate_bps(flows)}
            rows.append({"trace": name, "flow": CONTROL, **_handshake(connected[0])})
            for flow, sampled in zip(table.rows or {}, flows, strict=True):
                row = {"trace": name, "flow": flow, **_handshake(sampled), **_data(sampled), **rate}
                # Bursts show where other flows start at the same time, and BBR paces its own.
                if len(flows) > 2 and "pacing_gain" not in sampled.dropna(axis=1, how="all"):
                    row |= _burst(sampled)
                rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    transcribed = transcribe(Path(), sys.argv[1], Path(sys.argv[2]))
    target = Path(TRANSCRIBED.format(sys.argv[1]))
    columns = [str(name) for name in transcribed]
    rows = [{str(name): row[name] for name in row} for row in transcribed.to_dict("records")]
    write_table(target, rows, columns)
