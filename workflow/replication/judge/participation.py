"""Participation: which points of a study each engine ran, and what it refused and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Participation:
    """One engine's part in a study.

    Attributes
    ----------
    engine
        Its name.
    ran, refused
        How many points of the design it ran and refused.
    reasons
        Why it refused, each reason once, in the order of the design.
    """

    engine: str
    ran: int
    refused: int
    reasons: tuple[str, ...]

    @property
    def points(self) -> int:
        """Return how many points were asked of it."""
        return self.ran + self.refused

    def why_not(self) -> str:
        """Return why it ran nothing, in words that follow its name; empty if it ran a point."""
        if self.ran:
            return ""
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"refuses all {self.refused} points{why}"


def is_supported(row: Mapping[str, str]) -> bool:
    """Return whether a row of a design was run, not refused."""
    return row["supported"].lower() in ("true", "1")


def participations(design: Iterable[Mapping[str, str]]) -> dict[str, Participation]:
    """Return each engine's part in a design, in the design's order.

    Parameters
    ----------
    design
        Rows of ``design/<study>.csv``, every field as text.
    """
    points: dict[str, dict[tuple[str, str], str | None]] = {}
    for row in design:
        refusal = None if is_supported(row) else row["reason"]
        points.setdefault(row["engine"], {})[row["experiment"], row["point"]] = refusal
    return {
        engine: Participation(
            engine=engine,
            ran=sum(reason is None for reason in answers.values()),
            refused=sum(reason is not None for reason in answers.values()),
            reasons=tuple(dict.fromkeys(reason for reason in answers.values() if reason)),
        )
        for engine, answers in points.items()
    }
