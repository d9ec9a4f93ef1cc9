"""A region as a notebook sees it: its runs, surface and validation as tidy data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.config import load_study
from replication.explore.regions.region_model import load_region
from replication.explore.regions.region_result import is_current, region_results
from replication.explore.regions.space import Point, Space
from replication.explore.regions.surface import middles
from replication.report.pages.regions import Axis, panel_title
from replication.study.errors import InputError
from replication.study.scenario import Scenario


@dataclass(frozen=True)
class RegionData:
    """A region on an engine; `document` has the claim, its test, axes, surfaces and runs."""

    document: Mapping[str, Any]

    @property
    def axes(self) -> list[Mapping[str, Any]]:
        """Its axes x and y: id, title, unit, low, high, log, and the paper's own value."""
        return list(self.document["axes"])

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run that surfaces are fitted to: panel, a column an axis, quantity, note."""
        return self._points(self.document["points"])[["panel", *self._names, "quantity", "note"]]

    @property
    def validation(self) -> pd.DataFrame:
        """One row a validation point: whether the claim holds, how probable that was, and more.

        `covered` is whether the mean of its runs lies inside the predicted 90 % interval,
        `deviations` how many standard deviations it is off.
        """
        shown = ["holds", "probability", "covered", "deviations"]
        return self._points(self.document["validation"])[["panel", *self._names, *shown]]

    @property
    def surface(self) -> pd.DataFrame:
        """One row a cell of the area: panel, its middle on each axis, quantity, probability."""
        rows, axes = [], [Axis.of(axis) for axis in self.axes]
        for panel in self.document["panels"]:
            title = panel_title(self.document, panel["panel"])
            places = middles(len(panel["quantity"]))
            for y, quantities, probabilities in zip(
                places, panel["quantity"], panel["probability"], strict=True
            ):
                rows += [
                    (title, axes[0].at(x) / axes[0].factor, axes[1].at(y) / axes[1].factor, *found)
                    for x, *found in zip(places, quantities, probabilities, strict=True)
                ]
        return pd.DataFrame(rows, columns=["panel", *self._names, "quantity", "probability"])

    @property
    def _names(self) -> list[str]:
        return [str(axis["id"]) for axis in self.axes]

    def _points(self, points: list[dict[str, Any]]) -> pd.DataFrame:
        columns = ["panel", "x", "y", "quantity", "note"]
        columns += ["holds", "probability", "covered", "deviations"]
        frame = pd.DataFrame(points, columns=columns)
        frame["panel"] = [panel_title(self.document, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", self._names, strict=True)))


def region_list(root: Path, data: Path) -> pd.DataFrame:
    """Return one row a region and engine: title, study, shares of the area, validation.

    `current` is whether no file behind it changed since it was made.
    """
    names = ("region", "engine", "title", "study", "holds", "fails", "undecided", "coverage_90")
    rows = [
        {name: row[name] for name in names} | {"current": is_current(root, data, row)}
        for row in region_results(data)
    ]
    return pd.DataFrame(rows, columns=[*names, "current"])


def read_region(data: Path, name: str, engine: str) -> RegionData:
    """Return a region on an engine.

    Raises
    ------
    InputError
        It is not there; the message says what to run.
    """
    for document in region_results(data):
        if (document["region"], document["engine"]) == (name, engine):
            return RegionData(document)
    raise InputError(f"{data}: no region {name!r} on {engine}; run `make regions` first")


def scenarios_at(root: Path, found: RegionData, x: float, y: float) -> list[Scenario]:
    """Return the scenarios of any point of a region, in its first panel.

    Raises
    ------
    InputError
        The region is not there any more, or the values make no scenario.
    """
    own = load_region(root, found.document["region"])
    space = Space(own, load_study(root, own.study), found.document["engine"])
    shares = [span.position(value) for span, value in zip(own.spans, (x, y), strict=True)]
    runs = space.runs(Point(space.panels[0], *shares))
    return [run.scenario for run in runs]
