"""Where it holds: regions of claims in words and pictures, and claims on a modern kernel.

A map's account says all. Its picture is an SVG that no script draws: cells by side of the border,
points that link to their runs, the paper's own point and theory. It takes the page's colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any

from replication.compare.verdicts import compare_verdicts
from replication.engines.catalogue import ENGINES
from replication.explore.maps.map_model import load_map, load_mapping, map_path
from replication.explore.maps.region_result import is_current, region_results
from replication.explore.modern_kernel import modern_results
from replication.metrics.metric_model import display_unit
from replication.report.pages.source import Source, of_study
from replication.study.study import MAPS_TABLE
from replication.study.verdict import Verdict
from replication.verdicts.counts import Tally
from replication.verdicts.wording import lower

Account = Mapping[str, Any]

#: Sides of a border as a grid's cells have them, in the order in which bars show them.
SIDES = ("holds", "border", "unknown", "fails")


def regions_page(source: Source) -> dict[str, Any] | None:
    """Return what the template shows; None where `make maps` did not run."""
    if not (source.data / MAPS_TABLE).is_file():
        return None
    found = [
        one for one in region_results(source.data) if map_path(source.root, one["map"]).is_file()
    ]
    stale = [one for one in found if not is_current(source.root, source.data, one)]
    for number, one in enumerate(found):
        # Short: the page names each of thousands of points twice.
        one["anchor"] = f"m{number}"
    groups = groupby(found, key=lambda one: str(one["map"]))
    return {
        "regions": found,
        "maps": [_region(source, name, list(own)) for name, own in groups],
        # Mapped before a file behind them changed: shown, and named.
        "stale": [f"{one['title']} ({one['engine']})" for one in stale],
        "changes": load_mapping(source.root).changed if found else [],
        "today": today_views(source),
        "areas": areas,
        "picture": picture,
        **WORDS,
        "found": {True: "holds", False: "fails", None: "nothing can be said"},
    }


def _region(source: Source, name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    laws = {
        (law["title"], law["source"], law["condition"]): None
        for one in found
        for grid in one["grids"]
        for law in grid["theory"]
    }
    changes = load_map(source.root, name).changed
    return {"account": found[0], "laws": list(laws), "engines": found, "changes": changes}


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
    """One axis of a map, as charts and sentences have it."""

    title: str
    unit: str
    low: float
    high: float
    log: bool
    factor: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Axis:
        """Return an account's axis in display units."""
        unit, factor = display_unit(document["unit"])
        low, high = (float(document[end]) * factor for end in ("low", "high"))
        return cls(document["title"], unit, low, high, bool(document["log"]), factor)

    def at(self, place: float) -> float:
        """Return the value at a position, 0 to 1."""
        if self.log:
            return float(self.low * (self.high / self.low) ** place)
        return self.low + place * (self.high - self.low)

    def words(self, place: float) -> str:
        """Return the value at a position with its unit."""
        return f"{_short(self.at(place))} {self.unit}".strip()

    @property
    def label(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


def _short(value: float) -> str:
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace("-", "\u2212")
    return f"{value:.3g}".replace("-", "\u2212")


def axes_of(account: Account) -> tuple[Axis, Axis]:
    """Return the axes across and up."""
    across, up = map(Axis.of, account["axes"])
    return across, up


def facet_title(account: Account, facet: list[str]) -> str:
    """Return a facet in words; empty where the map has no such axes."""
    titles = [axis["levels"][key] for axis, key in zip(account["facets"], facet, strict=True)]
    return ", ".join(titles)


def areas(account: Account) -> dict[str, float]:
    """Return the share of all charts' space that lies on each side of the border, or on it."""
    grids = account["grids"]
    return {
        side: sum(grid["area"].get(side, 0.0) for grid in grids) / len(grids)
        for side in SIDES
        if any(grid["area"].get(side) for grid in grids)
    }


#: What the sentences of `map_words.html` are made with.
WORDS = {"axes_of": axes_of, "facet_title": facet_title, "phrase": lower, "short": _short}
#: Ground of the picture and what is left around it for words, in its own units.
SIDE, LEFT, BELOW, ABOVE, RIGHT = 300.0, 58.0, 46.0, 8.0, 14.0
_STEPS = (1, 2, 5)
_MOST_TICKS = 6
_DASHES = ("7 4", "2 3", "9 3 2 3")


def picture(account: Account, grid: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of one facet, ``beyond`` if the paper's own point lies past its mark."""
    across, up = axes_of(account)
    paper, size = grid["paper"], grid["size"]
    cells = [
        (_x(i / size), _y((j + step) / size), round(SIDE * step / size, 2), side)
        for i, j, step, side in grid["leaves"]
    ]
    lines = [
        ("M" + " L".join(f"{_x(a)} {_y(b)}" for a, b in law["points"]), dash, law["title"])
        for law, dash in zip(grid["theory"], cycle(_DASHES), strict=False)
        if len(law["points"]) > 1
    ]
    return {
        "width": LEFT + SIDE + RIGHT,
        "height": ABOVE + SIDE + BELOW,
        "left": LEFT,
        "top": ABOVE,
        "side": SIDE,
        "cells": cells,
        "points": list(_points(account, grid, across, up)),
        "lines": lines,
        "paper": None if paper is None else _own(paper["at"]),
        "beyond": paper is not None and paper["side"] == "outside",
        "x_ticks": [(_x(place), label) for place, label in ticks(across)],
        "y_ticks": [(_y(place), label) for place, label in ticks(up)],
        "x_label": across.label,
        "y_label": up.label,
    }


def _x(place: float) -> float:
    return round(LEFT + SIDE * place, 1)


def _y(place: float) -> float:
    return round(ABOVE + SIDE * (1 - place), 1)


def _own(at: Sequence[float | None]) -> tuple[float, float] | None:
    """Return where the paper's point is drawn, on the edge that is nearest to it if outside."""
    if any(place is None for place in at):
        return None
    across, up = (min(1.0, max(0.0, place)) for place in at if place is not None)
    return _x(across), _y(up)


def _points(
    account: Account, grid: Mapping[str, Any], across: Axis, up: Axis
) -> Iterator[dict[str, Any]]:
    """Yield the points that were run: a symbol by its verdict, a link to its runs."""
    for number, point in enumerate(account["points"]):
        if point["facet"] != grid["facet"]:
            continue
        holds, expected = point["holds"], point["expected"]
        side = "unknown" if holds is None else "holds" if holds else "fails"
        x, y = point["x"] * across.factor, point["y"] * up.factor
        yield {
            "x": _x(_place(across, x)),
            "y": _y(_place(up, y)),
            "side": side,
            "fresh": expected is not None,
            "wrong": expected is not None and holds is not None and holds is not expected,
            "anchor": f"{account['anchor']}.{number}",
            "words": f"{across.title} {x:.3g} {across.unit}, {up.title} {y:.3g} {up.unit}: {side}",
        }


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
    for steps in (_STEPS, (1, 3), (1,)):
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
