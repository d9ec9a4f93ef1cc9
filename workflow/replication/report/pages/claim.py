"""A claim as a card: words, test, and on each engine verdict, flags, evidence and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replication.judge.claim import conditions
from replication.judge.verdict_table import Judged
from replication.judge.wording import wording
from replication.report.charts.figure import three_digits
from replication.report.pages.number import parse
from replication.report.pages.source import PointLink, PointLinks, Source
from replication.report.pages.verdict import Badge, Flag, OtherEngine, badge, beside
from replication.study.claim_model import AllTest, Claim, EquivalenceTest, NotTestable, SimpleTest
from replication.study.sensitivity_settings import Scale, load_sensitivity
from replication.study.study import Study

#: What a claim is that is no result, for people.
NATURES = {
    "prediction": ("prediction", "predictions"),
    "arithmetic": ("arithmetic of the set-up", "arithmetic of the set-up"),
    "table": ("row or caption of a table", "rows or captions of tables"),
    "restatement": ("restatement", "restatements"),
}
REPEAT = ("repeat of another claim", "repeats of another claim")


@dataclass(frozen=True)
class TestView:
    """What a claim's statistic is and what was expected of it, before any run."""

    statistic: str
    expected: str
    direction: str


@dataclass(frozen=True)
class ClaimResult:
    """A claim's verdict on one engine, from its row of the typed table."""

    row: Judged
    verdict: Badge
    flag: Flag
    #: Why the engine ran other values than the study's; empty where it did not.
    substituted: str


@dataclass(frozen=True)
class ClaimView:
    """A claim as a card."""

    id: str
    quote: str
    place: str
    reading: str
    tests: list[TestView]
    #: One an engine, that of the headline first.
    results: list[ClaimResult]
    beside: OtherEngine | None
    chart: ClaimChart | None
    points: list[PointLink]
    #: Why it does not count in the shares; empty where it does.
    apart: str
    #: How often it was changed after results were seen.
    changes: int
    #: The experiments it rests on that were never varied, by their titles.
    unexplored: list[str]


def claim_cards(
    source: Source, study: Study, rows: Sequence[Judged], links: PointLinks
) -> list[ClaimView]:
    """Return the cards of a study's claims, from their rows on the engines that are shown."""
    known = {claim.id: claim for claim in study.claims}
    engines = source.shown_engines(study.id)
    varied = (source.data / "sensitivity" / study.id / "claims.csv").is_file()
    scale = load_sensitivity(source.root).of(study.id).exploration if varied else None
    cards = []
    for name in dict.fromkeys([*known, *(row["claim"] for row in rows)]):
        results = [row for row in rows if row["claim"] == name]
        if not results:
            continue
        results.sort(key=lambda row: engines.index(row["engine"]) if row["engine"] else -1)
        claim = known.get(name)
        cards.append(
            ClaimView(
                id=name,
                quote=results[0]["quote"],
                place=results[0]["place"],
                reading=claim.reading if claim else "",
                tests=list(_tests(study, claim)) if claim else [],
                results=[_result(study, row, source.flag(row)) for row in results],
                beside=beside(results, next(iter(engines), "")),
                chart=claim_chart(claim, results) if claim else None,
                points=links.under(results),
                apart=_apart(claim) if claim else "",
                changes=len(study.changes_to("claims", name)),
                unexplored=_unexplored(study, claim, scale) if claim else [],
            )
        )
    return cards


def _result(study: Study, row: Judged, flag: Flag) -> ClaimResult:
    substitution = study.substituted(row["engine"])
    reason = "" if substitution is None else substitution.reason
    return ClaimResult(row, badge(row["verdict"]), flag, reason)


def _tests(study: Study, claim: Claim) -> Iterable[TestView]:
    for part in claim.tests():
        (expect, direction), words = conditions(part), wording(study, part)
        less = words.asked(direction) if direction else ""
        yield TestView(words.statistic, words.asked(expect), less)


def _apart(claim: Claim) -> str:
    if claim.repeats is not None:
        return f"The same finding as {claim.repeats}: not counted again."
    nature = NATURES.get(claim.nature)
    return f"Not counted: {nature[0]}." if nature else ""


def _unexplored(study: Study, claim: Claim, scale: Scale | None) -> list[str]:
    if scale is None or scale.experiments is None:
        return []
    needed = {wanted.experiment for wanted in claim.quantities()}
    return [e.title for e in study.experiments if e.id in needed and e.id not in scale.experiments]


def not_counted(studies: Iterable[Study]) -> list[tuple[str, int]]:
    """Return the claims that do not count in the shares: what they are, and how many."""
    counted = Counter(
        REPEAT if claim.repeats is not None else NATURES[claim.nature]
        for study in studies
        for claim in study.claims
        if not claim.is_counted
    )
    return [(words[0] if number == 1 else words[1], number) for words, number in counted.items()]


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
