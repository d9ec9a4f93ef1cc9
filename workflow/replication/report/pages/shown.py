"""Numbers and verdicts as readers see them: units, digits, minus signs, and badges."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from replication.base.table import written
from replication.metrics.metric_model import display_unit as unit_of
from replication.report.charts.data import digits
from replication.study.setup import Setup
from replication.study.verdict import Verdict
from replication.verdicts.summary import Errors, errors
from replication.verdicts.verdict_table import CellRow, ClaimRow, Tally, tallies
from replication.verdicts.wording import figure

MISSING = "–"
#: Relative deviations at which the shade of a cell gets one step stronger.
_SHADES = (0.05, 0.2, 0.5)

#: The names of set-ups.
SETUPS = {Setup.DEFAULTS: "Defaults", Setup.TEXTBOOK: "Textbook set-up"}

#: A field of a CSV file or of a typed table.
Field = str | float | None


class Number(NamedTuple):
    """A number on a page: `raw` as in the CSV file, `shown` as a reader sees it."""

    raw: str
    shown: str


def display_unit(unit: str) -> str:
    """Return the unit that readers see for a unit of the data, such as Mbit/s for bit/s."""
    return "" if unit == "1" else unit_of(unit)[0]


def parse(field: Field) -> float | None:
    """Return the number in a field; None if it is empty, not a number or infinite."""
    try:
        value = float("nan" if field is None or field == "" else field)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def number(field: Field, unit: str = "1") -> Number:
    """Return a field in display units, with four significant digits."""
    value = parse(field)
    return Number(written(field), MISSING if value is None else figure(value * unit_of(unit)[1]))


def amount(value: float, unit: str) -> str:
    """Return a number with its display unit, for a sentence."""
    return f"{number(value, unit).shown} {display_unit(unit)}".rstrip()


def published(field: Field, half_ulp: Field, unit: str) -> Number:
    """Return a published number with the paper's digits; `half_ulp` is half of the last digit."""
    value = parse(field)
    half = parse(half_ulp)
    factor = unit_of(unit)[1]
    if value is None or not half:
        return number(field, unit)
    return Number(written(field), digits(value * factor, half * factor))


def percent(field: Field) -> Number:
    """Return a relative deviation as a signed percentage; one that is rounded to 0 has no sign."""
    value = parse(field)
    if value is None:
        return number(field)
    share = 100 * value
    if abs(share) < 0.005:
        return Number(written(field), "0.00 %")
    digits = 2 if abs(share) < 0.995 else 1 if abs(share) < 9.95 else 0
    return Number(written(field), f"{share:+,.{digits}f} %".replace("-", "−"))


def shade(deviation: Field) -> str:
    """Return the shade of a deviation, "low-3" to "high-3" or "near"; empty without a value."""
    value = parse(deviation)
    if value is None:
        return ""
    step = sum(abs(value) > end for end in _SHADES)
    return f"{'high' if value > 0 else 'low'}-{step}" if step else "near"


def interval(low: Field, high: Field, unit: str = "1") -> str:
    """Return "low to high" in display units, or a dash if there is no interval."""
    ends = [number(end, unit).shown for end in (low, high)]
    return MISSING if MISSING in ends else " to ".join(ends)


class Badge(NamedTuple):
    """The word of a verdict or outcome; `slug` names its symbol and colour."""

    word: str
    slug: str
    meaning: str


BADGES = (
    Badge(Verdict.REPRODUCED, "reproduced", "the number or claim meets its rule"),
    Badge(Verdict.DIRECTION_ONLY, "direction", "the sign or order is right, the size is wrong"),
    Badge(Verdict.NOT_REPRODUCED, "failed", "the number or claim does not meet its rule"),
    Badge(Verdict.NOT_TESTABLE, "untestable", "the paper and the runs leave nothing to decide"),
    Badge(Verdict.IMPOSSIBLE, "impossible", "the value breaks a physical bound of its set-up"),
)
#: The badge of each verdict.
BADGE_OF = {badge.word: badge for badge in BADGES}


class Answer(NamedTuple):
    """What was found, for `parts.html`: counts and, by kind of number, errors."""

    counted: dict[str, Tally]
    errors: dict[str, Errors | None]


def answer(cells: Sequence[CellRow], claims: Iterable[ClaimRow]) -> Answer:
    """Return the counts of numbers and claims, and the errors of numbers."""
    return Answer(
        counted=tallies(cells, claims),
        errors={kind: errors(cells, kind) for kind in ("printed", "trace")},
    )
