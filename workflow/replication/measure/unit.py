"""The units that people are shown numbers in."""

from __future__ import annotations

_DISPLAY = {"bit/s": ("Mbit/s", 1e-6), "s": ("ms", 1e3)}


def display_unit(unit: str) -> tuple[str, float]:
    """Return the unit to show `unit` in, and the factor to it."""
    return _DISPLAY.get(unit, (unit, 1.0))
