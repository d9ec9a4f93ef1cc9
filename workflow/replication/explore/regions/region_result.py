"""Runs a region, and writes its result: surfaces with their contours, points, validation."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from replication.base.errors import InputError, Place, check_known
from replication.base.position import located, within
from replication.base.table import REGION_COLUMNS, REGIONS_TABLE, read_typed, write_table
from replication.compare.agreement import load_differences
from replication.design.config import load_study, study_ids
from replication.design.input_hashes import input_hashes, is_same
from replication.design.study_check import check_claim, study_points
from replication.engines.model import Engine
from replication.explore.machine import Machine, write_json, write_scenarios
from replication.explore.named_variation import JUDGED
from replication.explore.regions.exploration import (
    Compared,
    Exploration,
    Sampler,
    finite,
)
from replication.explore.regions.region_model import (
    DIGITS,
    SETTINGS,
    Axis,
    LevelAxis,
    Region,
    load_region,
    load_settings,
    region_path,
)
from replication.explore.regions.region_rows import (
    AxisRow,
    LevelAxisRow,
    Measure,
    PanelRow,
    PaperPoint,
    RegionResult,
    Segments,
    TraitRow,
)
from replication.explore.regions.space import (
    Panel,
    Point,
    Space,
    contour,
    drawn_laws,
    laws_at_paper,
)
from replication.explore.regions.surface import CELLS, GRID, REACH, Surface, middles
from replication.study.claim_model import SimpleTest, ValueTest
from replication.study.study import Study
from replication.study.variation import Variation, check_variation, rounded
from replication.verdicts.wording import wording

_SCENARIOS = ".scenarios.json"


def region_results(data: Path) -> list[RegionResult]:
    """Return the results of all regions in the folder of results, by region and engine."""
    paths = sorted((data / "regions").glob("*/*.json"))
    results = [path for path in paths if not path.name.endswith((_SCENARIOS, JUDGED))]
    return [read_typed(path, RegionResult) for path in results]


def sources(root: Path, name: str, study: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a region; notes on changes do not."""
    region = load_region(root, name)
    settings = load_settings(root)
    return input_hashes(
        root,
        study,
        engine,
        region=region.decisive(exclude={"changed"}),
        settings=settings.decisive(exclude={"changed"}),
    )


def is_current(root: Path, data: Path, result: RegionResult) -> bool:
    """Return whether a region's result is current: no file behind it has changed."""
    now = partial(sources, root, result.region, result.study)
    is_there = region_path(root, result.region).is_file()
    return is_there and is_same(data, result.input_hashes, now)


def merge_regions(paths: Sequence[Path], data: Path) -> None:
    """Write regions.csv to `data` from the results of regions."""
    rows = [read_typed(path, RegionResult).row() for path in paths]
    write_table(data / REGIONS_TABLE, rows, REGION_COLUMNS)


def _result(
    space: Space, exploration: Exploration, tier: str, hashes: dict[str, str]
) -> RegionResult:
    region, claim = space.region, space.claim
    sampler, validation = exploration.sampler, exploration.validation
    bounds = sampler.compared.bounds
    panels = [_panel(space, exploration, panel) for panel in exploration.surfaces]
    explored = {point.panel for point, _ in exploration.results}
    x, y = region.axes
    x_paper, y_paper = space.paper
    return RegionResult(
        **exploration.shares().rounded(),
        region=region.id,
        engine=space.engine,
        tier=tier,
        title=region.title,
        study=region.study,
        claim=region.claim or "",
        quote=claim.quote,
        place=claim.place,
        reading=claim.reading,
        asked=[_asked(space, test) for test in claim.tests()],
        measure=_measure(space),
        reason=region.reason or "",
        bounds=(finite(math.exp(bounds.low) or None), finite(math.exp(bounds.high))),
        axes=(_axis(x, x_paper), _axis(y, y_paper)),
        level_axes=[_level_axis(axis) for axis in region.panels],
        laws_at_paper=laws_at_paper(space),
        panels=panels,
        left_out=[list(panel) for panel in space.panels if panel not in explored],
        points=[run.row(space) for run in exploration.results.values()],
        validation=[replace(row, probability=round(row.probability, 4)) for row in validation],
        ties_everywhere=bool(panels) and all(panel.ties for panel in panels),
        coverage_90=_mean([checked.covered for checked in validation]),
        brier=_mean([(checked.probability - checked.holds) ** 2 for checked in validation]),
        validation_points=len(validation),
        cpu_s=round(sampler.costs.spent_s, 3),
        input_hashes=hashes,
    )


def _asked(space: Space, test: SimpleTest) -> str:
    """Return a test in words."""
    words = wording(space.study, test)
    return f"{words.statistic}: {words.condition(test.expect)}"


def _axis(axis: Axis, paper: float | None) -> AxisRow:
    span = axis.range
    return AxisRow(axis.id, axis.title, axis.unit, span.low, span.high, span.log, paper)


def _level_axis(axis: LevelAxis) -> LevelAxisRow:
    return LevelAxisRow(axis.id, axis.title, {level.key: level.title for level in axis.levels})


def _measure(space: Space) -> Measure:
    tests = space.claim.tests()
    if len(tests) > 1:
        return Measure("margin")
    if isinstance(tests[0], ValueTest):
        words = wording(space.study, tests[0])
        return Measure("value", words.factor, words.unit)
    return Measure("ratio")


def _panel(space: Space, exploration: Exploration, panel: Panel) -> PanelRow:
    surface = exploration.surfaces[panel]
    mean, sd = (part.reshape(CELLS, CELLS) for part in surface.predict(GRID))
    runs = [run for (point, _), run in exploration.results.items() if point.panel == panel]
    alike = surface.cannot_differ(GRID).reshape(CELLS, CELLS).astype(int)
    quantities = np.exp(surface.bounds.unwarp(mean))
    return PanelRow(
        **surface.shares().rounded(),
        panel=list(panel),
        ties=surface.model is None,
        quantity=[[rounded(float(value), DIGITS) for value in row] for row in quantities],
        probability=surface.probability().round(3).tolist(),
        alike=alike.tolist() if alike.any() else [],
        contour=_contour(surface, mean),
        band=[*_contour(surface, mean - REACH * sd), *_contour(surface, mean + REACH * sd)],
        paper=_paper(space, surface),
        laws=drawn_laws(space, panel),
        traits=_traits(space, panel),
        starved=sum(bool(run.note) for run in runs),
        runs=len(runs),
    )


def _traits(space: Space, panel: Panel) -> list[TraitRow]:
    traits = [trait for trait in space.region.traits if trait.is_on(space.engine, panel)]
    return [TraitRow(trait.entry, trait.effect) for trait in traits]


def _contour(surface: Surface, warped: Any) -> Segments:
    segments: Segments = []
    for end in surface.bounds.ends():
        if math.isfinite(end):
            segments += contour(warped - end, middles(CELLS))
    return segments


def _paper(space: Space, surface: Surface) -> PaperPoint | None:
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
    return PaperPoint([finite(place) for place in at], probability, cannot_differ)


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None


def check_region(root: Path, name: str) -> str:
    """Return a region in words; InputError names all that can be found before anything runs."""
    region = load_region(root, name)
    known = load_differences(root).by_id
    with located(region_path(root, name)):
        check_known("study", [region.study], study_ids(root), ("study",))
        base = load_study(root, region.study)
        for number, trait in enumerate(region.traits):
            check_known("traits", [trait.entry], known, ("traits", number, "entry"))
        _check_changes(region, base)
        spaces = [Space(region, base, engine) for engine in region.engines]
        claim = spaces[0].claim
        with within("own_claim" if region.own_claim else "claim"):
            compared = {quantity.experiment for quantity in claim.quantities()}
            experiments = [part for part in base.experiments if part.id in compared]
            points = study_points(base.model_copy(update={"experiments": experiments}))
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
        for level in panel.levels:
            changes.append((("panels", panel.id, "levels", level.key, "set"), level.set))
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
                if error.place == ("keep",):
                    raise
                raise InputError(f"axes: {error}", ("axes",)) from None


def run_region(root: Path, name: str, tier: str, folder: Path, machine: Machine) -> Path:
    """Explore a region on an engine; write its result and scenarios; return the result's file."""
    check_region(root, name)
    region = load_region(root, name)
    settings = load_settings(root)
    with located(root / SETTINGS):
        check_known("tiers", [tier], settings.tiers, ("tiers",))
    spending, engine = settings.tiers[tier], machine.engine
    space = Space(region, load_study(root, region.study), engine.name, engine.version)
    # One thread: sums in another order would choose other points.
    with threadpool_limits(1):
        exploration = Exploration(
            name=f"{name} on {engine.name}",
            panels=space.panels,
            sampler=Sampler(space, machine, settings.replicate_offset),
            settings=settings,
            spending=spending,
            budget_s=region.cpu_budget_s * spending.budget_factor,
        )
        exploration.run()
        hashes = sources(root, name, region.study, engine)
        result = _result(space, exploration, tier, hashes)
    write_scenarios(folder / f"{engine.name}{_SCENARIOS}", exploration.runs())
    path = folder / f"{engine.name}.json"
    write_json(path, asdict(result))
    return path
