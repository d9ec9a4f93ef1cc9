"""Where it holds: regions of claims in words and pictures, and claims on a stack of today.

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
from replication.explore.maps.account import accounts, is_current, read_account
from replication.explore.maps.map_model import load_map, load_mapping
from replication.explore.modern_kernel import judged_today
from replication.metrics.metric_model import display_unit
from replication.report.pages.source import Source, of_study
from replication.report.pages.verdict import Tally
from replication.study.study import MAPS_TABLE, Study
from replication.study.verdict import Verdict
from replication.verdicts.wording import lower

Account = Mapping[str, Any]

#: Sides of a border as a grid's cells have them, in the order in which bars show them.
SIDES = ("holds", "border", "unknown", "fails")
#: From this share of its space on a sentence holds nearly everywhere; from one less it, nowhere.
_NEARLY = 0.9


def regions_page(source: Source) -> dict[str, Any] | None:
    """Return what the template shows; None where `make maps` did not run."""
    if not (source.data / MAPS_TABLE).is_file():
        return None
    found = [read_account(path) for path in accounts(source.data)]
    current = [one for one in found if is_current(source.root, source.data, one)]
    for number, one in enumerate(current):
        # Short: the page names each of thousands of points twice.
        one["anchor"] = f"m{number}"
    groups = groupby(current, key=lambda one: str(one["map"]))
    return {
        "answer": answer(current) if current else "",
        "maps": [_region(source, name, list(own)) for name, own in groups],
        "stale": [f"{one['map']} on {one['engine']}" for one in found if one not in current],
        "changes": load_mapping(source.root).changed if current else [],
        "today": today_views(source),
        "areas": areas,
        "check": check,
        "details": details,
        "facet_title": facet_title,
        "headline": headline,
        "picture": picture,
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
    """Return the studies of the report that were judged on a stack of today."""
    found = judged_today(source.root, source.data)
    return [
        _today(source, source.studies[one["study"]], one)
        for one in found
        if one["study"] in source.studies
    ]


def _today(source: Source, study: Study, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's own verdicts beside those of today."""
    rows = of_study(source.headline(source.claims), study.id)
    compared = {one.item[0]: one for one in compare_verdicts(rows, found["claims"], same=())}
    claims: list[dict[str, Any]] = []
    for claim in study.claims:
        one = compared.get(claim.id)
        if one is not None and one.after:
            claims.append(
                {
                    "id": claim.id,
                    "quote": claim.quote,
                    "own": one.verdicts[0] or Verdict.NOT_TESTABLE,
                    "today": one.verdicts[1],
                    "reason": str(one.known["reason"]),
                    "differs": one.agrees is False,
                }
            )
    tally = Tally(one["today"] for one in claims)
    changed = sum(one["differs"] for one in claims)
    sentence = (
        f"{tally.count(Verdict.REPRODUCED)} of {len(claims)} claims hold on it, "
        f"{tally.count(Verdict.DIRECTION_ONLY)} in direction only; {changed} "
        f"{'claim has' if changed == 1 else 'claims have'} another verdict than in the study."
    )
    return {
        "study": study,
        "own_engine": source.headlines[study.id].engine,
        "found": found,
        "tally": tally,
        "claims": claims,
        "sentence": sentence,
    }


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


def headline(account: Account) -> str:
    """Return where the sentence holds on the account's engine, and how well that is known."""
    share = account["share"]
    if share is None:
        return f"On {account['engine']} nothing can be said: {_why_not(account)}"
    spared = sum(point["expected"] is None for point in account["points"])
    sentence = f"On {account['engine']} it holds at {100 * share:.0f} % of the mapped space"
    if len(account["grids"]) > 1:
        sentence += f" ({'; '.join(_shares(account))})"
    width = account["width"]
    if width:
        sentence += f"; the border is known to {100 * width:.2g} % of each axis"
        if width > account["width_wanted"]:
            sentence += f", where {100 * account['width_wanted']:.2g} % are wanted"
    return f"{sentence}, by {spared} points where a full grid has {account['full_grid_points']}."


def check(account: Account) -> str:
    """Return how the border did at fresh points."""
    if not account["checked"]:
        return "The border was not checked: this tier runs no fresh points."
    low, high = account["right_interval"]
    return (
        f"At {account['checked']} fresh points on both sides of the border it is right at "
        f"{account['right']} (95 % interval {100 * low:.0f} to {100 * high:.0f} %)."
    )


def areas(account: Account) -> dict[str, float]:
    """Return the share of all charts' space that lies on each side of the border, or on it."""
    grids = account["grids"]
    return {
        side: sum(grid["area"].get(side, 0.0) for grid in grids) / len(grids)
        for side in SIDES
        if any(grid["area"].get(side) for grid in grids)
    }


def answer(accounts: Sequence[Account]) -> str:
    """Return what all maps say together."""
    shares = [one["share"] for one in accounts if one["share"] is not None]
    everywhere = sum(share >= _NEARLY for share in shares)
    nowhere = sum(share <= 1 - _NEARLY for share in shares)
    sentences, papers = (len({one[key] for one in accounts}) for key in ("map", "study"))
    words = (
        f"Mapped are {sentences} sentences of {papers} papers, on up to two engines. The sentence "
        f"holds at {100 * _NEARLY:.0f} % of the space or more in {everywhere} of "
        f"{len(accounts)} maps, at {100 - 100 * _NEARLY:.0f} % or less in {nowhere}, and up to a "
        f"border in {len(shares) - everywhere - nowhere}."
    )
    checked, right = (sum(one[key] for one in accounts) for key in ("checked", "right"))
    if checked:
        words += (
            f" The borders are right at {right} of {checked} fresh points beside them "
            f"({100 * right / checked:.0f} %)."
        )
    return words


def details(account: Account, grid: Mapping[str, Any]) -> list[str]:
    """Return what stands below a facet's chart: thresholds, and where the paper's point lies."""
    axes = axes_of(account)
    needs = [_needs(axis, t) for axis, t in zip(axes, grid["thresholds"], strict=True) if t]
    return [*needs, *_paper(account, axes, grid["paper"])]


def _shares(account: Account) -> Iterator[str]:
    for grid in account["grids"]:
        if grid["share"] is not None:
            yield f"{facet_title(account, grid['facet'])}: {100 * grid['share']:.0f} %"


def _why_not(account: Account) -> str:
    reasons = [point["reason"] for point in account["points"] if point["reason"]]
    return f"{reasons[0]}." if reasons else "no point was run."


def _needs(axis: Axis, threshold: Mapping[str, Any]) -> str:
    side = "above" if threshold["above"] else "below"
    median, low, high = (axis.words(threshold[key]) for key in ("median", "lowest", "highest"))
    if low == high:
        return f"It needs: {lower(axis.title)} {side} {median}."
    return f"It needs: {lower(axis.title)} {side} {median} ({low} to {high} along the other axis)."


def _paper(
    account: Account, axes: tuple[Axis, Axis], paper: Mapping[str, Any] | None
) -> Iterator[str]:
    if paper is None:
        return
    own = [
        f"{lower(axis.title)} {_short(document['paper'] * axis.factor)} {axis.unit}".strip()
        for axis, document in zip(axes, account["axes"], strict=True)
    ]
    where = " and ".join(own)
    if paper["side"] == "outside":
        yield f"The paper's own point lies outside of the map ({where})."
        return
    side = {"holds": "where it holds", "fails": "where it fails"}.get(
        paper["side"], "on the border"
    )
    borders = [
        f"{axis.words(place)} ({lower(axis.title)})"
        for axis, place in zip(axes, paper["border"], strict=True)
        if place is not None
    ]
    nearest = f"; the border nearest to it is at {' or '.join(borders)}" if borders else ""
    yield f"The paper's own point ({where}) lies {side}{nearest}."


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
