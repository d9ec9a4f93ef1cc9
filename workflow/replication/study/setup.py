"""The set-ups under which a study runs."""

from __future__ import annotations

from enum import StrEnum


class Setup(StrEnum):
    """What stands for the parameters that a paper does not print."""

    DEFAULTS = "defaults"
    """The documented defaults of the simulator."""

    TEXTBOOK = "textbook"
    """One rule for all papers: TCP under pressure at one known bottleneck."""
