"""Audit of published numbers: could they have been measured in the set-up the paper describes?

Findings:

- `impossible`: beyond a bound that rests on nothing but what the paper states, even with half the
  last printed digit in its favour;
- `suspicious`: within physics, but against our assumptions, against the trend the paper relies
  on, or repeated to the last digit where set-ups differ and chance would hardly do it;
- `consistent`: the check was made and found nothing.

Nothing here needs a run. Numbers are audited as the study reads them; `explore.finding` audits them
as an explanation reads them, in its own set-up.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import COUNTS
from replication.study.claim_model import flows_in_words
from replication.study.published import significant_digits
from replication.study.scenario import Flow, Scenario
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.bound import Configuration, configurations
from replication.verdicts.wording import table_name

SUSPICIOUS = "suspicious"
CONSISTENT = "consistent"

DELAYS = {"delay_mean_s", "delay_p95_s", "delay_s"}
ROUND_TRIPS = {"rtt_mean_s", "rtt_s"}
RATES = {"throughput_bps", "goodput_bps"}
RATIOS = {"delivery_ratio", "loss_rate"}
FAIRNESS = {"jain_mean"}
#: Fewer digits repeat by chance.
TELLING_DIGITS = 4
#: Expected number of chance repetitions below which one is suspicious.
CHANCE = 0.05
#: Relative slack for the rounding of decimal fractions.
_ROUNDING = 1e-9
#: A digit alone is shared too often to tell anything.
LEAST_DECIMALS = 2
#: Spread of the values, in printed units, from which on their decimals are spread evenly.
LEAST_SPREAD = 3.0
_PRINTED = re.compile(r"\d+\.(\d+)")
#: A strict and a full bound (`verdicts.bound`), and what is said beyond either, and within both.
Bounds = tuple[float, float]
Reasons = tuple[str, str, str]


@dataclass(frozen=True)
class Finding:
    """One row of audit.csv; `bound` is NaN where a check has no number to compare with."""

    study: str
    table: str
    row: str
    column: str
    check: str
    published: float
    bound: float
    finding: str
    reason: str


@dataclass(frozen=True)
class _Audited:
    """A published cell and the set-ups of the points that it stands for."""

    study: Study
    cell: MappedCell
    points: list[Configuration]

    @property
    def measure(self) -> str:
        """What is measured at the points, as text."""
        wanted = self.cell.quantity
        flows = flows_in_words(wanted.flows)
        links = f" {', '.join(wanted.links)}" if wanted.links else ""
        return f"{wanted.metric} {wanted.aggregate} {flows} {wanted.window_s}{links}"

    @property
    def scenarios(self) -> list[Scenario]:
        return [point.scenario for point in self.points]

    def flows(self, point: Configuration) -> list[Flow]:
        return point.flows(self.cell.quantity.flows)

    def finding(self, check: str, bound: float, finding: str, reason: str) -> Finding:
        cell = self.cell
        return Finding(self.study.id, *cell.key, check, cell.value, bound, finding, reason)

    def within(
        self, check: str, is_beyond: Callable[[float], bool], bounds: Bounds, reasons: Reasons
    ) -> Finding:
        """Return whether a value is beyond the strict bound, or only beyond the full one."""
        strict, full = bounds
        if is_beyond(strict):
            return self.finding(check, strict, Verdict.IMPOSSIBLE, reasons[0])
        if is_beyond(full):
            return self.finding(check, full, SUSPICIOUS, reasons[1])
        return self.finding(check, full, CONSISTENT, reasons[2])


def audit_study(study: Study, cells: list[MappedCell], assumed: bool = False) -> list[Finding]:
    """Run every check on every mapped cell: those of single cells first, in the cells' order.

    With `assumed` the rates and delays that the study assumes count as stated: whoever explains
    numbers by a configuration holds that it was the paper's.
    """

    @functools.cache
    def points(place: str) -> list[Configuration]:
        experiment, where = json.loads(place)
        return configurations(study, experiment, where, assumed)

    # The checks are of values that a run can have; a standard deviation is none.
    kept = [cell for cell in cells if not cell.is_spread]
    audited = [_Audited(study, cell, points(_place(cell))) for cell in kept]
    singles = (_check_delay, _check_rate, _check_range, _check_count)
    findings = [finding for one in audited for check in singles for finding in check(one)]
    groups = (_check_capacity_sums, _check_repetitions, _check_monotonic)
    return findings + [finding for check in groups for finding in check(audited)]


def impossible_cells(findings: Iterable[Finding]) -> dict[tuple[str, str, str], str]:
    """Return table, row and column of each value that cannot be as stated, with the reason."""
    return {
        (one.table, one.row, one.column): one.reason
        for one in findings
        if one.finding == Verdict.IMPOSSIBLE
    }


def _place(cell: MappedCell) -> str:
    return json.dumps([cell.quantity.experiment, cell.quantity.where], sort_keys=True)


def _check_delay(one: _Audited) -> Iterator[Finding]:
    """A delay is at least the propagation delay of the quickest path of any flow."""
    metric = one.cell.quantity.metric
    paths = [(point, flow) for point in one.points for flow in one.flows(point)]
    if metric not in DELAYS | ROUND_TRIPS or not paths:
        return
    what, least_s = (
        ("one-way", Configuration.delay_s)
        if metric in DELAYS
        else ("round-trip", Configuration.rtt_s)
    )
    bounds = _bounds(lambda strict: min(least_s(point, flow, strict) for point, flow in paths))
    strict, full = (f"{1e3 * bound:.6g} ms" for bound in bounds)
    shown, high = f"{1e3 * one.cell.value:.6g} ms", one.cell.band[1]
    reasons = (
        f"{shown} is below the {what} propagation delay of the published links, {strict}.",
        f"{shown} is below propagation and transmission, {full}; that bound rests on assumed "
        "packet sizes, rates or delays.",
        f"Not below the path's {full}.",
    )
    yield one.within("propagation", lambda s: high < s * (1 - _ROUNDING), bounds, reasons)


def _check_rate(one: _Audited) -> Iterator[Finding]:
    """A throughput is at most what the links carry."""
    aggregate = one.cell.quantity.aggregate
    points = [point for point in one.points if one.flows(point)]
    if one.cell.quantity.metric not in RATES or aggregate == "jain" or not points:
        return

    def bound(strict: bool) -> float:
        return max(_rate_bound(point, one.flows(point), aggregate, strict) for point in points)

    yield _capacity(one, "capacity", one.cell.band[0], one.cell.value, _bounds(bound))


def _bounds(bound: Callable[[bool], float]) -> Bounds:
    return bound(True), bound(False)


def _rate_bound(point: Configuration, flows: list[Flow], aggregate: str, strict: bool) -> float:
    if aggregate == "maximum":
        return max(point.rate_bps(flow, strict) for flow in flows)
    total = point.total_rate_bps(flows, strict)
    # The smallest of some numbers is not above their mean.
    return total if aggregate == "sum" else total / len(flows)


def _capacity(one: _Audited, check: str, low: float, value: float, bounds: Bounds) -> Finding:
    shown, strict, full = (f"{rate / 1e3:.6g} kbit/s" for rate in (value, *bounds))
    reasons = (
        f"{shown} is more than the published links can carry, {strict}: as rates of delivery these "
        "cannot be (a sender's count includes what is still buffered).",
        f"{shown} is more than {full}, a bound that rests on assumptions.",
        f"Not above the links' {full}.",
    )
    return one.within(check, lambda bound: low > bound * (1 + _ROUNDING), bounds, reasons)


def _check_range(one: _Audited) -> Iterator[Finding]:
    """Ratios lie in 0 to 1, Jain's index in 1/n to 1, everything else is not negative."""
    wanted = one.cell.quantity
    low, high = one.cell.band
    least, most = 0.0, math.inf
    if wanted.aggregate == "jain" or wanted.metric in FAIRNESS:
        numbers = [len(one.flows(point)) for point in one.points]
        least, most = 1 / max([1, *numbers]), 1.0
    elif wanted.metric in RATIOS and wanted.aggregate != "sum":
        most = 1.0
    if high < least - _ROUNDING or low > most + _ROUNDING:
        bound, span = least if high < least else most, f"{least:g} to {most:g}"
        reason = f"{one.cell.value:.6g} lies outside {span}, the range of the metric."
        yield one.finding("range", bound, Verdict.IMPOSSIBLE, reason)
    elif math.isfinite(most):
        reason = f"Inside {least:.4g} to {most:g}."
        yield one.finding("range", most, CONSISTENT, reason)


def _check_count(one: _Audited) -> Iterator[Finding]:
    """A count is a whole number, a mean over n flows a multiple of 1/n."""
    wanted = one.cell.quantity
    if wanted.metric not in COUNTS or wanted.aggregate in ("pooled", "jain"):
        return
    parts = {len(one.flows(point)) for point in one.points} if wanted.aggregate == "mean" else {1}
    low, high = one.cell.band
    whole = any(
        math.ceil(low * n - _ROUNDING) <= math.floor(high * n + _ROUNDING) for n in parts if n
    )
    finding, reason = CONSISTENT, "A whole number of events."
    if not whole and len(one.points) == 1:
        repetitions = one.study.original_system.repetitions
        reason = f"Not a whole number of events, but of several runs: {repetitions}"
        if not repetitions:
            finding = SUSPICIOUS
            reason = (
                "Not a whole number of events: it can only be a mean over runs, which is not said."
            )
    yield one.finding("whole_number", math.nan, finding, reason)


def _check_capacity_sums(audited: list[_Audited]) -> Iterator[Finding]:
    """Throughputs of different flows at one point add up to no more than the links carry."""
    groups: dict[str, list[_Audited]] = {}
    for one in audited:
        wanted = one.cell.quantity
        if wanted.metric in RATES and len(one.points) == 1:
            key = [one.cell.table, wanted.experiment, wanted.where, wanted.metric, wanted.window_s]
            groups.setdefault(json.dumps(key, sort_keys=True), []).append(one)
    for group in groups.values():
        times = [_times_counted(one) for one in group]
        point = group[0].points[0]
        flows = [flow for one in group for flow in one.flows(point)]
        if len(group) < 2 or 0 in times or len({f.id for f in flows}) < len(flows):
            continue
        value = sum(n * one.cell.value for n, one in zip(times, group, strict=True))
        low = sum(n * one.cell.band[0] for n, one in zip(times, group, strict=True))
        bounds = _bounds(functools.partial(point.total_rate_bps, flows))
        found = _capacity(group[0], "capacity_sum", low, value, bounds)
        row, column = ("+".join(dict.fromkeys(one.cell.key[n] for one in group)) for n in (1, 2))
        yield replace(found, row=row, column=column, published=value)


def _times_counted(one: _Audited) -> int:
    """Return how often a value counts in the sum of its flows' rates; 0 if that is not known."""
    number = len(one.flows(one.points[0]))
    if number == 1 or one.cell.quantity.aggregate == "sum":
        return 1
    return number if one.cell.quantity.aggregate == "mean" else 0


def _check_repetitions(audited: list[_Audited]) -> Iterator[Finding]:
    """Set-ups that differ do not give the same last digit, but for chance."""
    groups: dict[tuple[str, str], list[_Audited]] = {}
    cells_by_place: dict[str, dict[str, MappedCell]] = {}
    for one in audited:
        if one.cell.is_derived:
            continue
        table, row, column = one.cell.key
        cells_by_place.setdefault(_place(one.cell), {})[one.measure] = one.cell
        for name, key in (
            ("repeated_in_column", f"{table} {column}"),
            ("repeated_in_row", f"{table} {row}"),
            ("repeated_across_tables", f"{row} {column}"),
        ):
            groups.setdefault((name, f"{key} {one.measure}"), []).append(one)
    for (name, _), group in groups.items():
        if name != "repeated_across_tables" or len({one.cell.table for one in group}) > 1:
            yield from _repetitions(name, group, cells_by_place)


def _repetitions(
    check: str, group: list[_Audited], cells_by_place: dict[str, dict[str, MappedCell]]
) -> Iterator[Finding]:
    expected = _chance_repetitions(group)
    for one in group:
        twins = [
            other
            for other in group
            if other.cell.printed == one.cell.printed and one.scenarios != other.scenarios
        ]
        # Ratios of 0 and 1 are what lossless runs have in common.
        if not twins or one.cell.value in (0.0, 1.0):
            continue
        names = "; ".join(
            f"{table_name(other.table)}, {other.row_label}, {other.column_label}"
            for other in (twin.cell for twin in twins)
        )
        excuses = {_excuse(one, other, cells_by_place) for other in twins}
        telling = significant_digits(one.cell.printed) >= TELLING_DIGITS
        finding, end = CONSISTENT, "; with so few digits or so many numbers this may be chance."
        if "" not in excuses:
            end = f": {' or '.join(sorted(excuses))}."
        elif telling and expected < CHANCE:
            finding = SUSPICIOUS
            chance = f"chance alone predicts {expected:.2g} such pairs."
            end = f", where the set-up differs; {chance}"
        reason = f"{one.cell.printed} is printed again in {names}{end}"
        yield one.finding(check, math.nan, finding, reason)


def _excuse(a: _Audited, b: _Audited, cells_by_place: dict[str, dict[str, MappedCell]]) -> str:
    """Return why two set-ups may well give the same number; empty if there is no reason."""
    if [p.signature for p in a.points] == [p.signature for p in b.points]:
        return "the same links in another order, which may give the same result"
    if [p.network for p in a.points] != [p.network for p in b.points]:
        return ""
    ours, theirs = (cells_by_place[_place(one.cell)] for one in (a, b))
    if any(ours[m].printed != theirs[m].printed for m in ours.keys() & theirs.keys()):
        return ""  # the two runs did differ: other numbers of theirs do
    return "algorithms that never had to act differently, as without loss, give the same result"


def _chance_repetitions(group: list[_Audited]) -> float:
    """Return how many pairs would agree to the last digit if values were spread evenly."""
    pairs = sum(a.scenarios != b.scenarios for a, b in itertools.combinations(group, 2))
    values = [one.cell.value for one in group]
    spread = max(values) - min(values) or max(abs(v) for v in values)
    return pairs * 2 * max(one.cell.half_ulp for one in group) / spread if spread else math.inf


def _check_monotonic(audited: list[_Audited]) -> Iterator[Finding]:
    """Where the mapping declares a trend along the rows, the numbers follow it."""
    columns: dict[tuple[str, str], dict[str, _Audited]] = {}
    for one in audited:
        if one.cell.cell.monotonic is not None:
            columns.setdefault((one.cell.table, one.cell.column), {})[one.cell.row] = one
    for (table_id, _), by_row in columns.items():
        study = next(iter(by_row.values())).study
        table = next(table for table in study.tables if table.id == table_id)
        rows = list(table.rows or {})
        if table.row_factor is not None:
            levels = study.experiment(table.experiment).factor(table.row_factor).levels
            rows = [level.key for level in sorted(levels, key=lambda level: level.value or 0.0)]
        for before, after in itertools.pairwise(by_row[row] for row in rows if row in by_row):
            yield _step(before.cell, after)


def _step(earlier: MappedCell, after: _Audited) -> Finding:
    later, word = after.cell, str(after.cell.cell.monotonic)
    first, second = (earlier, later) if word == "increasing" else (later, earlier)
    finding, reason = CONSISTENT, f"{word.capitalize()} from row {earlier.row}."
    if second.band[1] < first.band[0]:
        finding = SUSPICIOUS
        reason = f"Declared {word}, but row {earlier.row} has {earlier.value:.6g}."
    return after.finding("monotonic", earlier.value, finding, reason)


def check_decimals(study: Study, cells: Sequence[MappedCell]) -> Iterator[Finding]:
    """Yield the values that share their decimals with others more often than chance would have it.

    The decimals of independent measurements are spread evenly once the values differ by some units:
    those that end alike may be one measurement whose integer was changed. Values that are equal as
    a whole count once: they are the business of another check.
    """
    columns: dict[tuple[str, str, int], list[MappedCell]] = {}
    for cell in cells:
        found = _PRINTED.fullmatch(cell.printed)
        if found is not None and len(found[1]) >= LEAST_DECIMALS:
            columns.setdefault((cell.column, cell.cell.metric, len(found[1])), []).append(cell)
    for (_, _, places), members in columns.items():
        values = {cell.printed for cell in members}
        numbers = [float(value) for value in values]
        if max(numbers) - min(numbers) < LEAST_SPREAD:
            continue
        for decimals in dict.fromkeys(cell.printed.split(".")[1] for cell in members):
            alike = {value for value in values if value.endswith(f".{decimals}")}
            expected = expected_groups(len(values), len(alike), places)
            if len(alike) > 1 and expected < CHANCE:
                reason = (
                    f"{len(alike)} of {len(values)} different values end in .{decimals}; "
                    f"chance alone predicts {expected:.2g} such groups."
                )
                for cell in (cell for cell in members if cell.printed in alike):
                    one = _Audited(study, cell, [])
                    yield one.finding("shared_decimals", math.nan, SUSPICIOUS, reason)


def expected_groups(values: int, alike: int, places: int) -> float:
    """Return how many groups of `alike` among `values` would share `places` decimals by chance."""
    return float(math.comb(values, alike) * 10.0 ** (-places * (alike - 1)))
