"""What a run of an engine wrote, read back; and the variants of loss recovery."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engines.engine_scenarios import SEGMENT, Json


@dataclass(frozen=True)
class Event:
    """A row of the packet-level trace; cwnd and ssthresh in bytes."""

    time_s: float
    flow: str
    event: str
    sequence: int
    cwnd: int
    ssthresh: int | None


@dataclass(frozen=True)
class Result:
    """What one run wrote."""

    directory: Path
    flows: dict[str, dict[str, str]]
    series: list[dict[str, str]]
    run: dict[str, Any]
    trace: list[Event]

    def number(self, flow: str, column: str) -> float:
        """Return a value of flows.csv."""
        return float(self.flows[flow][column])

    def samples(
        self, column: str, *, flow: str = "", link: str = "", after_s: float = 0
    ) -> list[float]:
        """Return a column of series.csv of a flow or of a monitored link, empty fields left out."""
        return [
            float(row[column])
            for row in self.series
            if row["flow"] == flow
            and row["link"] == link
            and row[column]
            and float(row["time_s"]) > after_s
        ]

    def events(self, *kinds: str) -> list[Event]:
        """Return the trace's events of these kinds."""
        return [event for event in self.trace if event.event in kinds]


def read_result(output: Path, trace: Path | None) -> Result:
    """Read back what a run wrote."""
    flows = {row["flow"]: row for row in _rows(output / "flows.csv")}
    run = json.loads((output / "run.json").read_text())
    events = [
        Event(
            float(row["time_s"]),
            row["flow"],
            row["event"],
            int(row["sequence"]),
            int(row["cwnd_bytes"]),
            int(row["ssthresh_bytes"]) if row["ssthresh_bytes"] else None,
        )
        for row in (_rows(trace) if trace else [])
    ]
    return Result(output, flows, _rows(output / "series.csv"), run, events)


def mean(values: list[float]) -> float:
    """Return the mean of samples that must exist."""
    assert values
    return sum(values) / len(values)


def outstanding_bytes(result: Result, segment_bytes: int = 1000) -> int:
    """Return the most bytes that were ever sent and not acknowledged."""
    most, highest, acked = 0, 0, 0
    for event in result.trace:
        if event.event == "send":
            highest = event.sequence + segment_bytes
        else:
            acked = max(acked, event.sequence)
        most = max(most, highest - acked)
    return most


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


RTT_S = 0.1
MINIMUM_RTO_S = 1.0
VARIANTS: dict[str, Json] = {
    "tahoe": {"congestion_control": "tahoe"},
    "reno": {"congestion_control": "reno"},
    "newreno": {"congestion_control": "newreno"},
    "sack": {"congestion_control": "newreno", "sack": True},
}


def resent(result: Result) -> list[int]:
    """Return the segments sent again, in order."""
    return [event.sequence // SEGMENT for event in result.events("retransmit")]


def times(result: Result) -> list[float]:
    """Return when segments were sent again."""
    return [event.time_s for event in result.events("retransmit")]


def next_sends(result: Result, after: Event) -> list[Event]:
    """Return what was sent for the first time after an event."""
    later = result.trace[result.trace.index(after) + 1 :]
    return [event for event in later if event.event == "send"]
