"""A dumbbell in one line: flows, round trips, a bottleneck and its queue.

What is not given follows the textbook set-up (`design.textbook`): windows do not limit, nothing is
queued off the bottleneck, and senders delay each packet a little.

      s1 --\\                   /-- d1
            left == bottleneck == right
      s2 --/                   \\-- d2
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.base.errors import InputError, describe, quoted
from replication.design.textbook import apply_rule, bottlenecks, window_bytes
from replication.engines.catalogue import ENGINES
from replication.report.notebooks.live import LiveRun, run_live
from replication.report.notebooks.names import check_name, find_project
from replication.report.notebooks.queue import complete_queue
from replication.study.printed import LIMITS, Setting
from replication.study.scenario import CONGESTION_CONTROLS, Scenario, TcpFlow

#: Variants that are older than SACK and limited transmit.
_BEFORE_SACK = {"tahoe", "reno", "newreno", "vegas", "westwood"}
_SEGMENT_BYTES = 1448
_BOTTLENECK = "bottleneck"
#: Access links are so many times faster than the bottleneck.
_FASTER = 100
#: Samples of a run, at most every 10 ms.
_SAMPLES, _LEAST_INTERVAL_S = 600, 0.01
#: Smallest buffer, in packets.
_LEAST_PACKETS = 2


@dataclass(frozen=True)
class Dumbbell:
    """A scenario that is ready to run on an engine."""

    scenario: Scenario
    engine: str
    root: Path

    def run(self) -> LiveRun:
        """Run it on this machine; InputError: the engine is not built, or refuses it."""
        return run_live(self.root, self.scenario, self.engine)

    def __repr__(self) -> str:
        from replication.report.charts.run import topology_lines

        lines = topology_lines(self.scenario.model_dump(mode="json"))
        return "\n".join([*lines, f"{self.scenario.duration_s:g} s on {self.engine}; .run()"])


def dumbbell(
    flows: Sequence[str | Mapping[str, Any]] = ("cubic",),
    rtt_ms: float | Sequence[float] = 40,
    rate_mbps: float = 10,
    buffer_bdp: float = 1,
    queue: str | Mapping[str, Any] = "droptail",
    duration_s: float = 30,
    engine: str = "ns3",
    seed: int = 1,
    root: str = "",
    **settings: Any,
) -> Dumbbell:
    """Design TCP flows that share a bottleneck; `.run().plot()` shows what they do.

    Parameters
    ----------
    flows
        A congestion control each, such as "cubic", or a mapping with `congestion_control` and
        other settings of that flow, such as {"congestion_control": "bbr", "start_s": 5}.
    rtt_ms
        Round trip of an empty path in ms, of all flows or one for each.
    rate_mbps
        The bottleneck's rate.
    buffer_bdp
        Its buffer, in products of its rate and the longest round trip.
    queue
        A kind, such as "fq_codel", or a mapping of `kind` and other settings; what is not given has
        the kind's documented default.
    engine
        "ns3", "ns2" or "linux".
    settings
        Settings of all flows, such as `ecn=True` or `delayed_ack_segments=1`; configs/reference.md
        lists them.
    """
    if isinstance(flows, str | Mapping):
        flows = [flows]
    check_name("engine", engine, ENGINES)
    rtts_ms = list(rtt_ms) if isinstance(rtt_ms, Sequence) else [rtt_ms] * len(flows)
    numbers = {"rate_mbps": rate_mbps, "buffer_bdp": buffer_bdp, "duration_s": duration_s}
    for place, value in enumerate(rtts_ms):
        numbers[f"rtt_ms[{place}]"] = value
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"{name}: must be a positive number (got {quoted(value)})")
    if len(rtts_ms) != len(flows) or not flows:
        raise InputError(
            f"rtt_ms: has {len(rtts_ms)} values for {len(flows)} flows; give one for each flow, or "
            "a single number"
        )
    documents = [_flow(flow, settings, engine, duration_s) for flow in flows]
    _name(documents)
    nodes = ["left", "right"]
    for flow in documents:
        nodes += _ends(flow)
    packet_bytes = max(_packet_bytes(flow) for flow in documents)
    product_bytes = rate_mbps * 1e6 * max(rtts_ms) / 1e3 / 8
    packets = max(_LEAST_PACKETS, round(buffer_bdp * product_bytes / packet_bytes))
    limits = {"limit_packets": packets, "memory_limit_bytes": packets * packet_bytes}
    document = {
        "duration_s": float(duration_s),
        "sampling_interval_s": max(_LEAST_INTERVAL_S, round(duration_s / _SAMPLES, 3)),
        "seed": seed,
        "nodes": nodes,
        "links": _links(documents, rtts_ms, rate_mbps * 1e6, complete_queue(queue, limits)),
        "flows": documents,
        "monitors": [{"link": _BOTTLENECK}],
        "host": {},
    }
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        raise InputError(f"dumbbell: {describe(error, document)}") from None
    printed: set[Setting] = {("links", _BOTTLENECK, "queue_ab", key) for key in LIMITS}
    for flow in documents:
        printed |= {("flows", flow["id"], key) for key in flow}
    window = window_bytes(bottlenecks(scenario, printed))
    return Dumbbell(apply_rule(scenario, window, printed), engine, find_project(root))


def _flow(
    flow: str | Mapping[str, Any], settings: Mapping[str, Any], engine: str, duration_s: float
) -> dict[str, Any]:
    """Return a flow with today's defaults, as far as the variant and the engine have them."""
    given = {"congestion_control": flow} if isinstance(flow, str) else dict(flow)
    for key in (*given, *settings):
        check_name("flow: setting", key, TcpFlow.model_fields, "configs/reference.md")
    control = given.get("congestion_control")
    check_name("flow: congestion_control", control, CONGESTION_CONTROLS)
    is_modern = control not in _BEFORE_SACK
    is_linux = engine == "linux"
    has_prr = is_linux or (is_modern and engine != "ns2")
    return {
        "kind": "tcp",
        "start_s": 0.0,
        "stop_s": float(duration_s),
        "sack": is_modern,
        "limited_transmit": is_modern or is_linux,
        "recovery": "prr" if has_prr else "classic",
        "timestamps": engine != "ns2",
        "segment_bytes": _SEGMENT_BYTES,
        "initial_window_segments": 10,
        "delayed_ack_segments": 2,
        "delayed_ack_timeout_s": 0.04,
        "minimum_rto_s": 0.2,
        "initial_rto_s": 1.0,
        "clock_granularity_s": 0.004 if is_linux else 0.001,
        **settings,
        **given,
    }


def _name(flows: list[dict[str, Any]]) -> None:
    """Name flows by their variant, with a number if there are several of it, and their ends."""
    variants = [flow["congestion_control"] for flow in flows]
    for number, (flow, variant) in enumerate(zip(flows, variants, strict=True), start=1):
        place = variants[:number].count(variant)
        flow.setdefault("id", f"{variant}-{place}" if variants.count(variant) > 1 else variant)
        flow |= {"source": f"s{number}", "destination": f"d{number}"}


def _packet_bytes(flow: Mapping[str, Any]) -> int:
    sizes = TcpFlow.model_construct(
        segment_bytes=flow["segment_bytes"], timestamps=flow["timestamps"]
    )
    return sizes.packet_bytes


def _ends(flow: Mapping[str, Any]) -> tuple[str, str]:
    return flow["source"], flow["destination"]


def _links(
    flows: Sequence[Mapping[str, Any]], rtts_ms: Sequence[float], rate_bps: float, queue: Any
) -> list[dict[str, Any]]:
    """Return the bottleneck and the access links; senders' links make round trips differ."""
    # Replaced by the textbook rule.
    deep = {"kind": "droptail", "limit_packets": 1000}
    shared_s = min(rtts_ms) / 4e3

    def link(name: str, a: str, b: str, rate_bps: float, delay_s: float) -> dict[str, Any]:
        return {
            "id": name,
            "a": a,
            "b": b,
            "rate_bps": rate_bps,
            "delay_s": delay_s,
            "queue_ab": deep,
            "queue_ba": deep,
        }

    links = [link(_BOTTLENECK, "left", "right", rate_bps, shared_s) | {"queue_ab": queue}]
    for flow, rtt_ms in zip(flows, rtts_ms, strict=True):
        source, destination = _ends(flow)
        delay_s = round(rtt_ms / 2e3 - shared_s, 9)
        links.append(link(f"{source}-left", source, "left", _FASTER * rate_bps, delay_s))
        links.append(link(f"right-{destination}", "right", destination, _FASTER * rate_bps, 0.0))
    return links
