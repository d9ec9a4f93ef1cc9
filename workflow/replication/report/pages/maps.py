"""Where it holds: each map's sentence, its pictures engine by engine, and the runs behind them.

Then each study's claims on a stack of today, beside the study's own verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from replication.compare.verdicts import Compared, compare_verdicts
from replication.judge.verdict_table import Headline
from replication.report.pages.map import (
    Account,
    Picture,
    answer,
    areas,
    check,
    details,
    facet_title,
    headline,
    picture,
)
from replication.report.pages.source import Source
from replication.report.pages.verdict import NO_FLAG, Tally
from replication.sensitivity.maps.account import accounts, is_current, read_account
from replication.sensitivity.maps.map_model import load_map, load_mapping
from replication.sensitivity.modern_kernel import judged_today
from replication.study.claim_model import Claim
from replication.study.study import MAPS_TABLE, Study
from replication.study.verdict import Change, Verdict


@dataclass(frozen=True)
class FacetView:
    """One picture: its facet and engine, and what is told below it."""

    id: str
    title: str
    engine: str
    picture: Picture
    sentences: list[str]


@dataclass(frozen=True)
class RunView:
    """One point's row: its place, what was found, and its scenarios."""

    anchor: str
    facet: str
    x: str
    y: str
    found: str
    statistic: str
    kind: str
    scenarios: list[str]


@dataclass(frozen=True)
class EngineView:
    """A map on one engine.

    Attributes
    ----------
    account
        All that was written of it.
    headline, check
        What is said of the whole.
    bar, share
        Its space by side of the border in percent, and how much of it holds.
    facets, runs
        Its pictures, and the rows of its points.
    left_out
        Facets that the budget did not allow.
    """

    account: Account
    headline: str
    check: str
    bar: list[tuple[str, float]]
    share: str
    facets: list[FacetView]
    runs: list[RunView]
    left_out: list[str]


@dataclass(frozen=True)
class MapView:
    """A map: what its account on any engine tells, laws that are drawn in, engines, and changes."""

    account: Account
    laws: list[tuple[str, str, str]]
    engines: list[EngineView]
    changes: list[Change]


@dataclass(frozen=True)
class MapsView:
    """The page: its answer, maps by study, those of other files, changes, and claims of today."""

    answer: str
    maps: list[MapView]
    stale: list[str]
    changes: list[Change]
    today: list[StudyToday]


def maps_view(source: Source) -> MapsView | None:
    """Return what the page shows; None where `make maps` did not run."""
    if not (source.data / MAPS_TABLE).is_file():
        return None
    found = [read_account(path) for path in accounts(source.data)]
    current = [one for one in found if is_current(source.root, source.data, one)]
    stale = [f"{one['map']} on {one['engine']}" for one in found if one not in current]
    groups = groupby(current, key=lambda one: str(one["map"]))
    numbers = count()
    maps = [_map(list(own), numbers, load_map(source.root, name).changed) for name, own in groups]
    changes = load_mapping(source.root).changed if maps else []
    return MapsView(answer(current) if current else "", maps, stale, changes, today_views(source))


def _map(found: list[dict[str, Any]], numbers: Iterator[int], changes: list[Change]) -> MapView:
    laws = {
        (law["title"], law["source"], law["condition"]): None
        for one in found
        for grid in one["grids"]
        for law in grid["theory"]
    }
    engines = [_engine(one, next(numbers)) for one in found]
    return MapView(found[0], list(laws), engines, changes)


def _engine(account: Account, own: int) -> EngineView:
    # Short: the page names each of thousands of points twice.
    anchors = {number: f"m{own}.{number}" for number in range(len(account["points"]))}
    return EngineView(
        account=account,
        headline=headline(account),
        check=check(account),
        bar=[(side, round(100 * share, 2)) for side, share in areas(account).items()],
        share="?" if account["share"] is None else f"{100 * account['share']:.0f} %",
        facets=[_facet(account, grid, anchors) for grid in account["grids"]],
        runs=list(_runs(account, anchors)),
        left_out=[facet_title(account, facet) for facet in account["left_out"]],
    )


def _facet(account: Account, grid: Mapping[str, Any], anchors: Mapping[int, str]) -> FacetView:
    return FacetView(
        id=".".join([account["map"], account["engine"], *grid["facet"]]),
        title=facet_title(account, grid["facet"]),
        engine=account["engine"],
        picture=picture(account, grid, anchors),
        sentences=details(account, grid),
    )


def _runs(account: Account, anchors: Mapping[int, str]) -> Iterator[RunView]:
    words = {True: "holds", False: "fails", None: "nothing can be said"}
    for number, point in enumerate(account["points"]):
        expected = point["expected"]
        kind = "" if expected is None else f"fresh, {words[expected]} by the border"
        statistic = point["statistic"]
        yield RunView(
            anchor=anchors[number],
            facet=facet_title(account, point["facet"]),
            x=f"{point['x']:g}",
            y=f"{point['y']:g}",
            found=words[point["holds"]],
            statistic="" if statistic is None else f"{statistic:.4g}",
            kind=kind or point["reason"],
            scenarios=list(dict.fromkeys(run["scenario"] for run in point["runs"])),
        )


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
