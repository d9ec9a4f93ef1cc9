"""The pages on regions: response surfaces of claims as SVG, and claims on a modern kernel."""

import math
from collections.abc import Iterator, Sequence
from itertools import cycle, groupby
from statistics import fmean
from typing import Any

import pandas as pd

from replication.compare.agreement import load_differences
from replication.compare.verdicts import Judged, compare_verdicts
from replication.engines.catalogue import ENGINES
from replication.explore.named_variation import varied_results
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
    away,
    border_sentences,
    law_runs,
    scale_words,
)
from replication.report.pages.shown import display_unit as shown_unit
from replication.report.pages.source import Source, of_study
from replication.study.study import REGIONS_TABLE
from replication.study.table import grouped
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import Tally

#: Every run of every region, in the folder of the pages.
RUNS = "region_runs.parquet"
#: Ratios of the quantity to its threshold at which the colour deepens.
_STEPS = (1.1, 1.5, 3.0)
#: Share of the area from which a claim holds, or fails, nearly everywhere.
_NEARLY = 0.9


def regions_page(source: Source) -> dict[str, Any] | None:
    """Return what the templates show; None if `make regions` did not run."""
    if not (source.data / REGIONS_TABLE).is_file():
        return None
    every = region_results(source.data)
    results = [one for one in every if region_path(source.root, one.region).is_file()]
    stale = [one for one in results if not is_current(source.root, source.data, one)]
    return {
        "found": results,
        "summary": summary(results) if results else None,
        "by_study": _by_study(source, results),
        # Made before a file behind them changed.
        "stale": [f"{result.title} ({result.engine})" for result in stale],
        "changes": load_settings(source.root).changed if results else [],
        "entries": load_differences(source.root).by_id if results else {},
        "modern": list(modern_views(source)),
        "law_runs": law_runs(source.root),
        "picture": picture,
        "steps": _STEPS,
        "runs": RUNS,
        **WORDS,
    }


def _by_study(source: Source, results: Sequence[RegionResult]) -> dict[str, list[dict[str, Any]]]:
    """Return the regions of each study, each with its results by engine."""
    by_study = {}
    for study in source.studies:
        if of := of_study(results, study):
            by_study[study] = [_region(source, same) for same in grouped(of, "region").values()]
    return by_study


def _region(source: Source, engines: Sequence[RegionResult]) -> dict[str, Any]:
    laws: dict[tuple[str, str, str], None] = {}
    for result in engines:
        for panel in result.panels:
            laws |= dict.fromkeys((law.title, law.source, law.condition) for law in panel.laws)
    return {
        "first": engines[0],
        "laws": laws,
        "engines": engines,
        "changes": load_region(source.root, engines[0].region).changed,
    }


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


def summary(results: Sequence[RegionResult]) -> dict[str, Any]:
    """Return the counts over all regions."""
    alike = [result for result in results if result.cannot_differ >= _NEARLY]
    differing = [result for result in results if result.cannot_differ < _NEARLY]
    untied = [result for result in differing if not result.ties_everywhere]
    checked: list[ValidationRow] = []
    starved = 0
    for result in results:
        checked += result.validation
        starved += sum(panel.starved for panel in result.panels)
    return {
        "regions": len(results),
        "claims": len({result.region for result in results}),
        "papers": len({result.study for result in results}),
        "hold": sum(result.holds >= _NEARLY for result in results),
        "fail": sum(result.fails >= _NEARLY for result in untied),
        "ties": len(differing) - len(untied),
        "undecided": fmean(result.open for result in untied) if untied else 0.0,
        "alike": len(alike),
        "outside": len({result.region for result in results if away(result)}),
        "checked": len(checked),
        "covered": sum(point.covered for point in checked),
        "brier": fmean((p.probability - p.holds) ** 2 for p in checked) if checked else None,
        "starved": starved,
    }


def modern_views(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the studies of the report that were judged on a modern kernel, claim by claim."""
    for result in varied_results(source.root, source.data, MODERN_KERNEL):
        if (study := source.studies.get(result.study)) is None:
            continue
        rows = map(Judged.of_claim, of_study(source.on_primary(source.claims), study.id))
        modern = [
            Judged(item=(row.claim,), verdict=row.verdict, reason=row.reason)
            for row in result.claims
        ]
        quotes = {claim.id: claim.quote for claim in study.claims if claim.is_counted}
        claims: list[dict[str, Any]] = [
            {
                "id": one.item[0],
                "quote": quotes[one.item[0]],
                "own": one.verdicts[0] or Verdict.NOT_TESTABLE,
                "modern": one.verdicts[1],
                "reason": one.known.reason,
                "differs": one.agrees is False,
            }
            for one in compare_verdicts(rows, modern, same=())
            if one.after and one.item[0] in quotes
        ]
        yield {
            "study": study,
            "own_engine": source.primary_engines[study.id].engine,
            "found": result,
            "kernel": ENGINES[result.engine].full_title,
            # The studies that the kernel does not run again.
            "already": [
                other
                for other in source.studies.values()
                if other.original_system.engine == result.engine
            ],
            "tally": Tally(one["modern"] for one in claims),
            "claims": claims,
            "changed": sum(one["differs"] for one in claims),
        }


def panel_title(result: RegionResult, panel: Sequence[str]) -> str:
    """Return a panel in words; empty if the region has no axes with levels."""
    titles = [axis.levels[key] for axis, key in zip(result.level_axes, panel, strict=True)]
    return ", ".join(titles)


#: Functions and values that `region_words.html` uses.
WORDS = {
    "panel_title": panel_title,
    "sure": SURE,
    "away": away,
    "border_sentences": border_sentences,
    "scale_words": scale_words,
}
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
        "lines": [
            (_path(law.segments), dash, law.title)
            for law, dash in zip(panel.laws, cycle(_DASHES), strict=False)
            if law.segments
        ],
        "paper": paper_at,
        # The paper's point lies outside of the picture.
        "beyond": paper is not None and paper.probability is None,
        "x_ticks": ticks(x),
        "y_ticks": ticks(y),
        "x_label": _label(x),
        "y_label": _label(y),
    }


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
    powers = range(math.floor(math.log10(span.low)), math.ceil(math.log10(span.high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = [step * 10.0**power for power in powers for step in steps]
        values = [value for value in values if -1e-9 <= span.position(value) <= 1 + 1e-9]
        if len(values) <= _MOST_TICKS:
            break
    return [(span.position(value), f"{value:g}") for value in values]
