"""The mean one-way delay of packets over a direction of a monitored link.

It is what a packet takes from its place in the queue to the link's far end:

    delay = propagation + mean transmission time + mean wait in the queue

The wait is Little's law (Little, Operations Research 9(3):383-387, 1961): the mean number of
packets that wait, over the rate at which packets depart. Both are of the series. The number is the
mean of the sampled `queue_packets`, which on every engine is what discipline and device hold
unsent: a packet in transmission is in no queue, and its transmission is added. The rate of
departures is the link's own sampled throughput, in IP bytes whose transmission ended, over the mean
size of its packets. It counts retransmissions, acknowledgements, and what is lost later on.

Where all packets have one size that is exact but for sampling. What is approximate:

Sizes
    Of packets of several sizes the series tell the bytes alone. Their shares are those of what
    their flows deliver in the same time: of a flow that crosses the link a packet for each packet
    received, of one that crosses it in reverse an acknowledgement for every
    `delayed_ack_segments`. Losses behind the link and what is under way move the shares, immediate
    acknowledgements and those of a timer too. Handshakes and SACK blocks are left out.
Drops
    What a discipline drops only after it has waited (CoDel, FQ-CoDel) is in the queue's mean but
    does not depart: the wait is too long by about their number over that of departures. A packet
    that is dropped as it comes never waits.
Sampling
    A queue that keeps time with the samples is seen at one of its phases only.
Jitter
    Half of `jitter_s` is added. No packet overtakes another, so that in a dense flow it is more, at
    most all of `jitter_s`.
Segmentation offload
    Packets that cross the network as one arrive with the last byte of all; here each takes its own
    time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replication.engines.cost import FlowPaths
from replication.study.link import Link
from replication.study.scenario import Flow, Scenario, TcpFlow

#: Least that an engine's links put around an IP packet: ns-3's speak PPP (its README, "Network").
_LEAST_FRAME_BYTES = {"ns3": 2}

#: Flows that cross a direction of a link, each with whether it is by its acknowledgements.
Crossing = Sequence[tuple[Flow, bool]]


def link_delays(
    scenarios: Mapping[str, Mapping[str, Any]], links: pd.DataFrame, series: pd.DataFrame
) -> pd.DataFrame:
    """Return the mean one-way delay over each monitored link of each run, in s.

    Parameters
    ----------
    scenarios
        Scenario id to the scenario's JSON document.
    links
        scenario, engine, link, queue_packets (packets) and throughput_bps (bit/s): the samples of
        the links that are wanted.
    series
        scenario, engine, flow and throughput_bps (bit/s) of the same runs and times, of all flows.

    Returns
    -------
    pandas.DataFrame
        scenario, engine, link, value; NaN where nothing crossed the link, or nothing that crossed
        it arrived.

    Raises
    ------
    KeyError
        A run whose scenario is not among `scenarios`, or a link that its scenario lacks.
    """
    keys = ["scenario", "engine", "link"]
    sums = links.groupby(keys)[["queue_packets", "throughput_bps"]].sum().reset_index()
    received = series.groupby(["scenario", "engine", "flow"])["throughput_bps"].sum()
    values = []
    for name, places in sums.groupby("scenario", sort=False).indices.items():
        scenario = Scenario.model_validate(scenarios[str(name)])
        crossed, known = crossings(scenario), {link.id: link for link in scenario.links}
        for place in places:
            row = sums.iloc[place]
            link, direction = str(row["link"]).rsplit(":", 1)
            packet_bytes = mean_packet_bytes(
                crossed.get(str(row["link"]), []), received.loc[row["scenario"], row["engine"]]
            )
            framing = max(known[link].frame_bytes, _LEAST_FRAME_BYTES.get(row["engine"], 0))
            wait_s = mean_wait_s(row["queue_packets"], row["throughput_bps"], packet_bytes)
            passing_s = mean_passing_s(known[link], direction, packet_bytes + framing)
            values.append((place, passing_s + wait_s))
    return sums[keys].assign(value=pd.Series(dict(values), dtype=float))


def crossings(scenario: Scenario) -> dict[str, list[tuple[Flow, bool]]]:
    """Return what crosses each direction of a link, by its name in the series: `bottleneck:ab`.

    Returns
    -------
    dict
        Flows, each with whether its acknowledgements cross, in the scenario's order.
    """
    paths = FlowPaths(scenario)
    found: dict[str, list[tuple[Flow, bool]]] = {}
    for flow in scenario.flows:
        ends = flow.source, flow.destination
        routes = [(ends, False)]
        if isinstance(flow, TcpFlow):
            routes.append((ends[::-1], True))
        for (start, end), acknowledges in routes:
            for link, direction in paths.links(start, end):
                found.setdefault(f"{link.id}:{direction}", []).append((flow, acknowledges))
    return found


def mean_packet_bytes(crossed: Crossing, received: Mapping[str, float]) -> float:
    """Return the mean size of the packets that cross a link, in IP bytes.

    Parameters
    ----------
    crossed
        What crosses it.
    received
        Flow to what arrived of it, in bit/s or any unit that all flows share.

    Returns
    -------
    float
        NaN if nothing arrived of any.
    """
    packets = octets = 0.0
    for flow, acknowledges in crossed:
        size = flow.packet_bytes
        count = received.get(flow.id, 0.0) / size
        if acknowledges and isinstance(flow, TcpFlow):
            size = flow.header_bytes
            count /= flow.delayed_ack_segments
        packets += count
        octets += count * size
    return octets / packets if packets > 0 else np.nan


def mean_wait_s(queue_packets: float, departed_bps: float, packet_bytes: float) -> float:
    """Return the mean time in a queue, in s: by Little's law, number over rate of departures.

    Parameters
    ----------
    queue_packets, departed_bps
        How many wait, in packets, and what departs, in bit/s: means, or sums of as many samples.
    packet_bytes
        The mean size of what departs.

    Returns
    -------
    float
        NaN if nothing departs.
    """
    return queue_packets * 8 * packet_bytes / departed_bps if departed_bps > 0 else np.nan


def mean_passing_s(link: Link, direction: str, packet_bytes: float) -> float:
    """Return the mean time of propagation and transmission over a direction of a link, in s.

    `packet_bytes` is the mean size on the wire; behind a shaper a packet passes at the line's rate.
    """
    transmission_s = 8 * packet_bytes / link.passing_bps(direction)
    return link.delay_s + link.jitter_s / 2 + transmission_s
