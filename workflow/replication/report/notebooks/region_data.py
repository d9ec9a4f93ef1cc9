"""A region as a notebook sees it: its runs, surface and validation as tidy data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.explore.regions.surface import middles
from replication.report.pages.regions import Axis, panel_title


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
