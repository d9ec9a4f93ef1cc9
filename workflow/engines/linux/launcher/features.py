"""What Linux 6.1 does and does not: names of its algorithms, and refusals with their reasons."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from fields import REQUIRED, Fields, refuse

#: Congestion control of a scenario, and the kernel's name of it.
CONTROLS = {
    "bbr": "bbr",
    "bic": "bic",
    "cubic": "cubic",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "linuxreno": "reno",
    "lp": "lp",
    "scalable": "scalable",
    "vegas": "vegas",
    "veno": "veno",
    "westwood_plus": "westwood",
    "yeah": "yeah",
}
REFUSED = {
    "dctcp": "it needs ECN, which scenarios do not have",
    "ledbat": "Linux 6.1 does not have it; lp is the nearest",
    "newreno": "the kernel's reno counts acknowledged segments and recovers by PRR, which RFC 6582 "
    "does not; use linuxreno",
    "reno": "no kernel since 2.6 has the classic Reno of 1990; use linuxreno",
    "tahoe": "no Linux kernel has it",
    "westwood": "the kernel's is Westwood+; use westwood_plus",
}
QUEUES = ("droptail", "pfifo", "red", "codel", "fq_codel", "pie")
LOSSES = ("random",)
#: Timer frequencies that the kernel's configuration knows (kernel/Kconfig.hz), and ours by default.
TIMER_HZ = (100, 250, 300, 1000)
DEFAULT_HZ = 250
INITIAL_RTO_S = 1.0
DELAYED_ACK_S = 0.04


@dataclass(frozen=True)
class Host:
    """What all hosts of a scenario have in common: offload, and the kernel's timer frequency."""

    segmentation_offload: bool = False
    timer_hz: int = DEFAULT_HZ

    @property
    def tick_s(self) -> float:
        """Return the time between two ticks."""
        return 1 / self.timer_hz

    @property
    def whole_ms(self) -> int:
        """Return the least number of milliseconds that is a whole number of ticks."""
        return 1000 // math.gcd(1000, self.timer_hz)


def read_host(fields: Fields | None) -> Host:
    """Return the settings of the hosts; the defaults where there are none."""
    if fields is None:
        return Host()
    offload = fields.boolean("segmentation_offload", False)
    hz = fields.integer("timer_hz", 1, 10**6, DEFAULT_HZ)
    if hz not in TIMER_HZ:
        refuse(fields.path("timer_hz"), hz, f"give one of {', '.join(map(str, TIMER_HZ))}")
    fields.finish()
    return Host(offload, hz)


def kernel_control(fields: Fields) -> str:
    """Return the kernel's name of the flow's congestion control."""
    name = fields.text("congestion_control")
    path = fields.path("congestion_control")
    if name in REFUSED:
        refuse(path, repr(name), f"not supported by linux: {REFUSED[name]}")
    if name not in CONTROLS:
        refuse(path, repr(name[:64]), f"give one of {', '.join(sorted(CONTROLS))}")
    return CONTROLS[name]


def check_recovery(fields: Fields, host: Host) -> None:
    """Refuse recoveries and timers that the kernel does not have."""
    if fields.choice("recovery", ("classic", "prr"), "classic") != "prr":
        refuse(
            fields.path("recovery"),
            "'classic'",
            "not supported by linux: it reduces its window by PRR since 3.2; use prr",
        )
    if not fields.boolean("limited_transmit", False):
        refuse(
            fields.path("limited_transmit"),
            "false",
            "not supported by linux: it always sends on the first duplicates; use true",
        )
    _only(fields, "initial_rto_s", REQUIRED, INITIAL_RTO_S, "TCP_TIMEOUT_INIT is fixed")
    ticks = f"this kernel ticks {host.timer_hz} times a second"
    _only(fields, "clock_granularity_s", 0.001, host.tick_s, ticks)


def check_delayed_acks(fields: Fields) -> bool:
    """Return whether every segment is acknowledged at once; refuse what the kernel cannot do."""
    segments = fields.integer("delayed_ack_segments", 1, 10)
    if segments > 2:
        refuse(
            fields.path("delayed_ack_segments"),
            segments,
            "not supported by linux: it acknowledges every second segment; use 1 or 2",
        )
    if segments == 1:
        fields.nanoseconds("delayed_ack_timeout_s", 0.2)
        return True
    _only(
        fields,
        "delayed_ack_timeout_s",
        0.2,
        DELAYED_ACK_S,
        "its delay adapts from 0.04 s upwards",
    )
    return False


def minimum_rto_ms(fields: Fields, host: Host) -> int:
    """Return the least retransmission timeout in milliseconds that are whole ticks."""
    ns = fields.nanoseconds("minimum_rto_s")
    step = host.whole_ms
    if ns % (step * 1_000_000) or ns > 120 * 10**9:
        refuse(
            fields.path("minimum_rto_s"),
            f"{ns / 1e9:g}",
            f"not supported by linux: give a multiple of {step / 1000:g} s (whole ticks, of which "
            f"this kernel has {host.timer_hz} a second), up to 120 s",
        )
    return ns // 1_000_000


def _only(fields: Fields, key: str, default: Any, value: float, reason: str) -> None:
    """Accept one value of a time that the kernel does not let anyone choose."""
    given = fields.nanoseconds(key, default)
    if given != round(value * 1e9):
        refuse(
            fields.path(key),
            f"{given / 1e9:g}",
            f"not supported by linux: {reason}; use {round(value, 9)!r}",
        )


def supports_json(version: str) -> str:
    """Return what `--supports` prints."""
    features = [
        "tcp",
        "cbr",
        "sack",
        "timestamps",
        "prr",
        "delayed_ack",
        "limited_transmit",
        "maximum_window",
        "arbitrary_topology",
        "queue_monitors",
        "segmentation_offload",
        "timer_hz",
    ]
    document = {
        "engine": "linux",
        "version": version,
        "congestion_controls": sorted(CONTROLS),
        "refused": REFUSED,
        "queues": list(QUEUES),
        "losses": list(LOSSES),
        "features": features,
    }
    return json.dumps(document)
