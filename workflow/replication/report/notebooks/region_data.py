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
    deviations away it is. `surface` has the middle of each cell, `threshold` the segments of the
    line on which the quantity equals a bound (`x2` and `y2` are their ends). `borders` has, for
    each panel, where the claim holds in sentences; `away` says how far outside the paper's own
    point lies, and `scale` how the area is measured.
    """

    document: Mapping[str, Any]
    axes: Sequence[Mapping[str, Any]]
    runs: pd.DataFrame
    validation: pd.DataFrame
    surface: pd.DataFrame
    threshold: pd.DataFrame
    borders: Mapping[str, Sequence[str]]
    away: str
    scale: str


def region_table(root: Path, data: Path) -> pd.DataFrame:
    """Return one row for each region and engine with results."""
    names = ("region", "engine", "title", "study", "holds", "fails", "undecided", "coverage_90")
    found = region_results(data)
    current = [is_current(root, data, one) for one in found]
    return pd.DataFrame(found, columns=list(names)).assign(current=current)


def read_region(data: Path, name: str, engine: str) -> RegionData:
    """Return a region on an engine; InputError if it is missing."""
    found = {(one["region"], one["engine"]): one for one in region_results(data)}
    if not found:
        raise InputError(f"{data}: has no regions; run `make regions` first")
    check_name("region", name, {region for region, _ in found}, "`replication.regions`")
    ran = [own for region, own in found if region == name]
    check_name(f"region {name}: engine", engine, ran, "`replication.regions`")
    return region_data(found[name, engine])


def scenarios_at(root: Path, study: Study, found: RegionData, x: float, y: float) -> list[Scenario]:
    """Return the scenarios of a point in a region's first panel."""
    own = load_region(root, found.document["region"])
    space = Space(own, study, found.document["engine"])
    shares = [a.range.position(value) for a, value in zip(own.axes, (x, y), strict=True)]
    return [run.scenario for run in space.runs(Point(space.panels[0], *shares))]


def region_data(document: Mapping[str, Any]) -> RegionData:
    """Return the tables of a region's result."""
    names = [str(axis["id"]) for axis in document["axes"]]

    def points(rows: list[dict[str, Any]], *shown: str) -> pd.DataFrame:
        frame = pd.DataFrame(rows, columns=["panel", "x", "y", *shown])
        frame["panel"] = [panel_title(document, panel) for panel in frame["panel"]]
        return frame.rename(columns=dict(zip("xy", names, strict=True)))

    spans = x_span, y_span = [range_of(axis) for axis in document["axes"]]
    cells, segments = [], []
    for panel in document["panels"]:
        places, title = middles(len(panel["quantity"])), panel_title(document, panel["panel"])
        for y, *rows in zip(places, panel["quantity"], panel["probability"], strict=True):
            for x, *found in zip(places, *rows, strict=True):
                own = zip(spans, (x, y), strict=True)
                cells.append((title, *(span.at(share, _EXACT) for span, share in own), *found))
        for x, y, x_end, y_end in panel["contour"]:
            start = x_span.at(x, _EXACT), y_span.at(y, _EXACT)
            segments.append((title, *start, x_span.at(x_end, _EXACT), y_span.at(y_end, _EXACT)))
    return RegionData(
        document,
        list(document["axes"]),
        points(document["points"], "quantity", "note"),
        points(document["validation"], "holds", "probability", "covered", "deviations"),
        pd.DataFrame(cells, columns=["panel", *names, "quantity", "probability"]),
        pd.DataFrame(segments, columns=["panel", *names, "x2", "y2"]),
        {
            panel_title(document, one["panel"]): border_sentences(document, one)
            for one in document["panels"]
        },
        away(document),
        scale_words(document["axes"]),
    )
