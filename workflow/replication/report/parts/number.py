"""Numbers as the report shows them: display units, significant digits, a true minus sign."""

from __future__ import annotations

import math
from dataclasses import dataclass

MISSING = "–"
SIGNIFICANT_DIGITS = 4

#: Unit of the data to the unit on the page and the factor between them.
_DISPLAY = {
    "bit/s": ("Mbit/s", 1e-6),
    "s": ("ms", 1e3),
    "1": ("", 1.0),
}


@dataclass(frozen=True)
class Number:
    """A number on the page: `raw` is the text of the CSV, `shown` what a reader sees."""

    raw: str
    shown: str


def display_unit(unit: str) -> str:
    """Return the unit on the page for a unit of the data ("bit/s" is shown in Mbit/s)."""
    return _DISPLAY.get(unit, (unit, 1.0))[0]


def parse(raw: str) -> float | None:
    """Return the number in a CSV field; None where it is empty, not a number or infinite."""
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def number(raw: str, unit: str = "1") -> Number:
    """Return a CSV field in display units, with four significant digits."""
    value = parse(raw)
    if value is None:
        return Number(raw, MISSING)
    return Number(raw, significant(value * _DISPLAY.get(unit, (unit, 1.0))[1]))


def published(raw: str, half_ulp: str, unit: str) -> Number:
    """Return a published number with the digits that the paper printed.

    Parameters
    ----------
    raw, half_ulp
        The value and half of its last printed digit, as they stand in the CSV.
    unit
        Unit of both.
    """
    value, half = parse(raw), parse(half_ulp)
    if value is None:
        return Number(raw, MISSING)
    factor = _DISPLAY.get(unit, (unit, 1.0))[1]
    if not half:
        return Number(raw, significant(value * factor))
    decimals = max(0, round(-math.log10(2 * half * factor)))
    return Number(raw, _signed(f"{value * factor:,.{min(decimals, 12)}f}"))


def percent(raw: str) -> Number:
    """Return a relative deviation as a signed percentage."""
    value = parse(raw)
    if value is None:
        return Number(raw, MISSING)
    share = 100 * value
    digits = 2 if abs(share) < 0.995 else 1 if abs(share) < 9.95 else 0
    text = _signed(f"{share:+,.{digits}f}")
    return Number(raw, f"{text} %")


def interval(low: str, high: str, unit: str = "1") -> str:
    """Return "low to high" in display units, or a dash where there is no interval."""
    ends = [number(low, unit), number(high, unit)]
    if MISSING in (ends[0].shown, ends[1].shown):
        return MISSING
    return f"{ends[0].shown} to {ends[1].shown}"


def significant(value: float) -> str:
    """Return `value` with four significant digits, in plain notation where that is readable."""
    if value == 0:
        return "0"
    # Rounded first: 9.9996 has four digits as 10.00, not as 10.000.
    magnitude = int(f"{value:.{SIGNIFICANT_DIGITS - 1}e}".partition("e")[2])
    if not -5 <= magnitude < 9:
        mantissa, exponent = f"{value:.{SIGNIFICANT_DIGITS - 1}e}".split("e")
        return _signed(f"{mantissa}×10^{int(exponent)}")
    decimals = max(0, SIGNIFICANT_DIGITS - 1 - magnitude)
    text = f"{value:,.{decimals}f}"
    if "." in text and value == round(value):
        text = text.partition(".")[0]
    return _signed(text)


def count(value: float) -> str:
    """Return a whole number with thousands separated."""
    return f"{round(value):,}"


def duration(seconds: float) -> str:
    """Return seconds as people say them: 0.8 s, 42 s, 3 min 05 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def _signed(text: str) -> str:
    return text.replace("-", "−")
