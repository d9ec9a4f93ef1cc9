"""Pairs: the single comparisons that a test is made of, and which of them could not differ.

A pair is two values of one replicate: matched points of two sides, neighbouring levels (steps), any
two levels (trend) or items (ordering); a point with itself where a test reads a value alone. It is
*idle* in a replicate for one of `REASONS`, and idle if it is in most replicates.

A run is *idle* if no TCP packet of it was dropped and, besides, every TCP flow was at its window in
more than half of its samples, or no packet waited on average: the mean of every monitored queue
is below one packet. What such runs show is the set-up's arithmetic, window over round-trip time or
the link's rate, whatever algorithm runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.metric import monitored_links, quantity
from replication.metrics.results import Feature, Results
from replication.metrics.sampled import RUN, SHARE_AT_WINDOW
from replication.study.claim_model import (
    CrossoverTest,
    OrderingTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    StepsTest,
    TrendTest,
    ValueTest,
)
from replication.study.study import Study
from replication.verdicts.comparison import UntestableError, level_values, matched_factors

#: A flow is at its window in this share of its samples or it is not limited by it.
LIMITED_SHARE = 0.5
#: Below this mean no queue stands, in packets.
STANDING_PACKETS = 1.0
#: Relative difference up to which two values are equal.
TIE = 0.005
#: Why a pair is idle: both runs are; both values are zero, or the right
#: one is and a multiple of it is asked for; the values are equal and neither run lost a packet; or
#: a count of losses is zero where no run of the experiment has one.
REASONS = {
    "idle": "no loss, and every flow at its window or no queue",
    "zero": "zero against zero or a multiple of it",
    "tie": "no loss, and equal within 0.5 %",
    "lossless": "no loss in any run of the experiment",
}
#: Metrics that are zero where nothing is lost.
LOSSES = {
    "packets_dropped",
    "drops",
    "queue_drops",
    "loss_rate",
    "retransmissions",
    "timeouts",
}
#: What presses on TCP in a value's run, and what else stands beside each value.
PRESSURE = ("drops", "at_window", "queue_packets", "idle")
CARRIED = ("point", *PRESSURE, "lossless")
#: Returns a quantity's values on one engine: replicate, factors, value and `CARRIED`.
Frames = Callable[[Quantity], pd.DataFrame]


def run_pressure(results: Results) -> pd.DataFrame:
    """Return scenario, engine, drops, at_window, queue_packets and idle of each run of a study.

    Drops are of TCP packets. `at_window` is the least share of samples, over the TCP flows, with a
    window within a segment of the largest; `queue_packets` the longest mean of the monitored
    queues. NaN where there are none.
    """
    tcp = results.flows[results.flows["kind"] == "tcp"]
    flows = tcp[[*RUN, "flow"]].rename(columns={"flow": "subject"})
    shares = results.values(Feature(SHARE_AT_WINDOW), flows)
    links = monitored_links(results, results.flows)
    queues = results.values(Feature("queue_mean_packets"), links)
    columns = {
        "drops": tcp.groupby(RUN)["packets_dropped"].sum(),
        "at_window": shares.groupby(RUN)["value"].min(),
        "queue_packets": queues.groupby(RUN)["value"].max(),
    }
    found = pd.concat(columns, axis=1).reset_index()
    limited = found["at_window"] > LIMITED_SHARE
    empty = found["queue_packets"] < STANDING_PACKETS
    return found.assign(idle=(found["drops"] == 0) & (limited | empty))


def frames_on(results: Results, pressure: pd.DataFrame, engine: str) -> Frames:
    """Return what looks quantities up on one engine; `pressure` is that of `run_pressure`."""
    ours = pressure[pressure["engine"] == engine].set_index("scenario")
    runs_drops = results.design["scenario"].map(ours["drops"])
    drops = runs_drops.groupby(results.design["experiment"]).sum()
    known: dict[str, pd.DataFrame] = {}

    def frames(wanted: Quantity) -> pd.DataFrame:
        key = wanted.model_dump_json()
        if key not in known:
            known[key] = found(wanted)
        return known[key]

    def found(wanted: Quantity) -> pd.DataFrame:
        frame = quantity(results, wanted)
        frame = frame[(frame["engine"] == engine) & frame["value"].notna()].drop(columns="engine")
        if frame.empty:
            raise UntestableError(f"no run gives {wanted.metric}.")
        factors = factors_of(frame)
        runs = results.runs(wanted.experiment, wanted.where)
        runs = runs.loc[runs["engine"] == engine, ["scenario", "replicate", *factors]]
        frame = frame.merge(runs, on=["replicate", *factors])
        pressed = ours.reindex(frame["scenario"])
        return frame.drop(columns="scenario").assign(
            point=[json.dumps(r, sort_keys=True) for r in frame[factors].to_dict("records")],
            lossless=drops[wanted.experiment] == 0,
            **{name: pressed[name].to_numpy() for name in PRESSURE},
        )

    return frames


def factors_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that tell a frame's points apart."""
    return [str(c) for c in frame if c not in ("replicate", "value", *CARRIED)]


def compared_pairs(study: Study, test: SimpleTest, frames: Frames) -> pd.DataFrame:
    """Return replicate, value, `CARRIED` of both sides, and reason of a test's pairs on one engine.

    `reason` is a key of `REASONS`, or empty where the pair is not idle.
    """
    if isinstance(test, TrendTest | StepsTest):
        pairs = _levels(study, test, frames(test.of))
    elif isinstance(test, OrderingTest):
        pairs = _items(test, frames)
    elif isinstance(test, ValueTest):
        alone = frames(test.of)
        pairs = _merged(alone, alone, factors_of(alone))
    else:
        matched = matched_factors(study, test.left, test.right)
        if isinstance(test, CrossoverTest) and test.over not in matched:
            matched.append(test.over)
        pairs = _merged(frames(test.left), frames(test.right), matched)
    return pairs.assign(reason=_reasons(test, pairs))


def _reasons(test: SimpleTest, pairs: pd.DataFrame) -> npt.NDArray[np.str_]:
    left, right = pairs["value_left"], pairs["value_right"]
    idle = pairs["idle_left"].eq(True) & pairs["idle_right"].eq(True)
    if isinstance(test, ValueTest):
        # A value that is set against a bound alone ties with nothing.
        lossless = pairs["lossless_left"] & (left == 0) & (test.of.metric in LOSSES)
        return np.select([idle, lossless], ["idle", "lossless"], "")
    multiple = isinstance(test, RatioTest) or (isinstance(test, ShareTest) and test.factor != 1)
    zero = (right == 0) & ((left == 0) | multiple)
    near = (left - right).abs() <= TIE * np.maximum(left.abs(), right.abs())
    tie = near & (pairs["drops_left"] == 0) & (pairs["drops_right"] == 0)
    return np.select([idle, zero, tie], ["idle", "zero", "tie"], "")


def _merged(left: pd.DataFrame, right: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Return the values of two sides that agree in replicate and `on`, side by side."""
    keys = ["replicate", *on]
    sides = [
        frame.rename(columns={c: f"{c}_{end}" for c in frame if c not in keys})
        for frame, end in ((left, "left"), (right, "right"))
    ]
    return sides[0].merge(sides[1], on=keys)


def _levels(study: Study, test: TrendTest | StepsTest, frame: pd.DataFrame) -> pd.DataFrame:
    """Return any two levels on the axis, or neighbours alone, of each combination of the others."""
    axis = frame[test.over].map(level_values(study, test.of.experiment, test.over))
    others = [name for name in factors_of(frame) if name != test.over]
    frame = frame.assign(place=axis.rank(method="dense"))
    pairs = _merged(frame, frame, others)
    steps = pairs["place_right"] - pairs["place_left"]
    return pairs[steps == 1 if isinstance(test, StepsTest) else steps > 0]


def _items(test: OrderingTest, frames: Frames) -> pd.DataFrame:
    """Return any two items of the order at the points that agree in what no item narrows."""
    narrowed = {factor for item in test.order for factor in item}
    items = [frames(test.of.at(item)) for item in test.order]
    return pd.concat(
        [
            _merged(left, right, [name for name in factors_of(left) if name not in narrowed])
            for rank, left in enumerate(items, start=1)
            for right in items[rank:]
        ],
        ignore_index=True,
    )
