"""Runs a region, and writes its result: surfaces with their contours, points, validation."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from replication.compare.agreement import load_differences
from replication.design.config import load_study, study_ids
from replication.design.input_hashes import input_hashes, is_same
from replication.design.study_check import check_claim, study_points
from replication.engines.model import Engine
from replication.explore.machine import Machine, write_json, write_scenarios
from replication.explore.modern_kernel import JUDGED
from replication.explore.regions.exploration import Compared, Exploration, PointResult, Sampler
from replication.explore.regions.region_model import (
    DIGITS,
    SETTINGS,
    Region,
    load_region,
    load_settings,
    region_path,
)
from replication.explore.regions.space import (
    Panel,
    Point,
    Segments,
    Space,
    contour,
    drawn_laws,
    laws_at_paper,
)
from replication.explore.regions.surface import CELLS, GRID, REACH, Surface, middles
from replication.study.claim_model import ValueTest
from replication.study.errors import InputError, Place, check_known
from replication.study.files import read_json
from replication.study.position import located, within
from replication.study.study import REGIONS_TABLE, Study
from replication.study.table import write_table
from replication.study.variation import Variation, check_variation, rounded
from replication.verdicts.wording import wording

REGION_COLUMNS = (
    *("region", "study", "claim", "engine", "axes", "points", "holds", "fails", "undecided"),
    *("cannot_differ", "coverage_90", "brier", "validation_points", "cpu_minutes"),
)
_SCENARIOS = ".scenarios.json"


def region_results(data: Path) -> list[dict[str, Any]]:
    """Return the results of all regions in the folder of results, by region and engine."""
    paths = sorted((data / "regions").glob("*/*.json"))
    return [read_json(path) for path in paths if not path.name.endswith((_SCENARIOS, JUDGED))]


def sources(root: Path, name: str, study: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a region; notes on changes do not."""
    files = {"region": load_region(root, name), "settings": load_settings(root)}
    values = {key: one.decisive(exclude={"changed"}) for key, one in files.items()}
    return input_hashes(root, study, engine, **values)


def is_current(root: Path, data: Path, document: Mapping[str, Any]) -> bool:
    """Return whether a region's result is current: no file behind it has changed."""
    now = partial(sources, root, document["region"], document["study"])
    is_there = region_path(root, document["region"]).is_file()
    return is_there and is_same(data, document["input_hashes"], now)


def merge_regions(paths: Sequence[Path], data: Path) -> None:
    """Write regions.csv to `data` from the results of regions."""
    rows = []
    for found in map(read_json, paths):
        axes = [axis["id"] for axis in (*found["axes"], *found["level_axes"])]
        counts = {"axes": "; ".join(axes), "points": len(found["points"])}
        row = found | counts | {"cpu_minutes": round(found["cpu_s"] / 60, 2)}
        rows.append({name: row[name] for name in REGION_COLUMNS})
    write_table(data / REGIONS_TABLE, rows, REGION_COLUMNS)


def _document(space: Space, found: Exploration) -> dict[str, Any]:
    region, bounds = space.region, found.sampler.compared.bounds
    panels = [_panel(space, found, panel) for panel in found.surfaces]
    explored = {point.panel for point, _ in found.results}
    tests = [(test, wording(space.study, test)) for test in space.claim.tests()]
    return {
        "region": region.id,
        "engine": space.engine,
        **region.model_dump(mode="json", include={"title", "study"}),
        "claim": region.claim or "",
        **space.claim.model_dump(mode="json", include={"quote", "place", "reading"}),
        "asked": [f"{words.statistic}: {words.condition(test.expect)}" for test, words in tests],
        "measure": _measure(space),
        "laws_at_paper": laws_at_paper(space),
        "reason": region.reason or "",
        "bounds": [_number(math.exp(end) or None) for end in (bounds.low, bounds.high)],
        "axes": [
            axis.model_dump(include={"id", "title", "unit"})
            | axis.range.model_dump(include={"low", "high", "log"})
            | {"paper": value}
            for axis, value in zip(region.axes, space.paper, strict=True)
        ],
        "level_axes": [
            {"id": a.id, "title": a.title, "levels": {v.key: v.title for v in a.levels}}
            for a in region.panels
        ],
        "panels": panels,
        "left_out": [panel for panel in space.panels if panel not in explored],
        "points": [_point(space, one) for one in found.results.values()],
        "validation": [
            {
                **_place(space, one["point"]),
                "holds": one["holds"],
                "covered": one["covered"],
                "cannot_differ": one["cannot_differ"],
                "state_predicted": one["state_predicted"],
                "probability": round(one["probability"], 4),
                "deviations": _number(one["deviations"]),
                "runs": [_point(space, result) for result in one["results"]],
            }
            for one in found.validation
        ],
        "ties_everywhere": bool(panels) and all(panel["ties"] for panel in panels),
        **{name: round(share, 6) for name, share in found.shares().items()},
        "coverage_90": _mean([one["covered"] for one in found.validation]),
        "brier": _mean([(v["probability"] - v["holds"]) ** 2 for v in found.validation]),
        "validation_points": len(found.validation),
        "cpu_s": round(found.sampler.costs.spent_s, 3),
    }


def _measure(space: Space) -> dict[str, Any]:
    """Return what the quantity is in words; a value times `factor` is shown in `unit`."""
    tests = space.claim.tests()
    if len(tests) > 1:
        return {"noun": "margin", "factor": 1.0, "unit": ""}
    if isinstance(tests[0], ValueTest):
        words = wording(space.study, tests[0])
        return {"noun": "value", "factor": words.factor, "unit": words.unit}
    return {"noun": "ratio", "factor": 1.0, "unit": ""}


def _panel(space: Space, found: Exploration, panel: Panel) -> dict[str, Any]:
    surface = found.surfaces[panel]
    mean, sd = (part.reshape(CELLS, CELLS) for part in surface.predict(GRID))
    results = [one for (point, _), one in found.results.items() if point.panel == panel]
    alike = surface.cannot_differ(GRID).reshape(CELLS, CELLS).astype(int)
    return {
        "panel": panel,
        **{name: round(share, 6) for name, share in surface.shares().items()},
        "ties": surface.model is None,
        "quantity": [[_number(v) for v in row] for row in np.exp(surface.bounds.unwarp(mean))],
        "probability": surface.probability().round(3).tolist(),
        # 1 in the cells where the alternatives cannot differ; nothing if there are none.
        "alike": alike.tolist() if alike.any() else [],
        "contour": _contour(surface, mean),
        "band": [*_contour(surface, mean - REACH * sd), *_contour(surface, mean + REACH * sd)],
        "paper": _paper(space, surface),
        "laws": drawn_laws(space, panel),
        "traits": [
            one.model_dump(include={"entry", "effect"})
            for one in space.region.traits
            if one.is_on(space.engine, panel)
        ],
        "starved": sum(bool(one.note) for one in results),
        "runs": len(results),
    }


def _contour(surface: Surface, warped: Any) -> Segments:
    ends = [end for end in surface.bounds.ends() if math.isfinite(end)]
    return [segment for end in ends for segment in contour(warped - end, middles(CELLS))]


def _paper(space: Space, surface: Surface) -> dict[str, Any] | None:
    """Return where the paper's point lies, and the probability that the claim holds there."""
    probability, cannot_differ = None, False
    pairs = zip(space.region.axes, space.paper, strict=True)
    at = [axis.range.position(value) for axis, value in pairs if value is not None]
    if len(at) < 2:
        return None
    if all(0 <= place <= 1 for place in at):
        (known,) = surface.bounds.holds(*surface.predict(np.array([at])))
        probability = round(float(known), 3)
        cannot_differ = bool(surface.cannot_differ(np.array([at]))[0])
    return {
        "at": [_number(place) for place in at],
        "probability": probability,
        "cannot_differ": cannot_differ,
    }


def _point(space: Space, result: PointResult) -> dict[str, Any]:
    return _place(space, result.at) | {
        "quantity": _number(math.exp(result.value)),
        "scenarios": list(dict.fromkeys(run.scenario_id for run in result.runs)),
        "note": result.note,
        "cannot_differ": result.cannot_differ,
    }


def _place(space: Space, point: Point) -> dict[str, Any]:
    return dict(zip("xy", space.values(point), strict=True)) | {"panel": point.panel}


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else rounded(value, DIGITS)


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None


def check_region(root: Path, name: str) -> str:
    """Return a region in words; InputError names all that can be found before anything runs."""
    region, known = load_region(root, name), load_differences(root).by_id
    with located(region_path(root, name)):
        check_known("study", [region.study], study_ids(root), ("study",))
        base = load_study(root, region.study)
        for number, trait in enumerate(region.traits):
            check_known("traits", [trait.entry], known, ("traits", number, "entry"))
        _check_changes(region, base)
        spaces = [Space(region, base, engine) for engine in region.engines]
        claim = spaces[0].claim
        of = "own_claim" if region.own_claim else "claim"
        with within(of):
            compared = {quantity.experiment for quantity in claim.quantities()}
            own = [one for one in base.experiments if one.id in compared]
            points = study_points(base.model_copy(update={"experiments": own}))
            with within(words=f"claim {claim.id}"):
                check_claim(base, claim, points)
            Compared(claim)
        for space in spaces:
            _check_runs(space)
    x, y = region.axes
    return f"{claim.id} of {region.study} over {x.id} and {y.id}, {len(spaces[0].panels)} panels"


def _check_changes(region: Region, base: Study) -> None:
    """Raise InputError for what a region changes or keeps that the study does not have."""
    for experiment, levels in region.keep.items():
        with within("keep", experiment, words="keep"):
            base.check_levels(experiment, levels)
    changes: list[tuple[Place, Variation | None]] = [(("fixed",), region.fixed)]
    for panel in region.panels:
        changes += [(("panels", panel.id, "levels", v.key, "set"), v.set) for v in panel.levels]
    for axis in region.axes:
        changes.append((("axes", axis.id, "set"), axis.set))
        if axis.of_bdp is not None:
            takes = Variation(parameters={axis.of_bdp.parameter: 1})
            changes.append((("axes", axis.id, "of_bdp", "parameter"), takes))
    for place, variation in changes:
        with within(*place):
            if variation is not None:
                check_variation(base, variation)


def _check_runs(space: Space) -> None:
    """Raise InputError unless each panel has runs, in its middle and at the ends of its axes."""
    for panel in space.panels:
        for x, y in ((0.5, 0.5), (0.0, 0.0), (1.0, 1.0)):
            try:
                space.runs(Point(panel, x, y))
            except InputError as error:
                # Places of the study are valid; with the axes' values they are not.
                is_ours = error.place == ("keep",)
                raise error if is_ours else InputError(f"axes: {error}", ("axes",)) from None


def run_region(root: Path, name: str, tier: str, folder: Path, machine: Machine) -> Path:
    """Explore a region on an engine; write its result and scenarios; return the result's file."""
    check_region(root, name)
    region, settings = load_region(root, name), load_settings(root)
    with located(root / SETTINGS):
        check_known("tiers", [tier], settings.tiers, ("tiers",))
    spending, engine = settings.tiers[tier], machine.engine
    space = Space(region, load_study(root, region.study), engine.name, engine.version)
    # One thread: sums in another order would choose other points.
    with threadpool_limits(1):
        found = Exploration(
            name=f"{name} on {engine.name}",
            panels=space.panels,
            sampler=Sampler(space, machine, settings.replicate_offset),
            settings=settings,
            spending=spending,
            budget_s=region.cpu_budget_s * spending.budget_factor,
        )
        found.run()
        document = _document(space, found)
    results = [*found.results.values(), *(r for one in found.validation for r in one["results"])]
    runs = (run for one in results for run in one.runs)
    write_scenarios(folder / f"{engine.name}{_SCENARIOS}", runs)
    hashes = sources(root, name, region.study, engine)
    path = folder / f"{engine.name}.json"
    write_json(path, document | {"tier": tier, "input_hashes": hashes})
    return path
