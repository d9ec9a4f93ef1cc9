"""A region in notebooks: its tables, its boundary in words, and runs at any of its points."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from replication.base.errors import InputError
from replication.explore.regions.region_model import load_region
from replication.explore.regions.region_result import is_current, region_results
from replication.explore.regions.region_rows import PointRow, RegionResult, ValidationRow
from replication.explore.regions.space import Point, Space
from replication.explore.regions.surface import middles
from replication.report.notebooks.names import check_name
from replication.report.notebooks.region_picture import RegionPicture, region_picture
from replication.report.pages.region_words import away, border_sentences, scale_words
from replication.report.pages.regions import panel_title
from replication.study.scenario import Scenario
from replication.study.study import Study

#: Significant digits that keep a number exact.
_EXACT = 17


class RegionData(NamedTuple):
    """A region on an engine; `result` has the claim, its test, axes, surfaces and runs.

    Each table has a column `panel` and one for each axis. In `validation`, `covered` says whether
    the mean of a point's runs is inside the predicted 90 % interval, `deviations` how many standard
    deviations away it is. `surface` has the middle of each cell. `borders` has, for each panel,
    where the claim holds in sentences; `away` says how far outside the paper's own point lies, and
    `scale` how the area is measured.
    """

    result: RegionResult
    runs: pd.DataFrame
    validation: pd.DataFrame
    surface: pd.DataFrame
    borders: Mapping[str, Sequence[str]]
    away: str
    scale: str

    def picture(self, panel: str) -> RegionPicture:
        """Return the picture of a panel as the report draws it."""
        titles = [panel_title(self.result, row.panel) for row in self.result.panels]
        row = self.result.panels[titles.index(panel)]
        x, y = (f"{axis.title} ({axis.unit})" for axis in self.result.axes)
        named = ", ".join(filter(None, [panel, self.result.engine]))
        laws = "; ".join(law.title for law in row.laws if law.segments)
        words = f"{self.result.title}, {named}: where it holds over {x} and {y}. "
        words += self.borders[panel][0]
        words += f" Dashed lines are laws: {laws}." if laws else ""
        return region_picture(self.result, row, words)


def region_table(root: Path, data: Path) -> pd.DataFrame:
    """Return one row for each region and engine with results."""
    names = ["region", "engine", "title", "study", "holds", "fails", "undecided", "coverage_90"]
    results = region_results(data)
    current = [is_current(root, data, result) for result in results]
    return pd.DataFrame(map(vars, results), columns=names).assign(current=current)


def read_region(data: Path, name: str, engine: str) -> RegionData:
    """Return a region on an engine; InputError if it is missing."""
    results = region_results(data)
    if not results:
        raise InputError(f"{data}: has no regions; run `make regions` first")
    check_name("region", name, {result.region for result in results}, "`replication.regions`")
    by_engine = {result.engine: result for result in results if result.region == name}
    check_name(f"region {name}: engine", engine, by_engine, "`replication.regions`")
    return region_data(by_engine[engine])


def scenarios_at(root: Path, study: Study, data: RegionData, x: float, y: float) -> list[Scenario]:
    """Return the scenarios of a point in a region's first panel."""
    region = load_region(root, data.result.region)
    space = Space(region, study, data.result.engine)
    x_axis, y_axis = region.axes
    point = Point(space.panels[0], x_axis.range.position(x), y_axis.range.position(y))
    return [run.scenario for run in space.runs(point)]


def region_data(result: RegionResult) -> RegionData:
    """Return the tables of a region's result."""
    names = [axis.id for axis in result.axes]

    def points(rows: Sequence[PointRow | ValidationRow], *shown: str) -> pd.DataFrame:
        frame = pd.DataFrame(map(vars, rows), columns=["panel", "x", "y", *shown])
        frame["panel"] = [panel_title(result, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", names, strict=True)))

    x_span, y_span = (axis.span() for axis in result.axes)
    cells, borders = [], {}
    for panel in result.panels:
        title = panel_title(result, panel.panel)
        borders[title] = border_sentences(result, panel)
        places = middles(len(panel.quantity))
        for row, y_share in enumerate(places):
            y = y_span.at(y_share, _EXACT)
            for column, x_share in enumerate(places):
                x = x_span.at(x_share, _EXACT)
                quantity, probability = panel.quantity[row][column], panel.probability[row][column]
                cells.append((title, x, y, quantity, probability))
    return RegionData(
        result=result,
        runs=points(result.points, "quantity", "note"),
        validation=points(result.validation, "holds", "probability", "covered", "deviations"),
        surface=pd.DataFrame(cells, columns=["panel", *names, "quantity", "probability"]),
        borders=borders,
        away=away(result),
        scale=scale_words(result.axes),
    )
