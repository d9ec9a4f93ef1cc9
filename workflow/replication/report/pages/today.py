"""On a stack of today: each study's claims as they are there, beside the study's own verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replication.compare.verdicts import Compared, compare_verdicts
from replication.judge.headline import Headline
from replication.report.parts.source import Source
from replication.report.parts.verdicts.flag import NO_FLAG
from replication.report.parts.verdicts.verdict import Tally
from replication.sensitivity.modern_kernel import judged_today
from replication.study.claim_model import Claim
from replication.study.study import Study
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class ClaimToday:
    """A claim: the study's own verdict, and that of today; each with whether it is vacuous."""

    id: str
    quote: str
    own: str
    own_vacuous: bool
    today: str
    vacuous: bool
    reason: str
    differs: bool


@dataclass(frozen=True)
class StudyToday:
    """A study on a stack of today.

    Attributes
    ----------
    study, own_engine
        The study, and the engine of its own verdicts.
    found
        What was judged there: whose stack it is (engine), what runs in the place of what the paper
        had (reasons), what could not run (refusals), and what its runs cost (cpu_s).
    tally
        Its verdicts, counted.
    claims
        Row by row.
    """

    study: Study
    own_engine: str
    found: Mapping[str, Any]
    tally: Tally
    claims: list[ClaimToday]

    @property
    def sentence(self) -> str:
        """Return what it comes to."""
        counted = {share.verdict.word: share.count for share in self.tally.shares}
        holds, total = counted[Verdict.REPRODUCED], len(self.claims)
        changed = sum(one.differs for one in self.claims)
        verb = "claim has" if changed == 1 else "claims have"
        return (
            f"{holds} of {total} claims hold on it, {counted[Verdict.DIRECTION_ONLY]} in direction "
            f"only; {changed} {verb} another verdict than in the study."
        )


def today_views(source: Source) -> list[StudyToday]:
    """Return the studies of the report that were judged on a stack of today."""
    found = judged_today(source.root, source.data)
    return [
        _study(source, source.studies[one["study"]], one)
        for one in found
        if one["study"] in source.studies
    ]


def _study(source: Source, study: Study, found: Mapping[str, Any]) -> StudyToday:
    own: Headline = source.headlines[study.id]
    rows = [row for row in source.headline(source.claims) if row["study"] == study.id]
    compared = {one.item[0]: one for one in compare_verdicts(rows, found["claims"], same=())}
    claims = [
        _claim(source, claim, compared[claim.id])
        for claim in study.claims
        if claim.id in compared and compared[claim.id].after
    ]
    words = [one.today for one in claims if not one.vacuous]
    tally = Tally.of(words, vacuous=len(claims) - len(words))
    return StudyToday(study, own.engine, found, tally, claims)


def _claim(source: Source, claim: Claim, found: Compared) -> ClaimToday:
    flag = source.flag(dict(found.before)) if found.before else NO_FLAG
    vacuous = bool(found.known["vacuous"])
    own, today = found.verdicts
    return ClaimToday(
        id=claim.id,
        quote=claim.quote,
        own=own or Verdict.NOT_TESTABLE,
        own_vacuous=flag.vacuous,
        today=today,
        vacuous=vacuous,
        reason=str(found.known["reason"]),
        differs=found.agrees is False and not (flag.vacuous or vacuous),
    )
