"""Runs a map, and keeps its account: its grids, its points with their runs, its check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from replication.design.config import load_study, study_ids
from replication.design.input_hashes import input_hashes, is_same
from replication.design.study_check import check_claims
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.machine import Machine
from replication.explore.maps.explore import Explored, Explorer
from replication.explore.maps.grid import Grid, threshold, to_border
from replication.explore.maps.map_model import (
    Axis,
    Map,
    MapSettings,
    Spending,
    load_map,
    load_mapping,
    map_path,
)
from replication.explore.maps.space import Place, Space, curves
from replication.explore.maps.survey import Reading, Survey
from replication.explore.modern_kernel import JUDGED
from replication.metrics.metric_model import validate_study_metrics
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


def write_account(folder: Path, root: Path, space: Space, tier: str, found: Explored) -> Path:
    """Write <engine>.json and <engine>.scenarios.json to a map's folder; return the first."""
    path = folder / f"{space.engine}{FOUND}"
    readings = [*found.readings.values(), *(check.reading for check in found.checks)]
    scenarios = {
        run.scenario_id: run.scenario.model_dump(mode="json") for r in readings for run in r.runs
    }
    write_text(folder / f"{space.engine}{SCENARIOS}", canonical_json(scenarios) + "\n")
    engine = chosen_engine(space.engine, space.ns3_version)
    document = _document(space, found) | {
        "tier": tier,
        "made_from": made_from(root, space.map.id, space.base.id, engine),
    }
    write_text(path, canonical_json(document) + "\n")
    return path


def read_account(path: Path) -> dict[str, Any]:
    """Return the account of a map on an engine; InputError where it is not what was written."""
    document: dict[str, Any] = read_json(path)
    return document


def accounts(data: Path) -> Iterator[Path]:
    """Yield all accounts of maps below the folder of results, by map and engine."""
    for path in sorted((data / "maps").glob(f"*/*{FOUND}")):
        if not path.name.endswith((SCENARIOS, JUDGED)):
            yield path


def made_from(root: Path, name: str, study: str, engine: Engine) -> dict[str, str]:
    """Return the hashes of all that decides a map, as it is now; notes on changes do not."""
    own, settings = (
        document.model_dump(mode="json", exclude={"changed"})
        for document in (load_map(root, name), load_mapping(root))
    )
    return input_hashes(root, study, engine, map=own, settings=settings)


def is_current(root: Path, data: Path, document: Mapping[str, Any]) -> bool:
    """Return whether an account in the folder of results is what would be made now."""
    name, study = str(document.get("map", "")), str(document.get("study", ""))
    if not map_path(root, name).is_file():
        return False
    then = document.get("made_from", {})
    return is_same(data, then, lambda engine: made_from(root, name, study, engine))


def merge_maps(paths: Sequence[Path], data: Path) -> None:
    """Write maps.csv to `data` from the accounts of maps."""
    write_table(data / MAPS_TABLE, [_row(read_account(path)) for path in paths], MAP_COLUMNS)


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


def _document(space: Space, found: Explored) -> dict[str, Any]:
    judged, right = found.right()
    interval = found.right_interval()
    share, own = found.share(), space.map
    paper = space.paper()
    return {
        "map": own.id,
        "title": own.title,
        "study": own.study,
        "claim": own.claim or "",
        "quote": space.claim.quote,
        "place": space.claim.place,
        "reading": space.claim.reading,
        "asked": _asked(space),
        "reason": own.reason or "",
        "engine": space.engine,
        "axes": [_axis(axis, paper.get(axis.id)) for axis in own.ranges],
        "facets": [
            {"id": a.id, "title": a.title, "levels": {v.key: v.title for v in a.levels or []}}
            for a in own.facets
        ],
        "grids": [_grid(space, facet, grid, found) for facet, grid in found.grids.items()],
        "left_out": [list(facet) for facet in found.left_out],
        "points": [
            *(_point(space, place, reading) for place, reading in found.readings.items()),
            *(_point(space, c.place, c.reading, c.expected) for c in found.checks),
        ],
        "full_grid_points": found.full_points,
        "share": None if share is None else round(share, 6),
        "width": found.width(),
        "width_wanted": own.border_width,
        "checked": judged,
        "right": right,
        "right_interval": None if interval is None else [round(end, 6) for end in interval],
        "cpu_s": round(found.spent_s, 3),
        "budget_s": own.cpu_budget_s,
    }


def _asked(space: Space) -> list[str]:
    """Return of each part of the test what is measured, and what it must be."""
    told = []
    for test in space.claim.tests():
        words = wording(space.study, test)
        told.append(f"{words.statistic}: {words.asked(conditions(test)[0])}")
    return told


def _axis(axis: Axis, paper: float | None) -> dict[str, Any]:
    assert axis.range is not None
    return {
        "id": axis.id,
        "title": axis.title,
        "unit": axis.unit,
        "low": axis.range.low,
        "high": axis.range.high,
        "log": axis.range.log,
        "paper": None if paper is None else float(f"{paper:.6g}"),
    }


def _grid(space: Space, facet: tuple[str, ...], grid: Grid, found: Explored) -> dict[str, Any]:
    share = grid.share()
    thresholds = [threshold(grid, axis) for axis in (0, 1)]
    return {
        "facet": list(facet),
        "size": grid.size,
        "leaves": [[c.i, c.j, c.step, grid.side(c)] for c in sorted(grid.leaves)],
        "share": None if share is None else round(share, 6),
        "area": {side: round(area, 6) for side, area in grid.area().items()},
        "width": grid.width(),
        "noise": _number(found.noise[facet]),
        "thresholds": [None if one is None else asdict(one) for one in thresholds],
        "paper": _own_point(space, grid),
        "theory": [
            {
                "title": curve.law.title,
                "source": curve.law.source,
                "condition": curve.law.condition,
                "points": [[round(a, 5), round(b, 5)] for a, b in curve.points],
            }
            for curve in curves(space, facet)
        ],
    }


def _own_point(space: Space, grid: Grid) -> dict[str, Any] | None:
    """Return where the paper's point lies in a grid, and the nearest border along each axis.

    None where the paper has no value on an axis.
    """
    paper, axes = space.paper(), space.map.ranges
    if any(axis.id not in paper for axis in axes):
        return None
    own = [axis.range.position(paper[axis.id]) for axis in axes if axis.range]
    if not all(0 <= place <= 1 for place in own):
        return {"at": [_number(place) for place in own], "side": "outside", "border": [None, None]}
    across, up = own
    return {
        "at": [round(place, 6) for place in own],
        "side": grid.at(across, up),
        "border": [to_border(grid, across, up, axis) for axis in (0, 1)],
    }


def _point(
    space: Space, place: Place, reading: Reading, expected: bool | None = None
) -> dict[str, Any]:
    x, y = space.values(place)
    return {
        "facet": list(place.facet),
        "x": x,
        "y": y,
        "holds": reading.holds,
        "statistic": _number(reading.statistic),
        "margin": _number(reading.margin),
        "replicates": len(reading.margins),
        "expected": expected,
        "runs": [
            {"levels": run.levels, "replicate": run.replicate, "scenario": run.scenario_id}
            for run in reading.runs
        ],
        "reason": reading.reason,
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


# --- from a map's file to its account ---


def forecast(
    root: Path, name: str, engine: str, tier: str, ns3_version: str = NS3_VERSION
) -> tuple[str, float]:
    """Return what a map may cost on an engine, as a line and in seconds of CPU.

    That is its budget, or the first grid where that costs more.
    """
    found, spending, _ = _load(root, name, tier)
    space = Space(found, load_study(root, found.study), engine, ns3_version)
    runs = [run for facet in space.facets for run in space.runs(Place(facet, 0.5, 0.5))]
    ran = [run for run in runs if not run.refusal]
    if not ran:
        why = f"refused: {runs[0].refusal}" if runs else "no runs"
        return f"{name} on {engine}: {why}", 0.0
    first_s = (spending.coarse_cells + 1) ** 2 * sum(r.cost_s for r in ran) / len(space.facets)
    cpu_s = max(first_s, found.cpu_budget_s * spending.budget_factor)
    return f"{name} on {engine}: at most about {cpu_s:.0f} s of CPU", cpu_s


def check_map(root: Path, name: str) -> str:
    """Check all of a map that can be known before anything runs; return what it is, in words.

    Raises
    ------
    InputError
        The map does not fit its study; the message names the file.
    """
    found, path = load_map(root, name), map_path(Path(), name)
    if found.study not in study_ids(root):
        raise InputError(
            f"{path}: study: {found.study!r} is unknown; there are {', '.join(study_ids(root))}"
        )
    base = load_study(root, found.study)
    # Alone: what it repeats is not there.
    claim = found.claim_of(base).model_copy(update={"repeats": None})
    document = base.model_dump() | {"claims": [claim.model_dump()], "tables": [], "changes": []}
    try:
        study = Study.model_validate(document)
        validate_study_metrics(study)
        check_claims(study)
    except ValidationError as error:
        raise InputError(f"{path}: sentence: {describe(error)}") from None
    except InputError as error:
        raise InputError(f"{path}: sentence: {error}") from None
    for engine in found.engines:
        space = Space(found, base, engine)
        for facet in space.facets:
            if not space.runs(Place(facet, 0.5, 0.5)):
                raise InputError(f"{path}: keep: leaves no run that the sentence is about")
    across, up = found.ranges
    return f"{claim.id} of {found.study} over {across.id} and {up.id}, {len(space.facets)} facets"


def run_map(
    root: Path, name: str, tier: str, folder: Path, machine: Machine, say: Callable[[str], None]
) -> Path:
    """Explore a map on an engine; write its account to `folder` and return the file."""
    found, spending, settings = _load(root, name, tier)
    space = Space(found, load_study(root, found.study), machine.engine, machine.ns3_version)
    explored = Explorer(
        name=f"{name} on {machine.engine}",
        facets=space.facets,
        surveyor=Survey(space, machine, settings.replicate_offset),
        settings=settings,
        spending=spending,
        halvings=spending.halvings(found.border_width),
        budget_s=found.cpu_budget_s * spending.budget_factor,
        say=say,
    ).run()
    return write_account(folder, root, space, tier, explored)


def _load(root: Path, name: str, tier: str) -> tuple[Map, Spending, MapSettings]:
    settings = load_mapping(root)
    if tier not in settings.tiers:
        raise InputError(
            f"tier: configs/mapping.yaml has none called {tier!r}; it has "
            f"{', '.join(settings.tiers)}"
        )
    return load_map(root, name), settings.tiers[tier], settings
