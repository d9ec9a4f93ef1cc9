"""A claim as a card: words, test, and on each engine verdict, flags and what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replication.judge.claim import conditions
from replication.judge.verdict_table import Judged
from replication.judge.wording import wording
from replication.report.parts.link import PointLink, PointLinks
from replication.report.parts.source import Source
from replication.report.parts.verdicts.claim_chart import ClaimChart, claim_chart
from replication.report.parts.verdicts.flag import Flag
from replication.report.parts.verdicts.verdict import Badge, OtherEngine, badge, beside
from replication.study.claim_model import Claim
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
