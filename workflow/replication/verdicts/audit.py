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
#: Reasons of a rate; see `_Number.bounded`.
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
class _Number:
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

    def bounded(self, check: str, strict: float, full: float, reasons: Sequence[str]) -> Finding:
        """Compare the value with a strict and a full bound: the least delay or the largest rate.

        `reasons` are templates: beyond the strict bound, beyond the full bound only, within both.
        """
        (value, high), sign, unit, scale = self.cell.band, 1, "kbit/s", 1e-3
        if check == "propagation":
            value, sign, unit, scale = high, -1, "ms", 1e3

        def is_beyond(bound: float) -> bool:
            return sign * value > sign * bound * (1 + sign * _ROUNDING)

        bound, finding, template = full, CONSISTENT, reasons[2]
        if is_beyond(strict):
            bound, finding, template = strict, Verdict.IMPOSSIBLE, reasons[0]
        elif is_beyond(full):
            finding, template = SUSPICIOUS, reasons[1]
        reason = template.format(
            value=f"{self.printed(scale)} {unit}",
            strict=f"{scale * strict:.6g} {unit}",
            full=f"{scale * full:.6g} {unit}",
        )
        return self.finding(check, bound, finding, reason)


def audit_study(study: Study, cells: list[MappedCell], assumed: bool = False) -> list[Finding]:
    """Run every check on every mapped cell: checks of single cells first, in the cells' order.

    With `assumed`, assumed rates and delays count as stated, as an explanation takes them.
    """

    @functools.cache
    def points(experiment: str, where: str) -> list[StatedPoint]:
        return stated_points(study, experiment, json.loads(where), assumed)

    numbers = []
    for cell in cells:
        # The checks concern values of single runs, and a standard deviation is none.
        if not cell.is_spread:
            where = json.dumps(cell.quantity.where, sort_keys=True)
            numbers.append(_Number(study, cell, points(cell.quantity.experiment, where)))
    findings: list[Finding] = []
    for number in numbers:
        findings += _check_delay(number)
        findings += _check_rate(number)
        findings += _check_range(number)
        findings += _check_count(number)
    findings += _check_capacity_sums(numbers)
    findings += _check_repetitions(numbers)
    findings += _check_monotonic(numbers)
    return findings


def impossible_cells(findings: Iterable[Finding]) -> dict[tuple[str, str, str], str]:
    """Return the reason for each impossible value, by table, row and column."""
    reasons = {}
    for finding in findings:
        if finding.finding == Verdict.IMPOSSIBLE:
            reasons[finding.table, finding.row, finding.column] = finding.reason
    return reasons


def _check_delay(number: _Number) -> Iterator[Finding]:
    """A delay is at least the propagation delay of the quickest path of any flow."""
    metric = number.cell.quantity.metric
    if metric not in DELAYS | ROUND_TRIPS:
        return
    way, least_s = "one-way", StatedPoint.delay_s
    if metric in ROUND_TRIPS:
        way, least_s = "round-trip", StatedPoint.rtt_s
    strict_s: list[float] = []
    full_s: list[float] = []
    for point in number.points:
        for flow in number.flows(point):
            strict_s.append(least_s(point, flow, True))
            full_s.append(least_s(point, flow, False))
    if not strict_s:
        return
    reasons = (
        f"{{value}} is below the {way} propagation delay of the published links, {{strict}}.",
        "{value} is below propagation and transmission, {full}; this bound rests on assumed packet "
        "sizes, rates or delays.",
        "It is not below the delay of the path, {full}.",
    )
    yield number.bounded("propagation", min(strict_s), min(full_s), reasons)


def _check_rate(number: _Number) -> Iterator[Finding]:
    """A throughput is at most what the links carry."""
    aggregate = number.cell.quantity.aggregate
    points = [point for point in number.points if number.flows(point)]
    if number.cell.quantity.metric not in RATES or aggregate == "jain" or not points:
        return

    def bound_bps(point: StatedPoint, strict: bool) -> float:
        flows = number.flows(point)
        if aggregate == "maximum":
            return max(point.rate_bps(flow, strict) for flow in flows)
        total = point.total_rate_bps(flows, strict)
        # The minimum is at most the mean.
        return total if aggregate == "sum" else total / len(flows)

    strict_bps = max(bound_bps(point, strict=True) for point in points)
    full_bps = max(bound_bps(point, strict=False) for point in points)
    yield number.bounded("capacity", strict_bps, full_bps, _TOO_FAST)


def _check_range(number: _Number) -> Iterator[Finding]:
    """A ratio lies in 0 to 1, Jain's index in 1/n to 1; no other value is negative."""
    wanted = number.cell.quantity
    low, high = number.cell.band
    least, most = 0.0, largest(wanted.metric, wanted.aggregate)
    if wanted.aggregate == "jain" or wanted.metric == "jain_mean":
        least = 1 / max([1, *(len(number.flows(point)) for point in number.points)])
    if high < least - _ROUNDING or low > most + _ROUNDING:
        bound = least if high < least else most
        span = f"{least:g} to {most:g}"
        reason = f"{number.printed()} lies outside {span}, the range of the metric."
        yield number.finding("range", bound, Verdict.IMPOSSIBLE, reason)
    elif math.isfinite(most):
        reason = f"It lies within {least:.4g} to {most:g}."
        yield number.finding("range", most, CONSISTENT, reason)


def _check_count(number: _Number) -> Iterator[Finding]:
    """A count is a whole number, a mean over n flows a multiple of 1/n."""
    wanted = number.cell.quantity
    if wanted.metric not in COUNTS or wanted.aggregate in ("pooled", "jain"):
        return
    parts = {1}
    if wanted.aggregate == "mean":
        parts = {len(number.flows(point)) for point in number.points}
    low, high = number.cell.band

    def is_whole(n: int) -> bool:
        return math.ceil(low * n - _ROUNDING) <= math.floor(high * n + _ROUNDING)

    whole = any(is_whole(n) for n in parts if n)
    finding, reason = CONSISTENT, "It is a whole number of events."
    if not whole and len(number.points) == 1:
        reason = "It is not a whole number of events, "
        if repetitions := number.study.original_system.repetitions:
            reason += f"but comes from several runs: {repetitions}"
        else:
            finding = SUSPICIOUS
            reason += "so it must be a mean over runs, which the paper does not say."
    yield number.finding("whole_number", math.nan, finding, reason)


def _check_capacity_sums(numbers: list[_Number]) -> Iterator[Finding]:
    """Throughputs of different flows at one point add up to no more than the links carry."""
    groups: dict[str, list[_Number]] = {}
    for number in numbers:
        wanted = number.cell.quantity
        if wanted.metric in RATES and len(number.points) == 1:
            table = number.cell.table
            key = [table, wanted.experiment, wanted.where, wanted.metric, wanted.window_s]
            groups.setdefault(json.dumps(key, sort_keys=True), []).append(number)
    for group in groups.values():
        point = group[0].points[0]
        flows: list[Flow] = []
        for number in group:
            flows += number.flows(point)
        overlap = len({flow.id for flow in flows}) < len(flows)
        if len(group) >= 2 and not overlap and all(map(_times_counted, group)):
            strict_bps = point.total_rate_bps(flows, strict=True)
            full_bps = point.total_rate_bps(flows, strict=False)
            total = replace(group[0], cell=_sum(group))
            yield total.bounded(CAPACITY_SUM, strict_bps, full_bps, _TOO_FAST)


def _sum(group: list[_Number]) -> MappedCell:
    """Return the sum of the flows' rates as a cell."""
    return replace(
        group[0].cell,
        row="+".join(dict.fromkeys(number.cell.row for number in group)),
        column="+".join(dict.fromkeys(number.cell.column for number in group)),
        value=sum(_times_counted(number) * number.cell.value for number in group),
        half_ulp=sum(_times_counted(number) * number.cell.half_ulp for number in group),
    )


def _times_counted(number: _Number) -> int:
    """Return how often a value counts in the sum of its flows' rates; 0 if unknown."""
    flows = len(number.flows(number.points[0]))
    if flows == 1 or number.cell.quantity.aggregate == "sum":
        return 1
    return flows if number.cell.quantity.aggregate == "mean" else 0


def _check_repetitions(numbers: list[_Number]) -> Iterator[Finding]:
    """Different set-ups give the same last digit only by chance."""
    # Derived numbers are computed from the paper's data, not printed.
    printed = [number for number in numbers if not number.cell.printed.startswith(DERIVED)]
    groups: dict[tuple[str, ...], list[_Number]] = {}
    for number in printed:
        table, row, column = number.cell.key
        groups.setdefault(("repeated_in_column", table, column, number.measure), []).append(number)
        groups.setdefault(("repeated_in_row", table, row, number.measure), []).append(number)
        groups.setdefault(("repeated_across_tables", row, column, number.measure), []).append(
            number
        )
    for (check, *_), group in groups.items():
        tables = {number.cell.table for number in group}
        if check == "repeated_across_tables" and len(tables) == 1:
            continue
        expected = _chance_repetitions(group)
        for number in group:
            twins = [other for other in group if _is_twin(number, other)]
            # Lossless runs share ratios of 0 and 1.
            if twins and number.cell.value not in (0.0, 1.0):
                yield _repetition(check, number, twins, printed, expected)


def _is_twin(number: _Number, other: _Number) -> bool:
    """Return whether the same text is printed for two different set-ups."""
    return number.cell.printed == other.cell.printed and number.scenarios != other.scenarios


def _repetition(
    check: str, number: _Number, twins: list[_Number], printed: list[_Number], expected: float
) -> Finding:
    """Return the finding on a number that is printed again as `twins`; see `_check_repetitions`."""
    places = []
    for twin in twins:
        cell = twin.cell
        places.append(f"{table_name(cell.table)}, {cell.row_label}, {cell.column_label}")
    excuses = {_excuse(number, twin, printed) for twin in twins}
    finding, end = CONSISTENT, "; with so few digits or so many numbers this may be chance."
    if "" not in excuses:
        end = f": {' or '.join(sorted(excuses))}."
    elif significant_digits(number.cell.printed) >= TELLING_DIGITS and expected < CHANCE:
        finding = SUSPICIOUS
        end = f", where the set-up differs; {_BY_CHANCE.format(expected, 'pairs')}"
    reason = f"{number.cell.printed} is printed again in {'; '.join(places)}{end}"
    return number.finding(check, math.nan, finding, reason)


def _excuse(first: _Number, second: _Number, printed: list[_Number]) -> str:
    """Return why two set-ups may give the same number; empty without a reason."""
    if [p.signature for p in first.points] == [p.signature for p in second.points]:
        return "the same links in another order, which may give the same result"
    if [p.network for p in first.points] != [p.network for p in second.points]:
        return ""
    measured, again = _printed_of(first, printed), _printed_of(second, printed)
    if any(measured[measure] != again[measure] for measure in measured.keys() & again.keys()):
        return ""  # other numbers differ, so the two runs did
    return "algorithms that never had to act differently, as without loss, give the same result"


def _printed_of(number: _Number, printed: list[_Number]) -> dict[str, str]:
    """Return what is printed for the points of a number, by what is measured."""
    return {other.measure: other.cell.printed for other in printed if other.points is number.points}


def _chance_repetitions(group: list[_Number]) -> float:
    """Return how many pairs would share the last digit if values were spread evenly."""
    pairs = sum(a.scenarios != b.scenarios for a, b in itertools.combinations(group, 2))
    values = [number.cell.value for number in group]
    spread = max(values) - min(values) or max(abs(v) for v in values)
    half_ulp = max(number.cell.half_ulp for number in group)
    return pairs * 2 * half_ulp / spread if spread else math.inf


def _check_monotonic(numbers: list[_Number]) -> Iterator[Finding]:
    """Numbers follow the trend that the study declares along the rows."""
    columns: dict[tuple[str, str], dict[str, _Number]] = {}
    for number in numbers:
        cell = number.cell
        if cell.cell.monotonic is not None:
            columns.setdefault((cell.table, cell.column), {})[cell.row] = number
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
        if match := _PRINTED.fullmatch(cell.printed):
            columns.setdefault((cell.column, cell.cell.metric, len(match[1])), []).append(cell)
    for (_, _, places), members in columns.items():
        values = {float(cell.printed) for cell in members}
        if max(values) - min(values) < LEAST_SPREAD:
            continue
        for decimals in dict.fromkeys(cell.printed.split(".")[1] for cell in members):
            alike = [cell for cell in members if cell.printed.endswith(f".{decimals}")]
            count = len({cell.printed for cell in alike})
            expected = expected_groups(len(values), count, places)
            if count > 1 and expected < CHANCE:
                of = f"{count} of {len(values)} different values end in .{decimals}"
                reason = f"{of}; {_BY_CHANCE.format(expected, 'groups')}"
                for cell in alike:
                    number = _Number(study, cell, [])
                    yield number.finding("shared_decimals", math.nan, SUSPICIOUS, reason)


def expected_groups(values: int, alike: int, places: int) -> float:
    """Return how many groups of `alike` of `values` share `places` decimals by chance."""
    return float(math.comb(values, alike) * 10.0 ** (-places * (alike - 1)))
