"""Runs a map, and writes its region result: grids, points with their runs, validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.design.config import load_study
from replication.design.input_hashes import input_hashes, is_same
from replication.design.study_check import check_claims
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.machine import Machine
from replication.explore.maps.explore import Explorer
from replication.explore.maps.grid import Grid
from replication.explore.maps.map_model import (
    Map,
    MapSettings,
    Spending,
    load_map,
    load_mapping,
    map_path,
)
from replication.explore.maps.sampler import PointResult, Sampler
from replication.explore.maps.space import Point, Space, drawn_laws
from replication.explore.modern_kernel import JUDGED
from replication.metrics.metric_model import validate_study_metrics
from replication.metrics.statistic import wilson_interval
from replication.study.errors import InputError, describe
from replication.study.files import read_json, write_text
from replication.study.scenario import canonical_json
from replication.study.storage.table import write_table
from replication.study.study import MAPS_TABLE, Study
from replication.verdicts.claim import conditions
from replication.verdicts.wording import wording

MAP_COLUMNS = (
    *("map", "study", "claim", "engine", "axes", "points", "full_grid_points", "holds_share"),
    *("border_checked", "border_right", "cpu_minutes"),
)
#: Ends of the two files of a map on an engine: what was found, and its scenarios.
FOUND, SCENARIOS = ".json", ".scenarios.json"


def region_results(data: Path) -> list[dict[str, Any]]:
    """Return the results of all maps in the folder of results, by map and engine."""
    paths = sorted((data / "maps").glob(f"*/*{FOUND}"))
    return [read_json(path) for path in paths if not path.name.endswith((SCENARIOS, JUDGED))]


def made_from(root: Path, name: str, study: str, engine: Engine) -> dict[str, str]:
    """Return the hashes of all that decides a map, as it is now; notes on changes do not."""
    own, settings = (
        document.model_dump(mode="json", exclude={"changed"})
        for document in (load_map(root, name), load_mapping(root))
    )
    return input_hashes(root, study, engine, map=own, settings=settings)


def is_current(root: Path, data: Path, document: Mapping[str, Any]) -> bool:
    """Return whether a map's result in the folder of results is what would be made now."""
    name, study = str(document.get("map", "")), str(document.get("study", ""))
    if not map_path(root, name).is_file():
        return False
    then = document.get("made_from", {})
    return is_same(data, then, lambda engine: made_from(root, name, study, engine))


def merge_maps(paths: Sequence[Path], data: Path) -> None:
    """Write maps.csv to `data` from the results of maps."""
    write_table(data / MAPS_TABLE, [_row(read_json(path)) for path in paths], MAP_COLUMNS)


def _row(found: Mapping[str, Any]) -> dict[str, object]:
    return {
        "map": found["map"],
        "study": found["study"],
        "claim": found["claim"],
        "engine": found["engine"],
        "axes": "; ".join(axis["id"] for axis in (*found["axes"], *found["facets"])),
        "points": sum(point["expected"] is None for point in found["points"]),
        "full_grid_points": found["full_grid_points"],
        "holds_share": found["share"],
        "border_checked": found["checked"],
        "border_right": found["right"],
        "cpu_minutes": round(found["cpu_s"] / 60, 2),
    }


def _document(space: Space, explorer: Explorer) -> dict[str, Any]:
    judged, right = explorer.right()
    share, own, paper = explorer.share(), space.map, space.paper()
    grids = explorer.grids.values()
    return {
        "map": own.id,
        "title": own.title,
        "study": own.study,
        "claim": own.claim or "",
        "quote": space.claim.quote,
        "place": space.claim.place,
        "reading": space.claim.reading,
        "asked": [
            f"{words.statistic}: {words.asked(conditions(test)[0])}"
            for test in space.claim.tests()
            for words in [wording(space.study, test)]
        ],
        "reason": own.reason or "",
        "engine": space.engine,
        "axes": [
            {
                "id": axis.id,
                "title": axis.title,
                "unit": axis.unit,
                **axis.range.model_dump(include={"low", "high", "log"}),
                "paper": _number(paper.get(axis.id)),
            }
            for axis in own.ranges
            if axis.range
        ],
        "facets": [
            {"id": a.id, "title": a.title, "levels": {v.key: v.title for v in a.levels or []}}
            for a in own.facets
        ],
        "grids": [_grid(space, grid, paper) for grid in grids],
        "left_out": [list(panel) for panel in explorer.left_out],
        "points": [
            *(_point(space, point, one, None) for point, one in explorer.results.items()),
            *(_point(space, p, one, expected) for p, expected, one in explorer.validation),
        ],
        "full_grid_points": sum((grid.size + 1) ** 2 for grid in grids),
        "share": None if share is None else round(share, 6),
        "width": max(grid.width() for grid in grids),
        "width_wanted": own.border_width,
        "checked": judged,
        "right": right,
        "right_interval": [round(end, 6) for end in wilson_interval(right, judged)]
        if judged
        else None,
        "cpu_s": round(explorer.sampler.spent_s, 3),
        "budget_s": own.cpu_budget_s,
    }


def _grid(space: Space, grid: Grid, paper: Mapping[str, float]) -> dict[str, Any]:
    share = grid.share()
    return {
        "facet": list(grid.panel),
        "size": grid.size,
        "leaves": [[c.i, c.j, c.step, side] for c, side in grid.sides().items()],
        "share": None if share is None else round(share, 6),
        "area": {side: round(area, 6) for side, area in grid.area().items()},
        "width": grid.width(),
        "noise": _number(grid.noise),
        "thresholds": [grid.threshold(axis) for axis in (0, 1)],
        "paper": _own_point(space, grid, paper),
        "theory": drawn_laws(space, grid.panel),
    }


def _own_point(space: Space, grid: Grid, paper: Mapping[str, float]) -> dict[str, Any] | None:
    """Return where the paper's point lies in a grid, and the nearest boundary along each axis."""
    axes = space.map.ranges
    if any(axis.id not in paper for axis in axes):
        return None
    own = [axis.range.position(paper[axis.id]) for axis in axes if axis.range]
    if not all(0 <= place <= 1 for place in own):
        return {"at": [_number(place) for place in own], "side": "outside", "border": [None, None]}
    x, y = own
    return {
        "at": [round(place, 6) for place in own],
        "side": grid.at(x, y),
        "border": [grid.boundary_from(x, y, axis) for axis in (0, 1)],
    }


def _point(
    space: Space, point: Point, result: PointResult, expected: bool | None
) -> dict[str, Any]:
    x, y = space.values(point)
    return {
        "facet": list(point.panel),
        "x": x,
        "y": y,
        "holds": result.holds,
        "statistic": _number(result.statistic),
        "margin": _number(result.margin),
        "replicates": len(result.margins),
        "expected": expected,
        "runs": [
            {"levels": run.levels, "replicate": run.replicate, "scenario": run.scenario_id}
            for run in result.runs
        ],
        "reason": result.reason,
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def forecast(
    root: Path, name: str, engine: str, tier: str, ns3_version: str = NS3_VERSION
) -> tuple[str, float]:
    """Return what a map may cost on an engine, as a line and in seconds of CPU."""
    found, spending, _ = _load(root, name, tier)
    space = Space(found, load_study(root, found.study), engine, ns3_version)
    runs = [run for panel in space.panels for run in space.runs(Point(panel, 0.5, 0.5))]
    ran = [run for run in runs if not run.refusal]
    if not ran:
        why = f"refused: {runs[0].refusal}" if runs else "no runs"
        return f"{name} on {engine}: {why}", 0.0
    # Its budget, or the first grid where that costs more.
    first_s = (spending.coarse_cells + 1) ** 2 * sum(r.cost_s for r in ran) / len(space.panels)
    cpu_s = max(first_s, found.cpu_budget_s * spending.budget_factor)
    return f"{name} on {engine}: at most about {cpu_s:.0f} s of CPU", cpu_s


def check_map(root: Path, name: str) -> str:
    """Check all of a map that can be known before anything runs; return what it is, in words."""
    found, path = load_map(root, name), map_path(Path(), name)
    try:
        base = load_study(root, found.study)
        # Alone: what it repeats is not there.
        claim = found.claim_of(base).model_copy(update={"repeats": None})
        document = base.model_dump() | {"claims": [claim.model_dump()], "tables": [], "changes": []}
        study = Study.model_validate(document)
        validate_study_metrics(study)
        check_claims(study)
    except ValidationError as error:
        raise InputError(f"{path}: sentence: {describe(error)}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for engine in found.engines:
        space = Space(found, base, engine)
        for panel in space.panels:
            if not space.runs(Point(panel, 0.5, 0.5)):
                raise InputError(f"{path}: keep: leaves no run that the claim is about")
    x, y = found.ranges
    return f"{claim.id} of {found.study} over {x.id} and {y.id}, {len(space.panels)} facets"


def run_map(
    root: Path, name: str, tier: str, folder: Path, machine: Machine, say: Callable[[str], None]
) -> Path:
    """Explore a map on an engine; write its result and scenarios to `folder`, return the first."""
    found, spending, settings = _load(root, name, tier)
    space = Space(found, load_study(root, found.study), machine.engine, machine.ns3_version)
    explorer = Explorer(
        name=f"{name} on {machine.engine}",
        panels=space.panels,
        sampler=Sampler(space, machine, settings.replicate_offset),
        settings=settings,
        spending=spending,
        halvings=spending.halvings(found.border_width),
        budget_s=found.cpu_budget_s * spending.budget_factor,
        say=say,
    )
    explorer.run()
    results = [*explorer.results.values(), *(one for *_, one in explorer.validation)]
    scenarios = {
        run.scenario_id: run.scenario.model_dump(mode="json") for r in results for run in r.runs
    }
    write_text(folder / f"{machine.engine}{SCENARIOS}", canonical_json(scenarios) + "\n")
    document = _document(space, explorer) | {
        "tier": tier,
        "made_from": made_from(root, name, found.study, machine.exact_engine),
    }
    path = folder / f"{machine.engine}{FOUND}"
    write_text(path, canonical_json(document) + "\n")
    return path


def _load(root: Path, name: str, tier: str) -> tuple[Map, Spending, MapSettings]:
    settings = load_mapping(root)
    if tier not in settings.tiers:
        raise InputError(
            f"tier: configs/mapping.yaml has none called {tier!r}; it has "
            f"{', '.join(settings.tiers)}"
        )
    return load_map(root, name), settings.tiers[tier], settings
