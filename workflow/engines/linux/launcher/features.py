"""What Linux 6.1 does and does not: names of its algorithms, and refusals with their reasons."""

from __future__ import annotations

import json
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
#: The kernel's timer frequency; kernel/machine.patch sets it.
TICK_S = 0.004
INITIAL_RTO_S = 1.0
DELAYED_ACK_S = 0.04


def check_host(fields: Fields) -> None:
    """Refuse settings of hosts, which this engine does not have yet."""
    if fields.take("host", None) is not None:
        refuse(
            fields.path("host"),
            "given",
            "not supported by linux yet: offloads are off and the kernel ticks 250 times a second; "
            "leave it out",
        )


def kernel_control(fields: Fields) -> str:
    """Return the kernel's name of the flow's congestion control."""
    name = fields.text("congestion_control")
    path = fields.path("congestion_control")
    if name in REFUSED:
        refuse(path, repr(name), f"not supported by linux: {REFUSED[name]}")
    if name not in CONTROLS:
        refuse(path, repr(name[:64]), f"give one of {', '.join(sorted(CONTROLS))}")
    return CONTROLS[name]


def check_recovery(fields: Fields) -> None:
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
    _only(fields, "clock_granularity_s", 0.001, TICK_S, "this kernel ticks 250 times a second")


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


def minimum_rto_ms(fields: Fields) -> int:
    """Return the least retransmission timeout in whole ticks, as milliseconds."""
    ns = fields.nanoseconds("minimum_rto_s")
    if ns % 4_000_000 or ns > 120 * 10**9:
        refuse(
            fields.path("minimum_rto_s"),
            f"{ns / 1e9:g}",
            "not supported by linux: give a multiple of its tick, 0.004 s, up to 120 s",
        )
    return ns // 1_000_000


def _only(fields: Fields, key: str, default: Any, value: float, reason: str) -> None:
    """Accept one value of a time that the kernel does not let anyone choose."""
    given = fields.nanoseconds(key, default)
    if given != round(value * 1e9):
        refuse(
            fields.path(key),
            f"{given / 1e9:g}",
            f"not supported by linux: {reason}; use {value:g}",
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
