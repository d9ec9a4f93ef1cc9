"""Counts over the results of all regions."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from replication.base.table import flat
from replication.explore.regions.region_rows import RegionResult

#: Share of the area from which a claim holds, or fails, nearly everywhere.
_NEARLY = 0.9


@dataclass(frozen=True)
class RegionCounts:
    """How claims fare in all regions.

    A claim may `hold` or `fail` in nearly all of an area, show no difference anywhere (`ties`), or
    compare `alike` alternatives. `outside` areas lack the paper's own point. Of the points that are
    `checked` some are `covered`.
    """

    regions: int
    claims: int
    papers: int
    hold: int
    fail: int
    ties: int
    undecided: float
    alike: int
    outside: int
    checked: int
    covered: int
    brier: float | None
    starved: int


def count_regions(results: Sequence[RegionResult]) -> RegionCounts:
    """Return the counts over all regions."""
    alike = [result for result in results if result.cannot_differ >= _NEARLY]
    differing = [result for result in results if result.cannot_differ < _NEARLY]
    untied = [result for result in differing if not result.ties_everywhere]
    outside = [result for result in results if not all(axis.has_paper for axis in result.axes)]
    checked = flat(result.validation for result in results)
    panels = flat(result.panels for result in results)
    return RegionCounts(
        regions=len(results),
        claims=len({result.region for result in results}),
        papers=len({result.study for result in results}),
        hold=sum(result.holds >= _NEARLY for result in results),
        fail=sum(result.fails >= _NEARLY for result in untied),
        ties=len(differing) - len(untied),
        undecided=fmean(result.open for result in untied) if untied else 0.0,
        alike=len(alike),
        outside=len({result.region for result in outside}),
        checked=len(checked),
        covered=sum(point.covered for point in checked),
        brier=fmean((p.probability - p.holds) ** 2 for p in checked) if checked else None,
        starved=sum(panel.starved for panel in panels),
    )
