"""Runs a map: what it should cost, told beforehand, and the whole way to its account."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from replication.engines.ns3 import NS3_VERSION
from replication.measure.metric_model import validate_study_metrics
from replication.plan.config import load_study, study_ids
from replication.plan.study_check import check_claims
from replication.sensitivity.machine import Machine
from replication.sensitivity.maps.account import write_account
from replication.sensitivity.maps.explore import Explorer
from replication.sensitivity.maps.map_model import (
    Map,
    MapSettings,
    Spending,
    load_map,
    load_mapping,
    map_path,
)
from replication.sensitivity.maps.space import Place, Space
from replication.sensitivity.maps.survey import Survey
from replication.study.errors import InputError, describe
from replication.study.study import Study

#: Of a border that crosses a map once, along the grid: cells on it, over cells along an axis.
_CELLS_ON_BORDER = 1.5
#: What halving a cell on it takes: its middle, and an edge that it shares.
_NODES_A_CELL = 2
#: Share of points that are within the noise.
_REPEATED = 0.15


@dataclass(frozen=True)
class Forecast:
    """What a map should take on an engine: points of the grids, of full grids, and fresh ones.

    `cpu_s` is no more than the budget; with a `refusal` there is nothing to run.
    """

    map: str
    engine: str
    points: int
    full_points: int
    fresh: int
    cpu_s: float
    refusal: str = ""

    def __str__(self) -> str:
        if self.refusal:
            return f"{self.map} on {self.engine}: refused: {self.refusal}"
        return (
            f"{self.map} on {self.engine}: about {self.points} points of {self.full_points} and "
            f"{self.fresh} fresh ones, about {self.cpu_s:.0f} s of CPU"
        )


def forecast(
    root: Path, name: str, engine: str, tier: str, ns3_version: str = NS3_VERSION
) -> Forecast:
    """Return what a map should take on an engine, by the cost of its corners and its middle.

    Raises
    ------
    InputError
        The map does not fit its study.
    """
    found, spending, settings = _load(root, name, tier)
    space = Space(found, load_study(root, found.study), engine, ns3_version)
    halvings = spending.halvings(found.border_width)
    n, facets = spending.coarse_cells, len(space.facets)
    on_border = sum(_CELLS_ON_BORDER * n * 2**level for level in range(halvings))
    fresh = tried = 2 * spending.checks_a_side
    points = facets * round((n + 1) ** 2 + _NODES_A_CELL * on_border) + tried
    full = facets * (n * 2**halvings + 1) ** 2
    runs = [
        run
        for facet in space.facets
        for across, up in ((0.0, 0.0), (0.0, 1.0), (0.5, 0.5), (1.0, 0.0), (1.0, 1.0))
        for run in space.runs(Place(facet, across, up))
    ]
    refusals = [run.refusal for run in runs if run.refusal]
    if len(refusals) == len(runs):
        return Forecast(name, engine, 0, full, 0, 0.0, refusals[0] if refusals else "no runs")
    each_s = math.fsum(run.cost_s for run in runs) / (5 * facets)
    more = 1 + _REPEATED * (settings.replicates - 1)
    first_s = (n + 1) ** 2 * each_s
    budget_s = max(first_s, found.cpu_budget_s * spending.budget_factor)
    cpu_s = min((points + fresh) * each_s * more, budget_s)
    return Forecast(name, engine, points, full, fresh, cpu_s)


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
