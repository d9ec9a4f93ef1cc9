"""A region as a notebook sees it: its runs, surface and validation as tidy data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from replication.explore.regions.surface import middles
from replication.report.pages.regions import Axis, panel_title

#: Digits that a number has at most.
EXACT = 17


class RegionData(NamedTuple):
    """A region on an engine; `document` has the claim, its test, axes, surfaces and runs.

    Each table has a column `panel` and one an axis. In `validation`, `covered` is whether the mean
    of a point's runs lies inside the predicted 90 % interval, `deviations` how many standard
    deviations it is off. `surface` has the middle of each cell of the area.
    """

    document: Mapping[str, Any]
    axes: Sequence[Mapping[str, Any]]
    runs: pd.DataFrame
    validation: pd.DataFrame
    surface: pd.DataFrame


def region_data(document: Mapping[str, Any]) -> RegionData:
    """Return the tables of a region's result on an engine."""
    names = [str(axis["id"]) for axis in document["axes"]]

    def points(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
        frame = pd.DataFrame(rows, columns=["panel", "x", "y", *shown])
        frame["panel"] = [panel_title(document, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", names, strict=True)))

    axes, cells = [Axis.of(axis) for axis in document["axes"]], []
    for panel in document["panels"]:
        places, title = middles(len(panel["quantity"])), panel_title(document, panel["panel"])
        for y, *rows in zip(places, panel["quantity"], panel["probability"], strict=True):
            for x, *found in zip(places, *rows, strict=True):
                own = zip(axes, (x, y), strict=True)
                cells.append((title, *(a.at(at, EXACT) / a.factor for a, at in own), *found))
    return RegionData(
        document,
        list(document["axes"]),
        points(document["points"], "quantity", "note"),
        points(document["validation"], "holds", "probability", "covered", "deviations"),
        pd.DataFrame(cells, columns=["panel", *names, "quantity", "probability"]),
    )
