"""A claim at a glance: its statistic on each engine against the range that was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from replication.report.charts import figure as chart_figure
from replication.report.charts.verdict import expected
from replication.report.parts.number import parse
from replication.report.parts.source import Row
from replication.report.parts.verdict import Verdict, verdict
from replication.study.claim_model import Claim

WIDTH, MARGIN, ROW, FOOT = 320.0, 14.0, 22.0, 20.0
#: Share of the range of values that is left free beyond either end.
PAD = 0.12


@dataclass(frozen=True)
class ClaimChartRow:
    """One engine: its statistic and, with enough replicates, the ends of its interval (pixels)."""

    engine: str
    verdict: Verdict
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


def claim_chart(claim: Claim, results: list[Row]) -> ClaimChart | None:
    """Return the drawing of a claim; None where nothing was measured.

    Parameters
    ----------
    claim
        Gives the range.
    results
        The claim's rows of claims.csv, an engine each.
    """
    measured = [row for row in results if parse(row["observed"]) is not None]
    if not measured or claim.test.kind == "not_testable":
        return None
    asked = [None if end != end else end for end in expected(claim)]
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


def _row(row: Row, y: float, scale: _Scale) -> ClaimChartRow:
    low, high = parse(row["low"]), parse(row["high"])
    has_interval = low is not None and high is not None
    return ClaimChartRow(
        engine=row["engine"],
        verdict=verdict(row["verdict"]),
        y=y,
        x=scale.at(parse(row["observed"]) or 0.0),
        low=scale.at(low) if has_interval and low is not None else None,
        high=scale.at(high) if has_interval and high is not None else None,
    )


def _ticks(asked: list[float | None], scale: _Scale) -> list[Tick]:
    """Return the bounds as text that runs into the band."""
    low, high = asked
    ticks = []
    if low is not None:
        word = number(low) if high is not None else f"asked for: ≥ {number(low)}"
        at = scale.at(low)
        # A band at the far right has no room for words after its start.
        ticks.append(Tick(at, word, "end" if high is not None or at > WIDTH / 2 else "start"))
    if high is not None:
        word = number(high) if low is not None else f"asked for: ≤ {number(high)}"
        at = scale.at(high)
        ticks.append(Tick(at, word, "start" if low is not None or at < WIDTH / 2 else "end"))
    return ticks


def number(value: float) -> str:
    """Return a number in few digits, with a true minus sign."""
    return chart_figure.number(value).replace("-", "−")


def _words(asked: list[float | None], rows: list[Row]) -> str:
    low, high = asked
    parts = [f"at least {number(low)}" if low is not None else ""]
    parts.append(f"at most {number(high)}" if high is not None else "")
    found = [
        f"{row['engine']} {number(parse(row['observed']) or 0.0)}, {row['verdict']}" for row in rows
    ]
    asked_for = " and ".join(part for part in parts if part) or "no bound"
    return f"Asked for: {asked_for}. Observed: {'; '.join(found)}."
