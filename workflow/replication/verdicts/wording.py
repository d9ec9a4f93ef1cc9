"""Tests and quantities in words: what is measured, its value, and the condition on it."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replication.metrics.metric_model import METRICS, capitalised, display_unit, metric_label
from replication.study.claim_model import (
    Claim,
    Condition,
    CrossoverTest,
    EquivalenceTest,
    PublishedRun,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    StartOrder,
    TrendTest,
    ValueTest,
    Where,
    flows_in_words,
)
from replication.study.parameter import Factor, Level
from replication.study.study import Study

#: Ids by which papers number their tables: 5.1, II, A3.
_NUMBERED = re.compile(r"[A-Z]?[\d.]+[a-z]?|[IVXLC]+")
_HOW = {"maximum": "largest", "minimum": "smallest", "sum": "total"}
_HOW_MANY = {"maximum": "most", "minimum": "fewest", "sum": "total"}
_DIFFERENCE = {"maximum": "Largest difference", "mean": "Mean difference"}


def table_names(study: Study) -> dict[str, str]:
    """Return the name of each table of a study, by its id."""
    return {table.id: table_name(table.id, table.title) for table in study.tables}


def table_name(table: str, title: str = "") -> str:
    """Return the name of a published table: its number, or its title if it has none."""
    if _NUMBERED.fullmatch(table) or not title:
        return "Numbers in the text" if table == "text" else f"Table {table}"
    return title


def statistic_unit(claim: Claim) -> str:
    """Return the unit of a claim's statistic, empty for ratios."""
    if not isinstance(claim.test, ValueTest) or claim.test.of.aggregate == "jain":
        return ""
    unit = METRICS[claim.test.of.metric].unit
    return "" if unit == "1" else unit


@dataclass(frozen=True)
class Wording:
    """A test in words."""

    #: What it measures, with a capital; a value times `factor` is shown in `unit`.
    statistic: str
    factor: float = 1.0
    unit: str = ""
    #: Whether it is a share of points, shown as a number of these if their total is known.
    is_share: bool = False
    #: What one value of the statistic comes from.
    sample: str = "run"

    def value(self, statistic: float, points: int = 0) -> str:
        """Return the statistic with its unit, as "3 of 4 points" for a share of `points`."""
        if math.isnan(statistic):
            return "undefined"
        if self.is_share and points:
            number = statistic * points
            if abs(number - round(number)) < 1e-6:
                return f"{round(number)} of {points} points"
        end = " of the points" if self.is_share else ""
        return f"{figure(statistic * self.factor)} {self.unit}".rstrip() + end

    def interval(self, low: float, high: float) -> str:
        """Return the ends of an interval, with the unit once."""
        return f"{figure(low * self.factor)} to {self.value(high)}"

    def condition(self, condition: Condition | PublishedRun, points: int = 0) -> str:
        """Return a condition on the statistic in words, over `points` if they are known."""
        if isinstance(condition, PublishedRun):
            return (
                f"the published {self.value(condition.published)} within the spread of our runs "
                f"and a factor of {condition.factor:g} of their mean"
            )
        low, high = condition.at_least, condition.at_most
        if self.is_share and low == 1:
            return f"{points} of {points}" if points else "all points"
        if self.is_share and high == 0:
            return f"0 of {points}" if points else "no point"
        if self.is_share:
            given = [("at least", low), ("at most", high)]
            ends = [f"{word} {100 * end:g} %" for word, end in given if end is not None]
            return f"{' and '.join(ends)} of the points"
        if low is None:
            return f"at most {self.value(high or 0)}"
        return f"at least {self.value(low)}" if high is None else self.interval(low, high)


def figure(value: float) -> str:
    """Return a number with four significant digits, without an exponent if that is readable."""
    if value == 0:
        return "0"
    if math.isinf(value):
        return "infinite"
    if 1e-4 <= abs(value) < 1e9:
        decimals = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.3e}"
    return text.replace("-", "−")


def span(values: Iterable[float]) -> str:
    """Return the range of values with three digits, as "141 to 168", or their only value."""
    ordered = sorted(values)
    ends = [figure(float(f"{value:.3g}")) for value in (ordered[0], ordered[-1])]
    return " to ".join(dict.fromkeys(ends))


def wording(study: Study, test: SimpleTest) -> Wording:
    """Return a test of a study in words."""
    if isinstance(test, TrendTest | ValueTest):
        phrase = f"{_noun(study, test.of)}{_of(study, test.of, {})}"
    else:
        left, right, shared = _sides(study, test.left, test.right)
    match test:
        case TrendTest():
            over = lower(study.experiment(test.of.experiment).factor(test.over).label)
            which = "Worst" if test.worst else "Mean"
            tied = _tied(test.tie)
            return Wording(f"{which} rank correlation of {phrase} with the {over}{tied}")
        case ValueTest():
            unit, factor = _shown_in(test.of)
            which = f", {_HOW[test.reduce]} of the points" if test.reduce in _HOW else ""
            return Wording(capitalised(phrase + which), factor, unit)
        case RatioTest():
            which = f", {_HOW[test.reduce]} ratio" if test.reduce in _HOW else ""
            if test.reduce == "ratio_of_means":
                which = ", ratio of the means"
            return Wording(capitalised(f"{left} divided by {right}{shared}{which}"), unit="times")
        case EquivalenceTest():
            means = ", means over all points" if test.reduce == "ratio_of_means" else ""
            difference = _DIFFERENCE.get(test.reduce, "Difference")
            return Wording(f"{difference} of {left} from {right}{shared}{means}", 100.0, "%")
        case ShareTest():
            times = "" if test.factor == 1 else f"{test.factor:g} times "
            said = f"{left} {test.relation} {times}{right}{shared}{_tied(test.tie)}"
            return Wording(capitalised(said), 100.0, "%", is_share=True)
        case CrossoverTest():
            crossed = study.experiment(test.left.experiment).factor(test.over)
            said = f"{crossed.label} at which {left} and {right} cross{shared}"
            return Wording(said, unit="" if crossed.unit == "1" else crossed.unit)


def _shown_in(wanted: Quantity) -> tuple[str, float]:
    if wanted.aggregate == "jain":
        return "", 1.0
    if wanted.metric == "loss_rate":
        return "%", 100.0
    unit, factor = display_unit(METRICS[wanted.metric].unit)
    return ("", 1.0) if unit == "1" else (unit, factor)


def amount(wanted: Quantity, value: float) -> str:
    """Return a value of a quantity with its unit."""
    unit, factor = _shown_in(wanted)
    return f"{figure(value * factor)} {unit}".rstrip()


def _tied(tie: float) -> str:
    return f" (a tie within {100 * tie:g} %)" if tie else ""


def lower(label: str) -> str:
    """Return a label for the middle of a sentence; abbreviations keep their capitals."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def flow_in_words(identifier: str) -> str:
    """Return a flow's id with the word "flow", if that is not in it."""
    return identifier if identifier.lower().startswith("flow") else f"flow {identifier}"


def levels_in_words(study: Study, experiment: str, where: Where) -> str:
    """Return levels by factor in words, names before numbers: "CUBIC, delay 40 to 80 ms"."""
    named, numeric = _split(study, experiment, where)
    return ", ".join([*named, *numeric])


def qualifier(study: Study, wanted: Quantity) -> str:
    """Return the flows, levels and window of a quantity in words."""
    levels = levels_in_words(study, wanted.experiment, wanted.where)
    parts = (_flows(wanted), levels, window_in_words(wanted).strip())
    return ", ".join(part for part in parts if part)


def window_in_words(wanted: Quantity) -> str:
    """Return " from 5 to 10 s", empty for the whole run."""
    return f" from {wanted.window_s[0]:g} to {wanted.window_s[1]:g} s" if wanted.window_s else ""


def _sides(study: Study, left: Quantity, right: Quantity) -> tuple[str, str, str]:
    """Return two quantities in words and, once, the levels that both have."""
    other = right.where if left.experiment == right.experiment else {}
    shared = {factor: keys for factor, keys in left.where.items() if other.get(factor) == keys}
    levels = levels_in_words(study, left.experiment, shared)
    nouns = [_noun(study, left), _noun(study, right)]
    of_left, of_right = _of(study, left, shared), _of(study, right, shared)
    if nouns[0] == nouns[1] and of_right:
        nouns[1] = "that"
    return f"{nouns[0]}{of_left}", f"{nouns[1]}{of_right}", f", {levels}" if levels else ""


def _of(study: Study, wanted: Quantity, shared: Where) -> str:
    """Return flows and levels, such as " of CUBIC at bottleneck delay 80 ms"."""
    where = {factor: keys for factor, keys in wanted.where.items() if factor not in shared}
    named, numeric = _split(study, wanted.experiment, where)
    who = ", ".join(part for part in (_flows(wanted), *named) if part)
    words = f" of {who}" if who else ""
    return f"{words} at {_joined(numeric)}" if numeric else words


def _noun(study: Study, wanted: Quantity) -> str:
    """Return what is measured, over which flows, on which links and when."""
    label = metric_label(wanted.metric)
    metric = METRICS[wanted.metric]
    how = wanted.aggregate
    if how == "jain":
        label = f"Jain's index of the flows' {label}"
    elif metric.source not in ("queue", "fairness") and _has_several(study, wanted):
        if how in _HOW:
            of = " of any flow" if how != "sum" else ""
            label = f"{(_HOW_MANY if metric.counts else _HOW)[how]} {label}{of}"
        else:
            label += " over all packets" if how == "pooled" else " per flow"
    return f"{label}{window_in_words(wanted)}"


def _has_several(study: Study, wanted: Quantity) -> bool:
    if isinstance(wanted.flows, StartOrder):
        return False
    if isinstance(wanted.flows, list):
        return len(wanted.flows) > 1
    templates = study.experiment(wanted.experiment).flows
    flows = [flow for flow in templates if wanted.flows in ("all", flow.get("kind"))]
    return len(flows) > 1 or any("repeat" in flow for flow in flows)


def _split(study: Study, experiment: str, where: Where) -> tuple[list[str], list[str]]:
    """Return levels in words: names alone, and numbers with their factor's label and unit."""
    named, numeric = [], []
    for factor in study.experiment(experiment).factors:
        chosen = [level for level in factor.levels if level.key in where.get(factor.id, [])]
        # "slow" is a name whatever its value.
        is_numeric = all(v.value is not None and v.label[:1].isdigit() for v in factor.levels)
        if chosen and is_numeric:
            numeric.append(_numbers(factor, chosen))
        elif chosen:
            named.append(_joined([level.label for level in chosen]))
    return named, numeric


def _flows(wanted: Quantity) -> str:
    if isinstance(wanted.flows, list):
        if len(wanted.flows) > 1:
            return f"flows {', '.join(wanted.flows)}"
        return flow_in_words(wanted.flows[0])
    known = {"tcp": "", "cbr": "the CBR traffic", "all": "all flows"}
    return known[wanted.flows] if isinstance(wanted.flows, str) else flows_in_words(wanted.flows)


def _numbers(factor: Factor, chosen: Sequence[Level]) -> str:
    if len(chosen) == len(factor.levels) > 1:
        return f"every {lower(factor.label)}"
    numbers = [f"{level.value:g}" for level in chosen]
    first = factor.levels.index(chosen[0])
    is_run = len(chosen) > 2 and chosen == factor.levels[first : first + len(chosen)]
    said = f"{numbers[0]} to {numbers[-1]}" if is_run else _joined(numbers)
    unit = "" if factor.unit in ("", "1") else f" {factor.unit}"
    return f"{lower(factor.label)} {said}{unit}"


def _joined(words: Sequence[str]) -> str:
    if any(" and " in word for word in words[1:]):
        return "; ".join(words)
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
