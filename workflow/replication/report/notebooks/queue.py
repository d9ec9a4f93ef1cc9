"""Queues by their kind: what a notebook does not give has the kind's documented default."""

from collections.abc import Mapping
from typing import Any

from replication.base.errors import InputError
from replication.report.notebooks.names import check_name
from replication.study.printed import LIMITS

_CODEL = {"target_s": 0.005, "interval_s": 0.1}
_PIE = {"target_s": 0.015, "update_interval_s": 0.015}
#: Kinds and their defaults. RED: Floyd's advice of 1997, as in ns-2. CoDel: RFC 8289 and 8290.
#: PIE: RFC 8033; Linux. CAKE: tc-cake(8).
DEFAULTS: dict[str, dict[str, Any]] = {
    "droptail": {},
    "pfifo": {},
    "red": {
        "minimum_threshold_packets": 5,
        "maximum_threshold_packets": 15,
        "queue_weight": 0.002,
        "maximum_probability": 0.1,
        "mean_packet_bytes": 1500,
    },
    "codel": _CODEL,
    "fq_codel": _CODEL,
    "pie": _PIE,
    "fq_pie": _PIE,
    "cake": _CODEL,
}
#: Default limits of Linux's modules, for a queue that replaces one without a limit.
_LIMITS = {"cake": ("memory_limit_bytes", 4 << 20)}
_LIMITS |= dict.fromkeys(("fq_codel", "fq_pie"), ("limit_packets", 10240))


def complete_queue(given: str | Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a queue of a kind with all its settings.

    Parameters
    ----------
    given
        A kind, such as "fq_codel", or a kind with some settings, such as {"kind": "red", "ecn":
        True}.
    before
        Settings of a queue that it replaces: its limit and device queue stay, if the kind has them.
    """
    queue = {"kind": given} if isinstance(given, str) else dict(given)
    if "kind" not in queue:
        raise InputError(f"queue: has no kind; add one of {', '.join(DEFAULTS)}")
    kind = queue["kind"]
    check_name("queue", kind, DEFAULTS)
    limit, most = _LIMITS.get(kind, ("limit_packets", 1000))
    keys = LIMITS[:2] if kind == "droptail" else (limit, "device_queue_packets")
    kept = {key: before[key] for key in keys if before.get(key) is not None}
    if any(key in queue for key in LIMITS):
        kept = {key: value for key, value in kept.items() if key not in LIMITS}
    elif kept.keys().isdisjoint(LIMITS):
        kept[limit] = most
    return DEFAULTS[kind] | kept | queue


def queue_like(given: Any, before: Any) -> Any:
    """Return a parameter's new value, complete if the value `before` is a queue."""
    is_queue = isinstance(before, Mapping) and before.get("kind") in DEFAULTS
    return complete_queue(given, before) if is_queue else given
