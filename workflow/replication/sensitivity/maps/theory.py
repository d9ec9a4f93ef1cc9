"""Theory: laws that are drawn into a map, each with its source and the condition it holds under.

A law predicts a share of the bottleneck's rate at each place from the path there; what is drawn is
where it crosses the share that the map's file names. A `line` stands where the file says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replication.sensitivity.maps.map_model import Law
from replication.sensitivity.maps.space import Place, Space, TcpPath

#: Places along each axis at which a law is computed; between them it is interpolated.
_STEPS = 12


@dataclass(frozen=True)
class Curve:
    """A law as it is drawn: its points across and up, 0 to 1, row by row."""

    law: Law
    points: tuple[tuple[float, float], ...]


def mathis(law: Law, path: TcpPath) -> float:
    """Return Reno's share of the link at random loss: MSS C / (RTT sqrt(p)).

    Mathis, Semke, Mahdavi and Ott 1997, The Macroscopic Behavior of the TCP Congestion Avoidance
    Algorithm, equation 3.
    """
    assert law.constant is not None
    if path.loss == 0:
        return math.inf
    rate_bps = 8 * path.segment_bytes * law.constant / (path.rtt_s * math.sqrt(path.loss))
    return rate_bps / path.rate_bps


def cubic_response(law: Law, path: TcpPath) -> float:
    """Return CUBIC's share of the link at random loss: 1.054 (RTT / p)^(3/4) segments a window.

    RFC 8312, section 5, for C = 0.4 and a window cut to 0.7; where Reno would have the larger
    window, Reno's.
    """
    if path.loss == 0:
        return math.inf
    cubic = 1.054 * (path.rtt_s / path.loss) ** 0.75
    friendly = math.sqrt(3 / 2) / math.sqrt(path.loss)
    window_bytes: float = path.segment_bytes * max(cubic, friendly)
    return 8 * window_bytes / (path.rtt_s * path.rate_bps)


def ware(law: Law, path: TcpPath) -> float:
    """Return the share of one BBR flow beside loss-based flows in a buffer of X products.

    Ware, Mukerjee, Seshan and Sherry 2019, Modeling BBR's Interactions with Loss-Based Congestion
    Control (IMC '19): BBR keeps two products in flight, so that the others have 1/2 - 1/(2X) - 4N/q
    of the link in a queue of q packets; every ten seconds it drains its queue and probes for 0.2 s.
    """
    q = path.queue_packets
    x = q / path.bdp_packets
    others = 0.5 - 1 / (2 * x) - 4 / q
    if x <= 1 or others <= 0:
        return 1.0
    full_s = q * 8 * path.packet_bytes / path.rate_bps
    probe_s = (full_s + 0.2 + path.rtt_s) * path.active_s / 10
    return (1 - others) * max(0.0, path.active_s - probe_s) / path.active_s


def room(law: Law, path: TcpPath) -> float:
    """Return the room of the queue over the law's packets."""
    assert law.value is not None
    return path.queue_packets / law.value


_LAWS: dict[str, Callable[[Law, TcpPath], float]] = {
    "room": room,
    "mathis": mathis,
    "cubic_response": cubic_response,
    "ware": ware,
}


def curves(space: Space, facet: tuple[str, ...]) -> list[Curve]:
    """Return the laws of a map in a facet; a law that is crossed nowhere has no points."""
    laws = [law for law in space.map.theory if not law.facets or set(law.facets) & set(facet)]
    paths: list[list[TcpPath]] = []
    if any(law.kind != "line" for law in laws):
        steps = [step / _STEPS for step in range(_STEPS + 1)]
        paths = [[space.path(Place(facet, across, up)) for across in steps] for up in steps]
    return [_curve(space, law, paths) for law in laws]


def _curve(space: Space, law: Law, paths: Sequence[Sequence[TcpPath]]) -> Curve:
    if law.kind == "line":
        assert law.axis is not None and law.value is not None
        across, up = space.map.ranges
        own = across if law.axis == across.id else up
        assert own.range is not None
        at = own.range.position(law.value)
        ends = ((at, 0.0), (at, 1.0)) if own is across else ((0.0, at), (1.0, at))
        return Curve(law, ends if 0 <= at <= 1 else ())
    shares = [[_LAWS[law.kind](law, path) for path in row] for row in paths]
    return Curve(law, tuple(_crossed(shares, 1.0 if law.share is None else law.share)))


def _crossed(shares: Sequence[Sequence[float]], wanted: float) -> list[tuple[float, float]]:
    """Return where rows, or if none does columns, first cross a share."""
    found = [
        (at / _STEPS, number / _STEPS)
        for number, row in enumerate(shares)
        if (at := _first_crossing(row, wanted)) is not None
    ]
    if len(found) > 1:
        return found
    columns = [list(column) for column in zip(*shares, strict=True)]
    return [
        (number / _STEPS, at / _STEPS)
        for number, column in enumerate(columns)
        if (at := _first_crossing(column, wanted)) is not None
    ]


def _first_crossing(values: Sequence[float], wanted: float) -> float | None:
    for number, (one, other) in enumerate(itertools.pairwise(values)):
        if (one < wanted) != (other < wanted) and all(map(math.isfinite, (one, other))):
            # The laws are powers: straight in the logarithm.
            low, high, level = math.log(one), math.log(other), math.log(wanted)
            return number + (level - low) / (high - low)
    return None
