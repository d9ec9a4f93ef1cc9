"""A law of congestion control that several notebooks hold against their results."""

from __future__ import annotations

import math

from replication.study.scenario import Scenario


def pressure(scenario: Scenario) -> float:
    """Return the windows of all TCP flows over what the path and its queue hold.

    Up to 1 nothing can be lost to congestion. The path is that of the first TCP flow over the
    watched link, less what CBR flows take of it.
    """
    tcp = [flow for flow in scenario.flows if flow.kind == "tcp"]
    watched = scenario.monitors[0].link
    ends = {tcp[0].source, tcp[0].destination}
    path = [link for link in scenario.links if link.id == watched or {link.a, link.b} & ends]
    link = next(link for link in path if link.id == watched)
    left_bps = link.rate_bps - sum(f.rate_bps for f in scenario.flows if f.kind == "cbr")
    pipe_bytes = 2 * sum(part.delay_s for part in path) * max(left_bps, 0) / 8
    queue = link.queue_ab.model_dump()
    packets = (queue.get("limit_packets") or 0) + (queue.get("device_queue_packets") or 0)
    queue_bytes = queue.get("limit_bytes") or packets * tcp[0].packet_bytes
    windows = [
        (flow.maximum_window_bytes or math.inf) * flow.packet_bytes / flow.segment_bytes
        for flow in tcp
    ]
    return sum(windows) / (pipe_bytes + queue_bytes)
