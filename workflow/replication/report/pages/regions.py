"""The pages on regions: response surfaces of claims as SVG, and claims on a modern kernel."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any, NamedTuple

import pandas as pd

from replication.base.table import REGIONS_TABLE, flat, grouped
from replication.compare.agreement import EngineDifference, load_differences
from replication.compare.verdicts import Judged, compare_verdicts, judged_of
from replication.engines.catalogue import ENGINES
from replication.explore.named_variation import VariedResult, varied_results
from replication.explore.regions.region_counts import RegionCounts, count_regions
from replication.explore.regions.region_model import load_region, load_settings, region_path
from replication.explore.regions.region_result import is_current, region_results
from replication.explore.regions.region_rows import (
    AxisRow,
    PanelRow,
    PointRow,
    RegionResult,
    ValidationRow,
)
from replication.explore.regions.surface import SURE
from replication.explore.variation_model import MODERN_KERNEL
from replication.metrics.metric_model import display_unit
from replication.report.charts.figure import round_step
from replication.report.pages.region_words import (
    LawRuns,
    away,
    border_sentences,
    law_runs,
    scale_words,
)
from replication.report.pages.shown import display_unit as shown_unit
from replication.report.pages.source import Source, of_study
from replication.study.study import Study
from replication.study.verdict import Change, Verdict
from replication.verdicts.verdict_table import Tally

#: Every run of every region, in the folder of the pages.
RUNS = "region_runs.parquet"
#: Ratios of the quantity to its threshold at which the colour deepens.
_STEPS = (1.1, 1.5, 3.0)


@dataclass(frozen=True)
class RegionView:
    """A region with its results by engine; `laws` are titles, sources and conditions."""

    first: RegionResult
    laws: list[tuple[str, str, str]]
    engines: list[RegionResult]
    changes: list[Change]


class ModernClaim(NamedTuple):
    """A claim with its verdict in the study, and on the modern kernel."""

    id: str
    quote: str
    in_study: Verdict
    modern: Verdict
    reason: str
    differs: bool


@dataclass(frozen=True)
class ModernView:
    """A study's claims on a modern kernel; studies in `already` are judged on it as they are."""

    study: Study
    study_engine: str
    result: VariedResult
    kernel: str
    already: list[Study]
    tally: Tally
    claims: list[ModernClaim]
    changed: int


@dataclass(frozen=True)
class RegionsView:
    """The pages on regions; those in `stale` were made before a file behind them changed."""

    region_results: list[RegionResult]
    summary: RegionCounts | None
    by_study: dict[str, list[RegionView]]
    stale: list[str]
    changes: list[Change]
    entries: dict[str, EngineDifference]
    modern: list[ModernView]
    law_runs: LawRuns | None


def regions_page(source: Source) -> RegionsView | None:
    """Return what the templates show; None if `make regions` did not run."""
    if not (source.data / REGIONS_TABLE).is_file():
        return None
    every = region_results(source.data)
    results = [result for result in every if region_path(source.root, result.region).is_file()]
    stale = [result for result in results if not is_current(source.root, source.data, result)]
    return RegionsView(
        region_results=results,
        summary=count_regions(results) if results else None,
        by_study=_by_study(source, results),
        stale=[f"{result.title} ({result.engine})" for result in stale],
        changes=load_settings(source.root).changed if results else [],
        entries=load_differences(source.root).by_id if results else {},
        modern=list(modern_views(source)),
        law_runs=law_runs(source.root),
    )


def _by_study(source: Source, results: Sequence[RegionResult]) -> dict[str, list[RegionView]]:
    """Return the regions of each study that has any."""
    by_study = {}
    for study in source.studies:
        if of := of_study(results, study):
            by_study[study] = [_region(source, same) for same in grouped(of, "region").values()]
    return by_study


def _region(source: Source, engines: list[RegionResult]) -> RegionView:
    laws: dict[tuple[str, str, str], None] = {}
    for result in engines:
        for panel in result.panels:
            laws |= dict.fromkeys((law.title, law.source, law.condition) for law in panel.laws)
    changes = load_region(source.root, engines[0].region).changed
    return RegionView(engines[0], list(laws), engines, changes)


def runs_table(results: Sequence[RegionResult]) -> pd.DataFrame:
    """Return every run that a surface is fitted to, with the ids of its scenarios."""
    rows = []
    for result in results:
        for point in result.points:
            rows.append(
                {
                    "region": result.region,
                    "engine": result.engine,
                    "panel": panel_title(result, point.panel),
                    "x": point.x,
                    "y": point.y,
                    "quantity": point.quantity,
                    "cannot_differ": point.cannot_differ,
                    "note": point.note,
                    "scenarios": " ".join(point.scenarios),
                }
            )
    return pd.DataFrame(rows)


def modern_views(source: Source) -> Iterator[ModernView]:
    """Yield the studies of the report that were judged on a modern kernel, claim by claim."""
    for result in varied_results(source.root, source.data, MODERN_KERNEL):
        if (study := source.studies.get(result.study)) is None:
            continue
        claims = list(_modern_claims(source, study, result))
        original = [(other, other.original_system.engine) for other in source.studies.values()]
        yield ModernView(
            study=study,
            study_engine=source.primary_engines[study.id].engine,
            result=result,
            kernel=ENGINES[result.engine].full_title,
            already=[other for other, engine in original if engine == result.engine],
            tally=Tally(claim.modern for claim in claims),
            claims=claims,
            changed=sum(claim.differs for claim in claims),
        )


def _modern_claims(source: Source, study: Study, result: VariedResult) -> Iterator[ModernClaim]:
    """Yield the counted claims of a study that were judged on the modern kernel."""
    rows = of_study(source.on_primary(source.claims), study.id)
    before = [judged_of(vars(row)) for row in rows]
    modern = [Judged((row.claim,), row.verdict, reason=row.reason) for row in result.claims]
    quotes = {claim.id: claim.quote for claim in study.claims if claim.is_counted}
    for pair in compare_verdicts(before, modern, same=()):
        claim = pair.item[0]
        if pair.after and claim in quotes:
            verdict, modern_verdict = pair.verdicts
            yield ModernClaim(
                id=claim,
                quote=quotes[claim],
                in_study=Verdict(verdict or Verdict.NOT_TESTABLE),
                modern=Verdict(modern_verdict),
                reason=pair.known.reason,
                differs=pair.agrees is False,
            )


def panel_title(result: RegionResult, panel: Sequence[str]) -> str:
    """Return a panel in words; empty if the region has no axes with levels."""
    titles = [axis.levels[key] for axis, key in zip(result.level_axes, panel, strict=True)]
    return ", ".join(titles)


#: Side of the area in half units of the picture, of which coordinates are whole numbers.
_SIDE = 600
_MOST_TICKS = 6
_DASHES = ("14 8", "4 6", "18 6 4 6")


def picture(result: RegionResult, panel: PanelRow) -> dict[str, Any]:
    """Return the picture of a panel; paths of the surface are in cells, others in half units."""
    x, y = result.axes
    paper, paper_at = panel.paper, None
    if paper is not None and None not in paper.at:
        # A point outside of the area is drawn on the nearest edge.
        paper_at = _point(*(min(1.0, max(0.0, place or 0.0)) for place in paper.at))
    shades = [[shade(result.bounds, value) for value in row] for row in panel.quantity]
    is_open = [[1 - SURE <= value <= SURE for value in row] for row in panel.probability]
    points = [point for point in result.points if point.panel == panel.panel]
    checked = [point for point in result.validation if point.panel == panel.panel]
    return {
        "side": _SIDE // 2,
        "cells": len(shades),
        "shades": _rows_by_value(shades),
        "undecided": _rows_by_value(is_open).get(True, ""),
        "alike": _rows_by_value(panel.alike).get(1, ""),
        "contour": _path(panel.contour),
        "band": _path(panel.band),
        "points": _dots([point for point in points if not point.note], x, y),
        "starved": _dots([point for point in points if point.note], x, y),
        "validation": _dots(checked, x, y),
        "missed": _dots([point for point in checked if not point.covered], x, y),
        "lines": list(_lines(panel)),
        "paper": paper_at,
        # The paper's point lies outside of the picture.
        "beyond": paper is not None and paper.probability is None,
        "x_ticks": ticks(x),
        "y_ticks": ticks(y),
        "x_label": _label(x),
        "y_label": _label(y),
    }


def _lines(panel: PanelRow) -> Iterator[tuple[str, str, str]]:
    """Yield the path, dashes and title of each law that is drawn."""
    for law, dash in zip(panel.laws, cycle(_DASHES), strict=False):
        if law.segments:
            yield _path(law.segments), dash, law.title


def shade(bounds: Sequence[float | None], value: float) -> int:
    """Return the colour of a value: positive if it meets the bound, larger for each of `_STEPS`.

    Of two bounds the closest counts: a value above both misses it as one below both does.
    """
    low, high = bounds
    distances = []
    if low:
        distances.append(math.log(value / low))
    if high:
        distances.append(math.log(high / value))
    distance = min(distances)
    size = 1 + sum(abs(distance) > math.log(step) for step in _STEPS)
    return size if distance >= 0 else -size


def _rows_by_value(rows: Sequence[Sequence[Any]]) -> dict[Any, str]:
    """Return, for each value of a surface, a path through the middles of its cells."""
    paths: dict[Any, str] = {}
    for number, row in enumerate(reversed(rows)):
        at = 0
        for value, same in groupby(row):
            width = len(list(same))
            paths[value] = f"{paths.get(value, '')}M{at} {number}h{width}"
            at += width
    return paths


def _path(segments: Sequence[Sequence[float]]) -> str:
    """Return a path through segments (x, y, x, y from 0 to 1), joined where they touch."""
    path, at = "", (0, 0)
    for x0, y0, x1, y1 in segments:
        start, end = _point(x0, y0), _point(x1, y1)
        if end == at:
            start, end = end, start
        move = "" if path and start == at else f"m{start[0] - at[0]} {start[1] - at[1]}"
        path += f"{move}l{end[0] - start[0]} {end[1] - start[1]}"
        at = end
    return path.replace(" -", "-")


def _dots(points: Sequence[PointRow | ValidationRow], x: AxisRow, y: AxisRow) -> str:
    x_span, y_span = x.span(), y.span()
    at = [_point(x_span.position(point.x), y_span.position(point.y)) for point in points]
    return "".join(f"M{a} {b}h0" for a, b in dict.fromkeys(at))


def _point(x: float, y: float) -> tuple[int, int]:
    return round(_SIDE * x), round(_SIDE * (1 - y))


def _label(axis: AxisRow) -> str:
    unit = shown_unit(axis.unit)
    return f"{axis.title}, {unit}" if unit else axis.title


def ticks(axis: AxisRow) -> list[tuple[float, str]]:
    """Return the ticks of an axis at round numbers: positions from 0 to 1, and labels."""
    span = axis.span(display_unit(axis.unit)[1])
    if not span.log:
        step = round_step(span.high - span.low, _MOST_TICKS - 1)
        numbers = range(math.ceil(span.low / step), math.floor(span.high / step) + 1)
        return [(span.position(n * step), f"{n * step:g}") for n in numbers]
    decades = range(math.floor(math.log10(span.low)), math.ceil(math.log10(span.high)) + 1)
    powers = [10.0**exponent for exponent in decades]
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = flat([step * power for step in steps] for power in powers)
        values = [value for value in values if -1e-9 <= span.position(value) <= 1 + 1e-9]
        if len(values) <= _MOST_TICKS:
            break
    return [(span.position(value), f"{value:g}") for value in values]


#: Functions and values that the templates of regions use.
WORDS = {
    "picture": picture,
    "steps": _STEPS,
    "runs": RUNS,
    "panel_title": panel_title,
    "sure": SURE,
    "away": away,
    "border_sentences": border_sentences,
    "scale_words": scale_words,
}
