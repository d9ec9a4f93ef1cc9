"""A region in notebooks: its tables, its boundary in words, and runs at any of its points."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from replication.explore.regions.border import range_of
from replication.explore.regions.region_model import load_region
from replication.explore.regions.region_result import is_current, region_results
from replication.explore.regions.space import Point, Space
from replication.explore.regions.surface import middles
from replication.report.notebooks.names import check_name
from replication.report.notebooks.region_picture import RegionPicture, region_picture
from replication.report.pages.region_words import away, border_sentences, scale_words
from replication.report.pages.regions import panel_title
from replication.study.errors import InputError
from replication.study.scenario import Scenario
from replication.study.study import Study

#: Significant digits that keep a number exact.
_EXACT = 17


class RegionData(NamedTuple):
    """A region on an engine; `document` has the claim, its test, axes, surfaces and runs.

    Each table has a column `panel` and one for each axis. In `validation`, `covered` says whether
    the mean of a point's runs is inside the predicted 90 % interval, `deviations` how many standard
    deviations away it is. `surface` has the middle of each cell. `borders` has, for each panel,
    where the claim holds in sentences; `away` says how far outside the paper's own point lies, and
    `scale` how the area is measured.
    """

    document: Mapping[str, Any]
    axes: Sequence[Mapping[str, Any]]
    runs: pd.DataFrame
    validation: pd.DataFrame
    surface: pd.DataFrame
    borders: Mapping[str, Sequence[str]]
    away: str
    scale: str

    def picture(self, panel: str) -> RegionPicture:
        """Return the picture of a panel as the report draws it."""
        titles = [panel_title(self.document, part["panel"]) for part in self.document["panels"]]
        drawn = self.document["panels"][titles.index(panel)]
        x, y = (f"{axis['title']} ({axis['unit']})" for axis in self.axes)
        named = ", ".join(filter(None, [panel, self.document["engine"]]))
        laws = "; ".join(law["title"] for law in drawn["laws"] if law["segments"])
        words = f"{self.document['title']}, {named}: where it holds over {x} and {y}. "
        words += self.borders[panel][0]
        words += f" Dashed lines are laws: {laws}." if laws else ""
        return region_picture(self.document, drawn, words)


def region_table(root: Path, data: Path) -> pd.DataFrame:
    """Return one row for each region and engine with results."""
    names = ("region", "engine", "title", "study", "holds", "fails", "undecided", "coverage_90")
    results = region_results(data)
    current = [is_current(root, data, result) for result in results]
    return pd.DataFrame(results, columns=list(names)).assign(current=current)


def read_region(data: Path, name: str, engine: str) -> RegionData:
    """Return a region on an engine; InputError if it is missing."""
    results = {(result["region"], result["engine"]): result for result in region_results(data)}
    if not results:
        raise InputError(f"{data}: has no regions; run `make regions` first")
    check_name("region", name, {region for region, _ in results}, "`replication.regions`")
    engines = [ran_on for region, ran_on in results if region == name]
    check_name(f"region {name}: engine", engine, engines, "`replication.regions`")
    return region_data(results[name, engine])


def scenarios_at(root: Path, study: Study, data: RegionData, x: float, y: float) -> list[Scenario]:
    """Return the scenarios of a point in a region's first panel."""
    region = load_region(root, data.document["region"])
    space = Space(region, study, data.document["engine"])
    shares = [a.range.position(value) for a, value in zip(region.axes, (x, y), strict=True)]
    return [run.scenario for run in space.runs(Point(space.panels[0], *shares))]


def region_data(document: Mapping[str, Any]) -> RegionData:
    """Return the tables of a region's result."""
    names = [str(axis["id"]) for axis in document["axes"]]

    def points(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
        frame = pd.DataFrame(rows, columns=["panel", "x", "y", *shown])
        frame["panel"] = [panel_title(document, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", names, strict=True)))

    x_range, y_range = (range_of(axis) for axis in document["axes"])
    borders, cells = {}, []
    for panel in document["panels"]:
        title = panel_title(document, panel["panel"])
        borders[title] = border_sentences(document, panel)
        places = middles(len(panel["quantity"]))
        for row, y in enumerate(places):
            for column, x in enumerate(places):
                at = x_range.at(x, _EXACT), y_range.at(y, _EXACT)
                quantity = panel["quantity"][row][column]
                cells.append((title, *at, quantity, panel["probability"][row][column]))
    return RegionData(
        document,
        list(document["axes"]),
        points(document["points"], "quantity", "note"),
        points(document["validation"], "holds", "probability", "covered", "deviations"),
        pd.DataFrame(cells, columns=["panel", *names, "quantity", "probability"]),
        borders,
        away(document),
        scale_words(document["axes"]),
    )
