"""The verdicts: what can be said of a published number or of a claim."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """A verdict; its value is the word that stands in every table and on every page."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"
    IMPOSSIBLE = "impossible"


#: Those that an engine's runs decide; the others are the paper's or the tier's doing.
DECIDED = (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY, Verdict.NOT_REPRODUCED)
