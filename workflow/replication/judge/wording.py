"""Tests and quantities in words: the names of statistics that tables and pages show."""

from __future__ import annotations

from replication.measure.metric_model import METRICS
from replication.study.claim_model import (
    Claim,
    CrossoverTest,
    EquivalenceTest,
    Flows,
    OrderingTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    StartOrder,
    StepsTest,
    TrendTest,
    ValueTest,
    Where,
    flows_in_words,
)


def statistic_unit(claim: Claim) -> str:
    """Return the unit of a claim's statistic: most are ratios and have none."""
    if not isinstance(claim.test, ValueTest) or claim.test.of.aggregate == "jain":
        return ""
    unit = METRICS[claim.test.of.metric].unit
    return "" if unit == "1" else unit


def describe(test: SimpleTest) -> str:
    """Return the name of a test's statistic, for people."""
    if isinstance(test, RatioTest):
        how = test.reduce.replace("_", " ").replace("ratio of means", "ratio of the means")
        how = how if "ratio" in how else f"{how} ratio"
        return f"{how} of {name(test.left)} to {name(test.right)}"
    if isinstance(test, EquivalenceTest):
        return f"{test.reduce} relative difference of {name(test.left)} from {name(test.right)}"
    if isinstance(test, ShareTest):
        factor = "" if test.factor == 1 else f"{test.factor:g} times "
        sides = f"{name(test.left)} {test.relation} {factor}{name(test.right)}"
        return f"share of points with {sides}{_tied(test.tie)}"
    if isinstance(test, TrendTest):
        which = "worst" if test.worst else "mean"
        return f"{which} rank correlation of {name(test.of)} with {test.over}{_tied(test.tie)}"
    if isinstance(test, StepsTest):
        which = "worst" if test.worst else "mean"
        beyond = "" if test.factor == 1 else f" beyond {test.factor:g} times the last"
        change = f"{name(test.of)} {test.relation}{beyond}"
        return f"{which} share of steps over {test.over} at which {change}"
    if isinstance(test, CrossoverTest):
        return f"{test.over} at which {name(test.left)} and {name(test.right)} cross"
    if isinstance(test, OrderingTest):
        order = " > ".join(levels_in_words(item) for item in test.order)
        return f"rank agreement of {name(test.of)} with the order {order}{_tied(test.tie)}"
    return f"{test.reduce} of {name(test.of)}"


def _tied(tie: float) -> str:
    return f" (a tie: {100 * tie:g} %)" if tie else ""


def name(wanted: Quantity) -> str:
    """Return a quantity in words: its metric, and what tells it from others of that metric."""
    what = qualifier(wanted)
    return f"{wanted.metric} [{what}]" if what else wanted.metric


def qualifier(wanted: Quantity) -> str:
    """Return the flows, levels and window of a quantity in words."""
    flows = flows_in_words(wanted.flows)
    parts = [f"{wanted.aggregate} over {flows}"]
    source = METRICS[wanted.metric].source
    if source == "queue":
        parts = []
    elif source == "fairness" or _is_one(wanted.flows):
        parts = [flows]
    if wanted.where:
        parts.append(levels_in_words(wanted.where))
    if wanted.window_s is not None:
        parts.append(f"{wanted.window_s[0]:g} to {wanted.window_s[1]:g} s")
    return "; ".join(parts)


def _is_one(flows: Flows) -> bool:
    return isinstance(flows, StartOrder) or (isinstance(flows, list) and len(flows) == 1)


def levels_in_words(where: Where) -> str:
    """Return levels by factor in words."""
    return " ".join(f"{factor}={'|'.join(keys)}" for factor, keys in where.items())
