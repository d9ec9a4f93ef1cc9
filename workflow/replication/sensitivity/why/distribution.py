"""Distributions: how near runs of a set-up come to published traces, as wholes and not by figures.

A figure of a trace is one number of one run that chance decides too. Here all of a flow's samples
stand beside those of ours: the first Wasserstein distance between their distributions, for the
window as in `measure.window`, for the round trip over the whole run (`ss` prints the smoothed one,
our series the last sample), and for the count of retransmissions, which is one number, the mean
distance of our replicates' from it. Nothing here is scored: it judges what was found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replication.compare.published_trace import published_flows
from replication.compare.trace_comparison import TraceComparison, compare_flows
from replication.measure.results import Results
from replication.measure.window import DISTANCE
from replication.study.study import Study

#: Metric to unit, in the order of tables.
UNITS = {"window": "segments", "round trip": "s", "retransmissions": "packets"}


@dataclass(frozen=True)
class Distance:
    """How far our flows are from one of a published trace.

    Attributes
    ----------
    trace, flow
        The published flow.
    metric, unit
        What is compared.
    before, after
        The distance at the documented defaults and under the explanation, mean over replicates.
    own
        That between the trace's own flows of one kind, a yardstick; None where there are none.
    """

    trace: str
    flow: str
    metric: str
    unit: str
    before: float
    after: float
    own: float | None


def distances(
    study: Study, published: Path, files: Mapping[str, Path], before: Results, after: Results
) -> list[Distance]:
    """Return the distances of two set-ups to each flow of a study's raw traces.

    Parameters
    ----------
    study, published
        The study and the CSV of its published numbers.
    files
        Raw traces by name; what is not there is left out.
    before, after
        Replicates of the defaults and of the explanation.
    """
    flows = [flow for flow in published_flows(study, published, files) if flow.samples is not None]
    found = []
    for one, two in zip(compare_flows(before, flows), compare_flows(after, flows), strict=True):
        pairs = zip(_of(one).items(), _of(two).values(), strict=True)
        for (metric, first), second in pairs:
            if math.isfinite(first) and math.isfinite(second):
                own = one.own_distance() if metric == "window" else math.nan
                place = one.published.trace, one.published.flow, metric, UNITS[metric]
                found.append(Distance(*place, first, second, own if math.isfinite(own) else None))
    return found


def _of(comparison: TraceComparison) -> dict[str, float]:
    """Return metric to distance, mean over replicates; NaN where the trace does not have it."""
    (engine,) = comparison.engines
    return {
        "window": float(np.mean(comparison.reproduced(DISTANCE, engine))),
        "round trip": comparison.rtt_distance(),
        "retransmissions": comparison.retransmission_distance(),
    }
