"""Idleness: runs in which nothing presses on TCP, so that its algorithms cannot tell.

A run is *idle* if no TCP packet of it was dropped and, besides, every TCP flow was at its window in
more than half of its samples, or no packet waited on average: the mean of every monitored queue
is below one packet. What such runs show is the set-up's arithmetic, window over round-trip time or
the link's rate, whatever algorithm runs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from replication.measure.metric import RUN
from replication.measure.results import Results

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
    rows = [
        (scenario, flow["id"], _limit_bytes(flow))
        for scenario, document in results.scenarios.items()
        for flow in document["flows"]
        if "segment_bytes" in flow
    ]
    limits = pd.DataFrame(rows, columns=["scenario", "flow", "limit_bytes"])
    keys = [*RUN, "flow"]
    series = results.series.loc[results.series["cwnd_bytes"].notna(), [*keys, "cwnd_bytes"]]
    series = series.astype(dict.fromkeys(keys, object)).merge(limits, on=["scenario", "flow"])
    series["at_window"] = (series["cwnd_bytes"] >= series["limit_bytes"]).astype(float)
    return series.groupby(keys)["at_window"].mean().groupby(RUN).min()


def _limit_bytes(flow: dict[str, object]) -> float:
    """Return from which congestion window on a flow is at its largest, give or take a segment.

    A congestion window counts whole segments, the largest window whole bytes.
    """
    most, segment = flow.get("maximum_window_bytes"), flow["segment_bytes"]
    assert isinstance(segment, int | float)
    return most - segment if isinstance(most, int | float) else np.inf


def _queue(results: Results) -> pd.Series[float]:
    """Return the longest mean of a run's monitored queues, in packets."""
    series = results.series
    series = series[series["link"].notna() & (series["link"] != "")]
    means = series.groupby([*RUN, "link"], observed=True)["queue_packets"].mean()
    return means.groupby(RUN, observed=True).max().rename("queue_packets")
