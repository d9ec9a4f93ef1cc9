"""A map as a notebook sees it: its points and cells as tidy data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.config import load_study
from replication.explore.maps.map_model import load_map
from replication.explore.maps.region_result import is_current, region_results
from replication.explore.maps.space import Point, Space
from replication.report.pages.regions import facet_title
from replication.study.errors import InputError
from replication.study.scenario import Scenario


@dataclass(frozen=True)
class MapData:
    """A map on an engine; `document` has the claim, its test, axes, grids, laws and points."""

    document: Mapping[str, Any]

    @property
    def axes(self) -> list[Mapping[str, Any]]:
        """Its axes across and up: id, title, unit, low, high, log, and the paper's own value."""
        return list(self.document["axes"])

    @property
    def points(self) -> pd.DataFrame:
        """One row a point: facet, a column an axis, what was found, and whether it is fresh.

        A fresh point is none that the border was drawn from; `expected` is what that says there.
        """
        across, up = (axis["id"] for axis in self.axes)
        points = pd.DataFrame(self.document["points"]).rename(columns={"x": across, "y": up})
        points["facet"] = points["facet"].map(self._facet)
        points["fresh"] = points["expected"].notna()
        shown = ["facet", across, up, "holds", "statistic", "margin", "replicates"]
        return points[[*shown, "fresh", "expected"]]

    @property
    def cells(self) -> pd.DataFrame:
        """One row a cell of the grid: facet, ends along each axis, side and share of the area.

        The side is what was found at its corners: holds, fails, border (some of either), unknown.
        """
        across, up = (axis["id"] for axis in self.axes)
        rows = []
        for grid in self.document["grids"]:
            size = grid["size"]
            for i, j, step, side in grid["leaves"]:
                ends = {
                    f"{name}{end}": self._value(number, (place + more) / size)
                    for number, (name, place) in enumerate(((across, i), (up, j)))
                    for end, more in (("", 0), ("_end", step))
                }
                facet = self._facet(grid["facet"])
                rows.append({"facet": facet, **ends, "side": side, "area": (step / size) ** 2})
        return pd.DataFrame(rows)

    @property
    def laws(self) -> pd.DataFrame:
        """One row a point of a law that is drawn in: facet, law, a column an axis."""
        across, up = (axis["id"] for axis in self.axes)
        rows = [
            {
                "facet": self._facet(grid["facet"]),
                "law": law["title"],
                across: self._value(0, x),
                up: self._value(1, y),
            }
            for grid in self.document["grids"]
            for law in grid["theory"]
            for x, y in law["points"]
        ]
        return pd.DataFrame(rows, columns=["facet", "law", across, up])

    def _facet(self, keys: list[str]) -> str:
        return facet_title(self.document, keys)

    def _value(self, number: int, place: float) -> float:
        axis = self.axes[number]
        low, high = float(axis["low"]), float(axis["high"])
        return low * (high / low) ** place if axis["log"] else low + place * (high - low)


def map_list(root: Path, data: Path) -> pd.DataFrame:
    """Return one row a map and engine: title, study, share of the space in which it holds.

    `current` is whether no file behind it changed since it was made.
    """
    names = ("map", "engine", "title", "study", "share", "checked", "right")
    rows = [
        {name: row[name] for name in names} | {"current": is_current(root, data, row)}
        for row in region_results(data)
    ]
    return pd.DataFrame(rows, columns=[*names, "current"])


def read_map(data: Path, name: str, engine: str) -> MapData:
    """Return a map on an engine.

    Raises
    ------
    InputError
        It is not there; the message says what to run.
    """
    for document in region_results(data):
        if (document["map"], document["engine"]) == (name, engine):
            return MapData(document)
    raise InputError(f"{data}: no map {name!r} on {engine}; run `make maps` first")


def scenarios_at(root: Path, found: MapData, across: float, up: float) -> list[Scenario]:
    """Return the scenarios of any place of a map, in its first facet.

    Raises
    ------
    InputError
        The map is not there any more, or the values make no scenario.
    """
    own = load_map(root, found.document["map"])
    space = Space(own, load_study(root, own.study), found.document["engine"])
    shares = [
        axis.range.position(value)
        for axis, value in zip(own.ranges, (across, up), strict=True)
        if axis.range is not None
    ]
    runs = space.runs(Point(space.panels[0], *shares))
    return [run.scenario for run in runs]
