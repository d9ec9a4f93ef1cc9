"""Where it holds: response surfaces of claims, and claims on a modern kernel.

A picture is an SVG that no script draws: the surface in steps of its ratio to the threshold, the
contour with its 90 % band, points, the paper's own point and laws. It takes the page's colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from statistics import fmean
from typing import Any

from replication.compare.agreement import load_differences
from replication.compare.verdicts import compare_verdicts
from replication.engines.catalogue import ENGINES
from replication.explore.modern_kernel import modern_results
from replication.explore.regions.region_model import load_region, load_settings, region_path
from replication.explore.regions.region_result import is_current, region_results
from replication.explore.regions.surface import SURE
from replication.metrics.metric_model import display_unit
from replication.report.pages.source import Source, of_study
from replication.study.study import REGIONS_TABLE
from replication.study.verdict import Verdict
from replication.verdicts.counts import Tally
from replication.verdicts.wording import lower

Found = Mapping[str, Any]

#: How the area is divided, in the order in which bars show it.
SIDES = ("holds", "undecided", "fails")
#: Factors by which the quantity passes its threshold at which the colour deepens.
STEPS = (1.1, 1.5, 3.0)
#: Shares from which a claim holds, or fails, nearly everywhere.
NEARLY = 0.9


def regions_page(source: Source) -> dict[str, Any] | None:
    """Return what the template shows; None where `make regions` did not run."""
    if not (source.data / REGIONS_TABLE).is_file():
        return None
    found = [
        one
        for one in region_results(source.data)
        if region_path(source.root, one["region"]).is_file()
    ]
    stale = [one for one in found if not is_current(source.root, source.data, one)]
    entries = load_differences(source.root).by_id if found else {}
    groups = groupby(found, key=lambda one: str(one["region"]))
    return {
        "found": found,
        "summary": summary(found) if found else None,
        "regions": [_region(source, name, list(own)) for name, own in groups],
        # Made before a file behind them changed: shown, and named.
        "stale": [f"{one['title']} ({one['engine']})" for one in stale],
        "changes": load_settings(source.root).changed if found else [],
        "entries": entries,
        "today": today_views(source),
        "picture": picture,
        "sides": SIDES,
        "steps": STEPS,
        **WORDS,
    }


def _region(source: Source, name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    laws = {
        (law["title"], law["source"], law["condition"]): None
        for one in found
        for panel in one["panels"]
        for law in panel["laws"]
    }
    changes = load_region(source.root, name).changed
    return {"first": found[0], "laws": list(laws), "engines": found, "changes": changes}


def summary(found: Sequence[Found]) -> dict[str, Any]:
    """Return what all regions say together."""
    untied = [one for one in found if not one["ties_everywhere"]]
    checked = [point for one in found for point in one["validation"]]
    return {
        "regions": len(found),
        "claims": len({one["region"] for one in found}),
        "papers": len({one["study"] for one in found}),
        "hold": sum(one["holds"] >= NEARLY for one in found),
        "fail": sum(one["fails"] >= NEARLY for one in untied),
        "ties": len(found) - len(untied),
        "undecided": fmean(one["undecided"] for one in untied) if untied else 0.0,
        "checked": len(checked),
        "covered": sum(point["covered"] for point in checked),
        "brier": fmean((p["probability"] - p["holds"]) ** 2 for p in checked) if checked else None,
        "starved": sum(panel["starved"] for one in found for panel in one["panels"]),
    }


def today_views(source: Source) -> list[dict[str, Any]]:
    """Return the studies of the report that were judged on a modern kernel, claim by claim."""
    views = []
    for found in modern_results(source.root, source.data):
        if (study := source.studies.get(found["study"])) is None:
            continue
        rows = of_study(source.headline(source.claims), study.id)
        quotes = {claim.id: claim.quote for claim in study.claims if claim.is_counted}
        compared = [one for one in compare_verdicts(rows, found["claims"], same=()) if one.after]
        claims: list[dict[str, Any]] = [
            {
                "id": one.item[0],
                "quote": quotes[one.item[0]],
                "own": one.verdicts[0] or Verdict.NOT_TESTABLE,
                "today": one.verdicts[1],
                "reason": str(one.known["reason"]),
                "differs": one.agrees is False,
            }
            for one in compared
            if one.item[0] in quotes
        ]
        views.append(
            {
                "study": study,
                "own_engine": source.headlines[study.id].engine,
                "found": found,
                "kernel": ENGINES[found["engine"]].full_title,
                "tally": Tally(one["today"] for one in claims),
                "claims": claims,
                "changed": sum(one["differs"] for one in claims),
            }
        )
    return views


@dataclass(frozen=True)
class Axis:
    """One axis of a region, as charts and sentences have it."""

    title: str
    unit: str
    low: float
    high: float
    log: bool
    factor: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Axis:
        """Return a result's axis in display units."""
        unit, factor = display_unit(document["unit"])
        low, high = (float(document[end]) * factor for end in ("low", "high"))
        return cls(document["title"], unit, low, high, bool(document["log"]), factor)

    def at(self, place: float) -> float:
        """Return the value at a position, 0 to 1."""
        if self.log:
            return float(self.low * (self.high / self.low) ** place)
        return self.low + place * (self.high - self.low)

    @property
    def label(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


def _short(value: float) -> str:
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace("-", "\u2212")
    return f"{value:.3g}".replace("-", "\u2212")


def axes_of(found: Found) -> tuple[Axis, Axis]:
    """Return the axes x and y."""
    x, y = map(Axis.of, found["axes"])
    return x, y


def panel_title(found: Found, panel: Sequence[str]) -> str:
    """Return a panel in words; empty where the region has no axes with levels."""
    titles = [axis["levels"][key] for axis, key in zip(found["level_axes"], panel, strict=True)]
    return ", ".join(titles)


def side_of(probability: float) -> str:
    """Return on which side of the contour a point lies."""
    if probability > SURE:
        return "where it holds"
    return "where it fails" if probability < 1 - SURE else "where it is undecided"


#: What the sentences of `region_words.html` are made with.
WORDS = {
    "axes_of": axes_of,
    "panel_title": panel_title,
    "phrase": lower,
    "short": _short,
    "side_of": side_of,
}
#: Ground of the picture and what is left around it for words, in its own units.
SIDE, LEFT, BELOW, ABOVE, RIGHT = 300.0, 58.0, 46.0, 8.0, 14.0
_TICK_STEPS = (1, 2, 5)
_MOST_TICKS = 6
_DASHES = ("7 4", "2 3", "9 3 2 3")


def picture(found: Found, panel: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of a panel, ``beyond`` if the paper's own point lies past its mark."""
    x, y = axes_of(found)
    paper = panel["paper"]
    lines = [
        (_path(law["segments"]), dash, law["title"])
        for law, dash in zip(panel["laws"], cycle(_DASHES), strict=False)
        if law["segments"]
    ]
    shades = [[shade(found["bounds"], value) for value in row] for row in panel["quantity"]]
    open_ = [[1 - SURE <= value <= SURE for value in row] for row in panel["probability"]]
    points = [one for one in found["points"] if one["panel"] == panel["panel"]]
    checked = [one for one in found["validation"] if one["panel"] == panel["panel"]]
    return {
        "width": LEFT + SIDE + RIGHT,
        "height": ABOVE + SIDE + BELOW,
        "left": LEFT,
        "top": ABOVE,
        "side": SIDE,
        "cells": list(_merged(shades)),
        "undecided": [cell for cell in _merged(open_) if cell[3]],
        "contour": _path(panel["contour"]),
        "band": _path(panel["band"]),
        "points": _dots([one for one in points if not one["note"]], x, y),
        "starved": _dots([one for one in points if one["note"]], x, y),
        "validation": _dots(checked, x, y),
        "missed": _dots([one for one in checked if not one["covered"]], x, y),
        "lines": lines,
        "paper": None if paper is None else _own(paper["at"]),
        "beyond": paper is not None and paper["probability"] is None,
        "x_ticks": [(_x(at), label) for at, label in ticks(x)],
        "y_ticks": [(_y(at), label) for at, label in ticks(y)],
        "x_label": x.label,
        "y_label": y.label,
    }


def shade(bounds: Sequence[float | None], value: float) -> int:
    """Return the colour of a value: positive where it meets the bound, deeper by `STEPS`.

    Between two bounds the colours part at their middle, and the contour shows the bounds.
    """
    low, high = bounds
    if low and high:
        distance = math.log(value / math.sqrt(low * high))
    else:
        distance = math.log(value / low) if low else -math.log(value / (high or 1.0))
    size = 1 + sum(abs(distance) > math.log(step) for step in STEPS)
    return size if distance >= 0 else -size


def _merged(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[float, float, float, Any]]:
    """Yield left, top, width and value of neighbours in a row that are alike."""
    for number, row in enumerate(rows):
        at = 0
        for value, same in groupby(row):
            width = len(list(same))
            yield (
                _x(at / len(row)),
                _y((number + 1) / len(rows)),
                round(SIDE * width / len(row), 1),
                value,
            )
            at += width


def _path(segments: Sequence[Sequence[float]]) -> str:
    return "".join(f"M{_x(a)} {_y(b)}L{_x(c)} {_y(d)}" for a, b, c, d in segments)


def _dots(points: Sequence[Mapping[str, Any]], x: Axis, y: Axis) -> str:
    at = [(_place(x, one["x"] * x.factor), _place(y, one["y"] * y.factor)) for one in points]
    return "".join(f"M{_x(a)} {_y(b)}h0" for a, b in dict.fromkeys(at))


def _x(place: float) -> float:
    return round(LEFT + SIDE * place, 1)


def _y(place: float) -> float:
    return round(ABOVE + SIDE * (1 - place), 1)


def _own(at: Sequence[float | None]) -> tuple[float, float] | None:
    """Return where the paper's point is drawn, on the edge that is nearest to it if outside."""
    if any(place is None for place in at):
        return None
    x, y = (min(1.0, max(0.0, place)) for place in at if place is not None)
    return _x(x), _y(y)


def _place(axis: Axis, value: float) -> float:
    if axis.log:
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return the marks of an axis: positions from 0 to 1 and what they say, round numbers."""
    values = _log_ticks(axis) if axis.log else _even_ticks(axis)
    return [(_place(axis, value), f"{value:g}") for value in values]


def _log_ticks(axis: Axis) -> list[float]:
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    slack = 1 + 1e-9
    for steps in (_TICK_STEPS, (1, 3), (1,)):
        values = [
            step * 10.0**power
            for power in powers
            for step in steps
            if axis.low / slack <= step * 10.0**power <= axis.high * slack
        ]
        if len(values) <= _MOST_TICKS:
            break
    return values


def _even_ticks(axis: Axis) -> list[float]:
    rough = (axis.high - axis.low) / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
    first = math.ceil(axis.low / step)
    return [number * step for number in range(first, math.floor(axis.high / step) + 1)]
