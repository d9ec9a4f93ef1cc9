"""A claim at a glance: its statistic on each engine against the range that was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from replication.judge.claim import conditions
from replication.judge.verdict_table import Judged
from replication.report.drawing.figure import three_digits
from replication.report.parts.verdicts.number import parse
from replication.report.parts.verdicts.verdict import Badge, badge
from replication.study.claim_model import AllTest, Claim, EquivalenceTest, NotTestable, SimpleTest

WIDTH, MARGIN, ROW, FOOT = 320.0, 14.0, 22.0, 20.0
#: Share of the range of values that is left free beyond either end.
PAD = 0.12


@dataclass(frozen=True)
class ClaimChartRow:
    """One engine: its statistic and, with enough replicates, the ends of its interval (pixels)."""

    engine: str
    verdict: Badge
    y: float
    x: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Tick:
    """An end of the range that was asked for; `anchor` says where its text stands to it."""

    x: float
    label: str
    anchor: str


@dataclass(frozen=True)
class ClaimChart:
    """The drawing; the band from `asked_low` to `asked_high` is where the claim holds (pixels)."""

    width: float
    height: float
    asked_low: float
    asked_high: float
    rows: list[ClaimChartRow]
    ticks: list[Tick]
    words: str


def claim_chart(claim: Claim, results: list[Judged]) -> ClaimChart | None:
    """Return the drawing of a claim; None where nothing was measured.

    Parameters
    ----------
    claim
        Gives the range.
    results
        The claim's rows, an engine each.
    """
    measured = [row for row in results if parse(row["observed"]) is not None]
    if not measured or isinstance(claim.test, NotTestable):
        return None
    asked = _asked(claim.test)
    scale = _Scale.over(
        [*(parse(row[name]) for row in measured for name in ("observed", "low", "high")), *asked]
    )
    rows = [_row(row, ROW * (n + 0.5) + 4, scale) for n, row in enumerate(measured)]
    low, high = (None if end is None else scale.at(end) for end in asked)
    return ClaimChart(
        width=WIDTH,
        height=ROW * len(rows) + 4 + FOOT,
        asked_low=MARGIN if low is None else low,
        asked_high=WIDTH - MARGIN if high is None else high,
        rows=rows,
        ticks=_ticks(asked, scale),
        words=_words(asked, measured),
    )


def _asked(test: SimpleTest | AllTest) -> list[float | None]:
    """Return the ends of the range that a test asks for, None where it is open."""
    if isinstance(test, AllTest):
        return [1.0, None]
    expect, _ = conditions(test)
    return [0.0 if isinstance(test, EquivalenceTest) else expect.at_least, expect.at_most]


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    @classmethod
    def over(cls, values: list[float | None]) -> _Scale:
        known = [value for value in values if value is not None]
        low, high = min(known), max(known)
        pad = PAD * (high - low) or PAD * abs(high) or 1.0
        return cls(low - pad, high + pad)

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 1)


def _row(row: Judged, y: float, scale: _Scale) -> ClaimChartRow:
    low, high = parse(row["low"]), parse(row["high"])
    has_interval = low is not None and high is not None
    return ClaimChartRow(
        engine=row["engine"],
        verdict=badge(row["verdict"]),
        y=y,
        x=scale.at(_observed(row)),
        low=scale.at(low) if has_interval and low is not None else None,
        high=scale.at(high) if has_interval and high is not None else None,
    )


def _observed(row: Judged) -> float:
    value = parse(row["observed"])
    assert value is not None, "only rows with a value are drawn"
    return value


def _ticks(asked: list[float | None], scale: _Scale) -> list[Tick]:
    """Return the bounds as text that runs into the band."""
    low, high = asked
    ticks = []
    if low is not None:
        word = _shown(low) if high is not None else f"asked for: ≥ {_shown(low)}"
        at = scale.at(low)
        # A band at the far right has no room for words after its start.
        ticks.append(Tick(at, word, "end" if high is not None or at > WIDTH / 2 else "start"))
    if high is not None:
        word = _shown(high) if low is not None else f"asked for: ≤ {_shown(high)}"
        at = scale.at(high)
        ticks.append(Tick(at, word, "start" if low is not None or at < WIDTH / 2 else "end"))
    return ticks


def _shown(value: float) -> str:
    return three_digits(value).replace("-", "−")


def _words(asked: list[float | None], rows: list[Judged]) -> str:
    low, high = asked
    parts = [f"at least {_shown(low)}" if low is not None else ""]
    parts.append(f"at most {_shown(high)}" if high is not None else "")
    found = [f"{row['engine']} {_shown(_observed(row))}, {row['verdict']}" for row in rows]
    asked_for = " and ".join(part for part in parts if part) or "no bound"
    return f"Asked for: {asked_for}. Observed: {'; '.join(found)}."
