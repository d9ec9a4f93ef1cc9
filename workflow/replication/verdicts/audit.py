"""Audit of published numbers: could they have been measured in the set-up the paper describes?

Findings:

- `impossible`: beyond a bound that rests only on what the paper states, even with half the last
  printed digit in the paper's favour;
- `suspicious`: physically possible, but beyond a bound that rests on assumptions, against a trend
  that the paper declares, or with digits that repeat more often than chance predicts;
- `consistent`: the check found nothing.

The audit needs no run. It reads numbers as the study maps them; `explore.finding` audits them under
an explanation's interpretation.
"""

import functools
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import COUNTS, largest
from replication.study.published import DERIVED, significant_digits
from replication.study.scenario import Flow, Scenario
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.bound import StatedPoint, stated_points
from replication.verdicts.wording import table_name

SUSPICIOUS = "suspicious"
CONSISTENT = "consistent"
#: The check of a sum of numbers, which are impossible together and not each.
CAPACITY_SUM = "capacity_sum"

DELAYS = {"delay_mean_s", "delay_p95_s", "delay_s"}
ROUND_TRIPS = {"rtt_mean_s", "rtt_s", "rtt_peak_s"}
RATES = ("throughput_bps", "goodput_bps")
#: Numbers with fewer digits repeat by chance.
TELLING_DIGITS = 4
#: A repetition is suspicious if chance predicts fewer than this many.
CHANCE = 0.05
#: Relative slack for the rounding of decimal fractions.
_ROUNDING = 1e-9
#: Decimals are spread evenly if the values range over this many printed units.
LEAST_SPREAD = 3.0
#: Reasons of a rate; see `_Audited.bounded`.
_TOO_FAST = (
    "{value} is more than the published links can carry, {strict}, so it cannot be a rate of "
    "delivery (a sender's count includes what is still buffered).",
    "{value} is more than {full}, a bound that rests on assumptions.",
    "It does not exceed what the links carry, {full}.",
)
_BY_CHANCE = "chance alone predicts {:.2g} such {}."
#: Values with fewer than two decimals share them too often.
_PRINTED = re.compile(r"\d+\.(\d{2,})")


@dataclass(frozen=True)
class Finding:
    """One row of audit.csv; `bound` is NaN if the check compares with no number."""

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
    """A published cell and the points that it describes."""

    study: Study
    cell: MappedCell
    points: list[StatedPoint]

    @property
    def measure(self) -> str:
        """What is measured at the points, as text."""
        return self.cell.quantity.model_dump_json(exclude={"experiment", "where"})

    @property
    def scenarios(self) -> list[Scenario]:
        return [point.scenario for point in self.points]

    def flows(self, point: StatedPoint) -> list[Flow]:
        return point.flows(self.cell.quantity.flows)

    def finding(self, check: str, bound: float, finding: str, reason: str) -> Finding:
        cell = self.cell
        return Finding(self.study.id, *cell.key, check, cell.value, bound, finding, reason)

    def printed(self, scale: float = 1.0) -> str:
        """Return the number times a `scale`, and the factor that is in it, if there is one."""
        factor = self.cell.cell.factor
        number = f"{scale * self.cell.value / factor:.6g}"
        return number if factor == 1 else f"{number} × {factor:g}"

    def bounded(self, check: str, bounds: Iterable[float], reasons: Sequence[str]) -> Finding:
        """Compare the value with a strict and a full bound: the least delay or the largest rate.

        `reasons` are templates: beyond the strict bound, beyond the full bound only, within both.
        """
        strict, full = bounds
        (value, high), sign, unit, scale = self.cell.band, 1, "kbit/s", 1e-3
        if check == "propagation":
            value, sign, unit, scale = high, -1, "ms", 1e3
        beyond = [sign * value > sign * end * (1 + sign * _ROUNDING) for end in (strict, full)]
        place = [*beyond, True].index(True)
        finding = (Verdict.IMPOSSIBLE, SUSPICIOUS, CONSISTENT)[place]
        bounds_of = {"strict": strict, "full": full}
        shown = {name: f"{scale * number:.6g} {unit}" for name, number in bounds_of.items()}
        shown["value"] = f"{self.printed(scale)} {unit}"
        bound = full if place else strict
        return self.finding(check, bound, finding, reasons[place].format(**shown))


def audit_study(study: Study, cells: list[MappedCell], assumed: bool = False) -> list[Finding]:
    """Run every check on every mapped cell: checks of single cells first, in the cells' order.

    With `assumed`, assumed rates and delays count as stated, as an explanation takes them.
    """

    @functools.cache
    def points(experiment: str, where: str) -> list[StatedPoint]:
        return stated_points(study, experiment, json.loads(where), assumed)

    audited = []
    for cell in cells:
        # The checks concern values of single runs, and a standard deviation is none.
        if not cell.is_spread:
            where = json.dumps(cell.quantity.where, sort_keys=True)
            audited.append(_Audited(study, cell, points(cell.quantity.experiment, where)))
    singles = (_check_delay, _check_rate, _check_range, _check_count)
    findings = [finding for one in audited for check in singles for finding in check(one)]
    groups = (_check_capacity_sums, _check_repetitions, _check_monotonic)
    return findings + [finding for check in groups for finding in check(audited)]


def impossible_cells(findings: Iterable[Finding]) -> dict[tuple[str, str, str], str]:
    """Return the reason for each impossible value, by table, row and column."""
    return {
        (one.table, one.row, one.column): one.reason
        for one in findings
        if one.finding == Verdict.IMPOSSIBLE
    }


def _check_delay(one: _Audited) -> Iterator[Finding]:
    """A delay is at least the propagation delay of the quickest path of any flow."""
    metric = one.cell.quantity.metric
    paths = [(point, flow) for point in one.points for flow in one.flows(point)]
    if metric not in DELAYS | ROUND_TRIPS or not paths:
        return
    way, least_s = "one-way", StatedPoint.delay_s
    if metric in ROUND_TRIPS:
        way, least_s = "round-trip", StatedPoint.rtt_s
    bounds = (min(least_s(*path, strict) for path in paths) for strict in (True, False))
    reasons = (
        f"{{value}} is below the {way} propagation delay of the published links, {{strict}}.",
        "{value} is below propagation and transmission, {full}; this bound rests on assumed packet "
        "sizes, rates or delays.",
        "It is not below the delay of the path, {full}.",
    )
    yield one.bounded("propagation", bounds, reasons)


def _check_rate(one: _Audited) -> Iterator[Finding]:
    """A throughput is at most what the links carry."""
    aggregate = one.cell.quantity.aggregate
    points = [point for point in one.points if one.flows(point)]
    if one.cell.quantity.metric not in RATES or aggregate == "jain" or not points:
        return

    def bound_bps(point: StatedPoint, strict: bool) -> float:
        flows = one.flows(point)
        if aggregate == "maximum":
            return max(point.rate_bps(flow, strict) for flow in flows)
        total = point.total_rate_bps(flows, strict)
        # The minimum is at most the mean.
        return total if aggregate == "sum" else total / len(flows)

    bounds = (max(bound_bps(point, strict) for point in points) for strict in (True, False))
    yield one.bounded("capacity", bounds, _TOO_FAST)


def _check_range(one: _Audited) -> Iterator[Finding]:
    """A ratio lies in 0 to 1, Jain's index in 1/n to 1; no other value is negative."""
    wanted = one.cell.quantity
    low, high = one.cell.band
    least, most = 0.0, largest(wanted.metric, wanted.aggregate)
    if wanted.aggregate == "jain" or wanted.metric == "jain_mean":
        least = 1 / max([1, *(len(one.flows(point)) for point in one.points)])
    if high < least - _ROUNDING or low > most + _ROUNDING:
        bound, span = least if high < least else most, f"{least:g} to {most:g}"
        reason = f"{one.printed()} lies outside {span}, the range of the metric."
        yield one.finding("range", bound, Verdict.IMPOSSIBLE, reason)
    elif math.isfinite(most):
        reason = f"It lies within {least:.4g} to {most:g}."
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
    finding, reason = CONSISTENT, "It is a whole number of events."
    if not whole and len(one.points) == 1:
        reason = "It is not a whole number of events, "
        if repetitions := one.study.original_system.repetitions:
            reason += f"but comes from several runs: {repetitions}"
        else:
            finding = SUSPICIOUS
            reason += "so it must be a mean over runs, which the paper does not say."
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
        point, first = group[0].points[0], group[0]
        flows = [flow for one in group for flow in one.flows(point)]
        if len(group) < 2 or 0 in times or len({f.id for f in flows}) < len(flows):
            continue
        counted = list(zip(times, (one.cell for one in group), strict=True))
        row, column = ("+".join(dict.fromkeys(cell.key[n] for _, cell in counted)) for n in (1, 2))
        value = sum(n * cell.value for n, cell in counted)
        slack = sum(n * cell.half_ulp for n, cell in counted)
        total = replace(first.cell, row=row, column=column, value=value, half_ulp=slack)
        bounds = (point.total_rate_bps(flows, strict) for strict in (True, False))
        yield replace(first, cell=total).bounded(CAPACITY_SUM, bounds, _TOO_FAST)


def _times_counted(one: _Audited) -> int:
    """Return how often a value counts in the sum of its flows' rates; 0 if unknown."""
    number = len(one.flows(one.points[0]))
    if number == 1 or one.cell.quantity.aggregate == "sum":
        return 1
    return number if one.cell.quantity.aggregate == "mean" else 0


def _check_repetitions(audited: list[_Audited]) -> Iterator[Finding]:
    """Different set-ups give the same last digit only by chance."""
    # Derived numbers are computed from the paper's data, not printed.
    printed = [one for one in audited if not one.cell.printed.startswith(DERIVED)]
    groups: dict[tuple[str, ...], list[_Audited]] = {}
    for one in printed:
        table, row, column = one.cell.key
        groups.setdefault(("repeated_in_column", table, column, one.measure), []).append(one)
        groups.setdefault(("repeated_in_row", table, row, one.measure), []).append(one)
        groups.setdefault(("repeated_across_tables", row, column, one.measure), []).append(one)
    for (check, *_), group in groups.items():
        if check == "repeated_across_tables" and len({one.cell.table for one in group}) == 1:
            continue
        expected = _chance_repetitions(group)
        for one in group:
            twins = [
                other
                for other in group
                if other.cell.printed == one.cell.printed and one.scenarios != other.scenarios
            ]
            # Lossless runs share ratios of 0 and 1.
            if not twins or one.cell.value in (0.0, 1.0):
                continue
            names = "; ".join(
                f"{table_name(cell.table)}, {cell.row_label}, {cell.column_label}"
                for cell in (twin.cell for twin in twins)
            )
            excuses = {_excuse(one, other, printed) for other in twins}
            finding, end = CONSISTENT, "; with so few digits or so many numbers this may be chance."
            if "" not in excuses:
                end = f": {' or '.join(sorted(excuses))}."
            elif significant_digits(one.cell.printed) >= TELLING_DIGITS and expected < CHANCE:
                finding = SUSPICIOUS
                end = f", where the set-up differs; {_BY_CHANCE.format(expected, 'pairs')}"
            reason = f"{one.cell.printed} is printed again in {names}{end}"
            yield one.finding(check, math.nan, finding, reason)


def _excuse(a: _Audited, b: _Audited, printed: list[_Audited]) -> str:
    """Return why two set-ups may give the same number; empty without a reason."""
    if [p.signature for p in a.points] == [p.signature for p in b.points]:
        return "the same links in another order, which may give the same result"
    if [p.network for p in a.points] != [p.network for p in b.points]:
        return ""
    ours, theirs = (
        {other.measure: other.cell.printed for other in printed if other.points is one.points}
        for one in (a, b)
    )
    if any(ours[measure] != theirs[measure] for measure in ours.keys() & theirs.keys()):
        return ""  # other numbers differ, so the two runs did
    return "algorithms that never had to act differently, as without loss, give the same result"


def _chance_repetitions(group: list[_Audited]) -> float:
    """Return how many pairs would share the last digit if values were spread evenly."""
    pairs = sum(a.scenarios != b.scenarios for a, b in itertools.combinations(group, 2))
    values = [one.cell.value for one in group]
    spread = max(values) - min(values) or max(abs(v) for v in values)
    return pairs * 2 * max(one.cell.half_ulp for one in group) / spread if spread else math.inf


def _check_monotonic(audited: list[_Audited]) -> Iterator[Finding]:
    """Numbers follow the trend that the study declares along the rows."""
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
            earlier, later = before.cell, after.cell
            rises = later.cell.monotonic == "increasing"
            low, high = (earlier, later) if rises else (later, earlier)
            verb = "rise" if rises else "fall"
            finding, reason = CONSISTENT, f"It {verb}s from row {earlier.row}."
            if high.band[1] < low.band[0]:
                finding = SUSPICIOUS
                reason = f"It should {verb} from row {earlier.row}, which has {before.printed()}."
            yield after.finding("monotonic", earlier.value, finding, reason)


def check_decimals(study: Study, cells: Sequence[MappedCell]) -> Iterator[Finding]:
    """Yield the values that share their decimals with others more often than chance predicts.

    The decimals of independent measurements are spread evenly if the values differ by some units.
    Values with the same decimals may be one measurement with a changed integer. Equal values count
    once; `_check_repetitions` reports them.
    """
    columns: dict[tuple[str, str, int], list[MappedCell]] = {}
    for cell in cells:
        if found := _PRINTED.fullmatch(cell.printed):
            columns.setdefault((cell.column, cell.cell.metric, len(found[1])), []).append(cell)
    for (_, _, places), members in columns.items():
        numbers = {float(cell.printed) for cell in members}
        if max(numbers) - min(numbers) < LEAST_SPREAD:
            continue
        for decimals in dict.fromkeys(cell.printed.split(".")[1] for cell in members):
            alike = [cell for cell in members if cell.printed.endswith(f".{decimals}")]
            count = len({cell.printed for cell in alike})
            expected = expected_groups(len(numbers), count, places)
            if count > 1 and expected < CHANCE:
                of = f"{count} of {len(numbers)} different values end in .{decimals}"
                reason = f"{of}; {_BY_CHANCE.format(expected, 'groups')}"
                for one in (_Audited(study, cell, []) for cell in alike):
                    yield one.finding("shared_decimals", math.nan, SUSPICIOUS, reason)


def expected_groups(values: int, alike: int, places: int) -> float:
    """Return how many groups of `alike` of `values` share `places` decimals by chance."""
    return float(math.comb(values, alike) * 10.0 ** (-places * (alike - 1)))
