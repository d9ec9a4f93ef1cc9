"""Loss recovery of one engine's variants beside a reference: numbers and windows from traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from replication.compare.conformance_model import Conformance, KnownDeviation, recovery_check
from replication.study.storage.table import CONFORMANCE_COLUMNS

#: Units of the quantities that are told of a recovery.
UNITS = {
    "first_retransmission_s": "s",
    "lowest_cwnd_segments": "segments",
    "timeouts": "1",
    "recovery_time_s": "s",
    "goodput_bps": "bit/s",
}


def recovery_numbers(
    trace: pd.DataFrame, goodput_bps: float, segment_bytes: int
) -> dict[str, float]:
    """Return what a trace tells of the recovery from its first losses.

    Parameters
    ----------
    trace
        Events of one sender: time_s, event, sequence (bytes), cwnd_bytes.
    goodput_bps
        In-order bytes delivered over the whole run, as a rate.
    segment_bytes
        Payload of a segment.

    Returns
    -------
    dict
        By the names of `UNITS`. Recovery lasts from the first retransmission until everything
        that was outstanding then is acknowledged; the lowest window is that of all events from
        the first retransmission on. NaN where there was none.
    """
    again = trace[trace["event"] == "retransmit"]
    numbers = dict.fromkeys(UNITS, float("nan"))
    numbers["goodput_bps"] = goodput_bps
    numbers["timeouts"] = float((trace["event"] == "timeout").sum())
    if again.empty:
        return numbers
    start = float(again["time_s"].iloc[0])
    before = trace[(trace["event"] == "send") & (trace["time_s"] <= start)]
    highest = float(before["sequence"].max()) + segment_bytes
    later = trace.loc[again.index[0] :]
    repaired = later[(later["event"] == "ack") & (later["sequence"] >= highest)]
    numbers["first_retransmission_s"] = start
    numbers["lowest_cwnd_segments"] = float(later["cwnd_bytes"].min()) / segment_bytes
    if not repaired.empty:
        numbers["recovery_time_s"] = float(repaired["time_s"].iloc[0]) - start
    return numbers


def windows(trace: pd.DataFrame, segment_bytes: int) -> pd.DataFrame:
    """Return the window in segments at each instant at which it changes."""
    frame = trace.drop_duplicates("time_s", keep="last")
    cwnd = frame["cwnd_bytes"] / segment_bytes
    changed = cwnd.ne(cwnd.shift())
    columns = {"time_s": frame["time_s"], "cwnd_segments": cwnd}
    return pd.DataFrame(columns)[changed].reset_index(drop=True)


def compare(document: Conformance, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row of conformance for each quantity of each recovery; none unless both engines ran.

    Parameters
    ----------
    document
        The tolerances and known deviations.
    numbers
        variant, losses, engine, engine_version, quantity, value of every engine that ran them.
    """
    recovery = document.recovery
    keys = ["variant", "losses", "quantity"]
    pairs = numbers[numbers["engine"] == recovery.subject].merge(
        numbers[numbers["engine"] == recovery.reference], on=keys, suffixes=("", "_reference")
    )
    rows = [_row(document, pair) for pair in _records(pairs)]
    return pd.DataFrame(rows, columns=list(CONFORMANCE_COLUMNS))


def _records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for record in frame.to_dict("records"):
        yield {str(key): value for key, value in record.items()}


def _row(document: Conformance, pair: dict[str, Any]) -> dict[str, Any]:
    recovery = document.recovery
    tolerance = next(t for name, t in recovery.quantities.items() if name == pair["quantity"])
    expected, observed = float(pair["value_reference"]), float(pair["value"])
    width = tolerance.width(expected)
    check = recovery_check(pair["variant"], pair["losses"], pair["quantity"])
    within = abs(observed - expected) <= width or bool(np.isnan(expected) and np.isnan(observed))
    return {
        "check": check,
        "engine": pair["engine"],
        "engine_version": pair["engine_version"],
        "quantity": pair["quantity"],
        "unit": UNITS[pair["quantity"]],
        "expected": expected,
        "low": expected - width,
        "high": expected + width,
        "observed": observed,
        "deviation": observed - expected,
        "within": "true" if within else "false",
        "source": f"{recovery.reference} {pair['engine_version_reference']}; "
        f"tolerance: {tolerance.source}",
        "note": named(document.deviation(check, pair["engine"])),
    }


def named(deviation: KnownDeviation | None) -> str:
    """Return a known deviation in words; empty for none."""
    return f"known: {deviation.cause} ({deviation.evidence})" if deviation else ""
