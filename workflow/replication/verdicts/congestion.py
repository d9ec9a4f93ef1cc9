"""Congestion: the points at which a comparison of alternatives could have come out differently.

"How a verdict is reached" in configs/README.md has the rule. Runs without congestion show only
arithmetic of the configuration: window over round-trip time, or the link's rate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.metrics.metric import monitored_links
from replication.metrics.metric_model import METRICS
from replication.metrics.results import Results
from replication.metrics.sampled import RUN, SHARE_AT_WINDOW
from replication.study.claim_model import Quantity, SimpleTest, TrendTest, ValueTest, sides
from replication.study.study import Study
from replication.verdicts.comparison import matched_factors

#: The window limits a flow that is at it in a larger share of its samples.
LIMITED_SHARE = 0.5
#: A queue with a smaller mean, in packets, counts as empty.
STANDING_PACKETS = 1.0
#: A comparison needs at least this share of its points.
LEAST_LEFT = 0.5
#: Metrics of losses; those of queues have the source "queue".
LOSSES = {"packets_dropped", "drops", "loss_rate", "retransmissions", "timeouts"}
_MEMO = "runs without congestion"


def runs_without_congestion(results: Results) -> pd.DataFrame:
    """Return scenario, engine and replicate of the runs without congestion."""
    if _MEMO not in results.memo:
        tcp = results.flows[results.flows["kind"] == "tcp"]
        drops = tcp.groupby(RUN)["packets_dropped"].sum()
        lossless = drops.index[drops == 0].to_frame(index=False)
        runs = results.design[["scenario", "engine", "replicate"]].merge(lossless, on=RUN)
        results.memo[_MEMO] = runs.merge(_limited(results, tcp.merge(lossless, on=RUN)), on=RUN)
    return results.memo[_MEMO]


def _limited(results: Results, tcp: pd.DataFrame) -> pd.DataFrame:
    """Return scenario and engine of the runs whose windows limit them or whose queues are empty."""
    if tcp.empty:
        return tcp[RUN]
    flows = tcp[[*RUN, "flow"]].rename(columns={"flow": "subject"})
    shares = results.values(SHARE_AT_WINDOW, None, flows).groupby(RUN)["value"].min()
    links = monitored_links(results, tcp)
    queues = results.values("queue_mean_packets", None, links).groupby(RUN)["value"].max()
    found = pd.DataFrame({"share": shares, "queue": queues})
    without = (found["share"] > LIMITED_SHARE) | (found["queue"] < STANDING_PACKETS)
    return found.index[without].to_frame(index=False)


@dataclass(frozen=True)
class ComparedPoints:
    """The points of a comparison of alternatives on one engine, by the levels of `factors`.

    `left_out` are those of the `total` that are without congestion.
    """

    factors: list[str]
    total: int
    left_out: frozenset[str]

    @property
    def too_few(self) -> bool:
        """Whether fewer than half of the points remain."""
        return self.total - len(self.left_out) < LEAST_LEFT * self.total

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a quantity's values at the remaining points."""
        if not self.left_out:
            return frame
        return frame[[name not in self.left_out for name in _names(frame, self.factors)]]

    def __str__(self) -> str:
        left = self.total - len(self.left_out)
        return f"{left} of {self.total} point{'s' if self.total > 1 else ''}"


def compared_points(
    study: Study, test: SimpleTest, results: Results, engine: str
) -> ComparedPoints:
    """Return the points at which a test compares alternatives; none for other comparisons."""
    none = ComparedPoints([], 0, frozenset())
    compared = sides(test)
    if isinstance(test, ValueTest | TrendTest) or not _are_alternatives(compared):
        return none
    factors = matched_factors(study, test)
    each = (results.runs(one.experiment, one.where, engine) for one in compared)
    runs = pd.concat([own.assign(side=n) for n, own in enumerate(each)], ignore_index=True)
    runs = runs[runs["supported"]]
    if runs.empty:
        return none
    idle = runs_without_congestion(results)
    runs = runs.assign(
        name=_names(runs, factors),
        path=[_path(results.scenarios[scenario]) for scenario in runs["scenario"]],
        idle=runs["scenario"].isin(idle.loc[idle["engine"] == engine, "scenario"]),
    )
    runs = runs[runs.groupby("name")["side"].transform("nunique") == len(compared)]
    if runs.empty or (runs.groupby(["name", "replicate"])["path"].nunique() > 1).any():
        return none
    mostly = runs.groupby(["name", "side", "point"])["idle"].mean() > 0.5
    left_out = mostly.groupby(level="name").all()
    return ComparedPoints(factors, len(left_out), frozenset(left_out.index[left_out]))


def _are_alternatives(compared: Sequence[Quantity]) -> bool:
    """Return whether quantities are one metric of TCP flows, not of losses or queues."""
    first = compared[0]
    return (
        first.metric not in LOSSES
        and METRICS[first.metric].source != "queue"
        and all(one.flows not in ("cbr", "all") for one in compared)
        and all((one.metric, one.window_s) == (first.metric, first.window_s) for one in compared)
    )


def _names(frame: pd.DataFrame, factors: Sequence[str]) -> list[str]:
    return [",".join(keys) for keys in frame[list(factors)].to_numpy().tolist()]


def _path(scenario: Mapping[str, Any]) -> str:
    """Return links, other traffic and number of flows of a scenario, without its queues."""
    links = [
        {key: value for key, value in link.items() if not key.startswith("queue_")}
        for link in scenario["links"]
    ]
    rates = [flow.get("rate_bps") for flow in scenario["flows"]]
    return json.dumps([links, rates], sort_keys=True)
