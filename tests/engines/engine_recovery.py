"""What the tests of loss recovery share: the variants, and reading a trace."""

from __future__ import annotations

from engine_results import Event, Result
from engine_scenarios import Json

SEGMENT = 1000
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
