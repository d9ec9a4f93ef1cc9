"""Congestion: whether the alternatives that a test compares could differ at all.

Variants, queues and recoveries differ only where the network limits TCP. Runs without congestion
show the arithmetic of the configuration, window over round-trip time or the link's rate, whichever
alternative is in use. "How a verdict is reached" in configs/README.md has the rule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.metrics.metric import flow_subjects, monitored_links
from replication.metrics.metric_model import METRICS
from replication.metrics.results import Results
from replication.metrics.sampled import RUN, SHARE_AT_WINDOW
from replication.study.claim_model import Quantity, SimpleTest, TrendTest, ValueTest, sides
from replication.verdicts.comparison import matched_factors
from replication.verdicts.sample import Coverage
from replication.verdicts.wording import span

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
        runs = results.design[["scenario", "engine", "replicate"]]
        results.memo[_MEMO] = runs.merge(_limited(results, tcp.merge(lossless, on=RUN)), on=RUN)
    return results.memo[_MEMO]


def _limited(results: Results, tcp: pd.DataFrame) -> pd.DataFrame:
    """Return scenario and engine of the runs whose windows limit them or whose queues are empty."""
    if tcp.empty:
        return tcp[RUN]
    shares = results.values(SHARE_AT_WINDOW, None, flow_subjects(tcp)).groupby(RUN)["value"].min()
    runs = pd.DataFrame({"share": shares, "queue": _queues(results, tcp)})
    without = (runs["share"] > LIMITED_SHARE) | (runs["queue"] < STANDING_PACKETS)
    return runs.index[without].to_frame(index=False)


def _queues(results: Results, flows: pd.DataFrame) -> pd.Series[float]:
    """Return the largest mean of a monitored queue by scenario and engine."""
    links = monitored_links(results, flows)
    return results.values("queue_mean_packets", None, links).groupby(RUN)["value"].max()


@dataclass(frozen=True)
class ComparedPoints:
    """The points of a comparison of alternatives on one engine, by the levels of `factors`.

    `left_out` are those of the `total` at which the alternatives cannot differ, and `why` says in
    a sentence why not.
    """

    factors: list[str]
    total: int
    left_out: frozenset[str]
    why: str = ""

    @property
    def too_few(self) -> bool:
        """Whether fewer than half of the points remain."""
        return self.total - len(self.left_out) < LEAST_LEFT * self.total

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a quantity's values at the remaining points."""
        if not self.left_out:
            return frame
        return frame[[name not in self.left_out for name in _names(frame, self.factors)]]


def compared_points(coverage: Coverage, test: SimpleTest) -> ComparedPoints:
    """Return the points at which a test compares alternatives; none for other comparisons."""
    factors, runs = _compared_runs(coverage, test)
    if runs.empty:
        return ComparedPoints([], 0, frozenset())
    mostly = runs.groupby(["name", "side", "point"])["idle"].mean() > 0.5
    left_out = mostly.groupby(level="name").all()
    names = frozenset(left_out.index[left_out])
    idle = runs[runs["name"].isin(names)]
    why = _why(coverage, idle, len(names), len(left_out)) if names else ""
    return ComparedPoints(factors, len(left_out), names, why)


def alternatives_cannot_differ(coverage: Coverage, test: SimpleTest) -> dict[int, str]:
    """Return by replicate why the alternatives of a test cannot differ in its runs.

    A replicate in which they can, at half of the points or more, is not in it.
    """
    _, runs = _compared_runs(coverage, test)
    if runs.empty:
        return {}
    reasons = {}
    for replicate, group in runs.groupby("replicate"):
        left_out = group.groupby("name")["idle"].all()
        points = ComparedPoints([], len(left_out), frozenset(left_out.index[left_out]))
        if points.too_few:
            idle = group[group["name"].isin(points.left_out)]
            why = _why(coverage, idle, len(points.left_out), points.total)
            reasons[int(str(replicate))] = why
    return reasons


def _compared_runs(coverage: Coverage, test: SimpleTest) -> tuple[list[str], pd.DataFrame]:
    """Return the matched factors and the runs of a comparison of alternatives; else no run.

    The runs have side, `name`, that of the matched point, and `idle`, if they have no congestion.
    """
    compared = sides(test)
    none: tuple[list[str], pd.DataFrame] = [], pd.DataFrame()
    if isinstance(test, ValueTest | TrendTest) or not _are_alternatives(compared):
        return none
    factors = matched_factors(coverage.study, test)
    results = coverage.results
    of_sides = [coverage.ran(wanted).assign(side=n) for n, wanted in enumerate(compared)]
    runs = pd.concat(of_sides, ignore_index=True)
    if runs.empty:
        return none
    idle = runs_without_congestion(results)
    runs = runs.assign(
        name=_names(runs, factors),
        path=[_path(results.scenarios[scenario]) for scenario in runs["scenario"]],
        idle=runs["scenario"].isin(idle.loc[idle["engine"] == coverage.engine, "scenario"]),
    )
    runs = runs[runs.groupby("name")["side"].transform("nunique") == len(compared)]
    if runs.empty or (runs.groupby(["name", "replicate"])["path"].nunique() > 1).any():
        return none
    return factors, runs


def _are_alternatives(compared: Sequence[Quantity]) -> bool:
    """Return whether quantities are one metric of TCP flows, not of losses or queues."""
    first = compared[0]
    if first.metric in LOSSES or METRICS[first.metric].source == "queue":
        return False
    for wanted in compared:
        measure = wanted.metric, wanted.window_s
        if wanted.flows in ("cbr", "all") or measure != (first.metric, first.window_s):
            return False
    return True


def _names(frame: pd.DataFrame, factors: Sequence[str]) -> list[str]:
    return [",".join(keys) for keys in frame[list(factors)].to_numpy().tolist()]


def _path(scenario: Mapping[str, Any]) -> str:
    """Return links, other traffic and number of flows of a scenario, without its queues."""
    links = []
    for link in scenario["links"]:
        links.append({key: link[key] for key in link if not key.startswith("queue_")})
    rates = [flow.get("rate_bps") for flow in scenario["flows"]]
    return json.dumps([links, rates], sort_keys=True)


def _why(coverage: Coverage, idle: pd.DataFrame, points: int, total: int) -> str:
    """Return in a sentence why nothing can differ in these runs, with their windows and queues."""
    results, engine = coverage.results, coverage.engine
    runs = idle.loc[idle["idle"], ["scenario"]].drop_duplicates().assign(engine=engine)
    flows = results.flows[results.flows["kind"] == "tcp"].merge(runs, on=RUN)
    facts = results.scenario_flows.merge(flows[["scenario", "flow"]], on=["scenario", "flow"])
    windows = (facts["most"] / facts["segment"]).dropna()
    queues = _queues(results, flows).dropna()
    round_trips = flows["rtt_mean_s"].dropna()
    parts = []
    if len(windows) and windows.map(math.isfinite).all():
        parts.append(f"windows of {span(windows)} packets")
    state = []
    if len(queues):
        state.append(f"the queue holds {span(queues)} packets")
    if len(round_trips):
        state.append(f"the round trip is {_time(round_trips)}")
    if state:
        parts.append(" and ".join(state))
    where = f"{points} of {total} point{'s' if total > 1 else ''}"
    because = f": {'; '.join(parts)}" if parts else ""
    return f"The alternatives cannot differ at {where}, where no packet is lost{because}."


def _time(values_s: Iterable[float]) -> str:
    values = list(values_s)
    if max(values) < 1.0:
        return f"{span(1e3 * value for value in values)} ms"
    return f"{span(values)} s"
