"""Idleness: runs in which nothing presses on TCP, so that its algorithms cannot tell.

A run is *idle* if no TCP packet of it was dropped and, besides, every TCP flow was at its window in
more than half of its samples, or no packet waited on average: the mean of every monitored queue
is below one packet. What such runs show is the set-up's arithmetic, window over round-trip time or
the link's rate, whatever algorithm runs.
"""

from __future__ import annotations

import pandas as pd

from replication.measure.metric import monitored_links
from replication.measure.results import Feature, Results
from replication.measure.sampled import RUN, SHARE_AT_WINDOW

#: A flow is at its window in this share of its samples or it is not limited by it.
LIMITED_SHARE = 0.5
#: Below this mean no queue stands, in packets.
STANDING_PACKETS = 1.0


def run_pressure(results: Results) -> pd.DataFrame:
    """Return what presses on TCP in each run.

    Parameters
    ----------
    results
        Results of one study.

    Returns
    -------
    pandas.DataFrame
        scenario, engine, drops (of TCP packets), at_window (the least share of samples, over the
        TCP flows, with a congestion window within a segment of the largest that the flow may use;
        NaN without samples), queue_packets (the longest mean of the monitored queues; NaN without
        any) and idle.
    """
    tcp = results.flows[results.flows["kind"] == "tcp"]
    drops = tcp.groupby(RUN)["packets_dropped"].sum().rename("drops")
    found = pd.concat([drops, _at_window(results), _queue(results)], axis=1).reset_index()
    limited = found["at_window"] > LIMITED_SHARE
    empty = found["queue_packets"] < STANDING_PACKETS
    return found.assign(idle=(found["drops"] == 0) & (limited | empty))


def _at_window(results: Results) -> pd.Series[float]:
    """Return the least share of a run's TCP flows' samples at the window."""
    tcp = results.flows[results.flows["kind"] == "tcp"]
    flows = tcp[[*RUN, "flow"]].rename(columns={"flow": "subject"})
    found = results.values(Feature(SHARE_AT_WINDOW), flows)
    return found.groupby(RUN)["value"].min().rename("at_window")


def _queue(results: Results) -> pd.Series[float]:
    """Return the longest mean of a run's monitored queues, in packets."""
    found = results.values(Feature("queue_mean_packets"), monitored_links(results, results.flows))
    return found.groupby(RUN)["value"].max().rename("queue_packets")
