"""The search for a fit: plausible settings that bring more of a table's cells inside tolerance.

For each published table a seeded differential evolution (Storn and Price 1997; scipy) from the best
of the design's points on, under the reading that served the best of them, over the whole space of
plausible settings. It sees one half of the table's cells, as every fit does
(`sensitivity.forensics`); what it finds is a fit and is nowhere used but beside the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pydantic import JsonValue

from replication.judge.hypothesis import load_hypotheses
from replication.measure.cell_map import MappedCell
from replication.plan.config import Tier, load_study
from replication.plan.design import Run, design_study
from replication.run.store import Store
from replication.sensitivity.design import (
    PointRecord,
    SensitivityDesign,
    read_points,
    read_sensitivity_design,
    record,
    write_points,
)
from replication.sensitivity.design_point import (
    SEARCH,
    DesignPoint,
    Space,
    explored_tier,
    only,
    varied,
)
from replication.sensitivity.forensics import Candidate, candidates, explored_cells, split_cells
from replication.sensitivity.robustness import Verdicts
from replication.sensitivity.verdict_point import CELL_COLUMNS, Judge, point_results
from replication.study.assumption import variant
from replication.study.errors import InputError
from replication.study.parquet import read_parquet, write_parquet
from replication.study.scenario import Scenario, canonical_json
from replication.study.seal import read_sealed, write_sealed
from replication.study.sensitivity_settings import Search, Sensitivity, load_sensitivity
from replication.study.study import Study

POINTS = "search.json"
CELLS = "search.parquet"
#: Score of a setting that makes no scenario, above that of any that does.
_NO_SCORE = 1.0
_NUMBERS = {"published": float, "value": float}

Numbers = npt.NDArray[np.float64]
#: Runs scenarios into the store.
Simulate = Callable[[dict[str, Scenario]], None]


@dataclass(frozen=True)
class _SearchInputs:
    """What every table's search shares: the study at the scale of its exploration."""

    study: Study
    design: SensitivityDesign
    tier: Tier
    space: Space
    judge: Judge
    store: Store
    simulate: Simulate


@dataclass
class _TableSearch:
    """One table's search; `points` and `rows` collect the settings that it tried."""

    explored: _SearchInputs
    table: str
    reading: str
    fitted: Sequence[tuple[str, str, str]]
    points: list[PointRecord] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    generation: int = 0

    def score(self, positions: Numbers) -> Numbers:
        """Return a score for each column of `positions`: whole numbers count cells inside."""
        made: dict[int, PointRecord] = {}
        scenarios: dict[str, Scenario] = {}
        for number, column in enumerate(positions.T):
            name = f"f-{self.table}-{self.generation}-{number:02d}"
            point, own = self._point(name, self.explored.space.at(column))
            if point is not None:
                made[number] = point
                scenarios |= own
        self.explored.simulate(scenarios)
        rows = self._judged(list(made.values()), scenarios) if made else []
        # The first generation is that of the design's own points.
        if self.generation:
            self.points += made.values()
            self.rows += rows
        self.generation += 1
        found = {c.point: c for c in candidates(_frame(rows)) if c.reading == self.reading}
        scores = np.full(positions.shape[1], _NO_SCORE)
        for number, point in made.items():
            if point.id in found:
                scores[number] = found[point.id].score(self.fitted)
        return scores

    def _cells(self) -> list[MappedCell]:
        return [cell for cell in self.explored.judge.cells if cell.table == self.table]

    def _point(
        self, name: str, values: dict[str, JsonValue]
    ) -> tuple[PointRecord | None, dict[str, Scenario]]:
        """Return a setting's runs of this table; None where it makes none here."""
        explored = self.explored
        cells = self._cells()
        needed = {cell.quantity.experiment for cell in cells}
        study = variant(explored.study, values)
        kept = [e for e in study.experiments if e.id in needed]
        study = study.model_copy(update={"experiments": kept})
        try:
            runs = design_study(study, explored.tier, [explored.design.engine])
        except InputError:
            return None, {}
        runs = [run for run in runs if any(_is_of(run, cell) for cell in cells)]
        if not runs or any(run.refusal for run in runs):
            return None, {}
        point = record(DesignPoint(name, SEARCH, self.table, values, tuple(runs)))
        return point, {run.scenario_id: run.scenario for run in runs}

    def _judged(
        self, points: Sequence[PointRecord], scenarios: Mapping[str, Scenario]
    ) -> list[dict[str, object]]:
        explored = self.explored
        documents = {key: s.model_dump(mode="json") for key, s in scenarios.items()}
        design = explored.design
        results = point_results(design.study, design.engine, points, documents, explored.store)
        judge = replace(explored.judge, cells=self._cells())
        return list(judge.judged_cells([point.id for point in points], results))


def search_fits(root: Path, name: str, folder: Path, store: Store, simulate: Simulate) -> None:
    """Search a fit for each table of a study; write search.json and search.parquet to `folder`.

    Parameters
    ----------
    root, name
        The project's folder and the study's id.
    folder
        Where the study's sensitivity is: its design and judged cells are read.
    store, simulate
        Finished runs, and what runs more into it.

    Raises
    ------
    InputError, RunError
        Files are missing or do not fit together; a run fails.
    """
    settings = load_sensitivity(root)
    design = read_sensitivity_design(folder)
    study = only(load_study(root, name), settings.of(name).exploration)
    judge = Judge.of(
        load_study(root, name),
        root / "data" / "published" / f"{name}.csv",
        load_hypotheses(root).of(name),
    )
    explored = _SearchInputs(
        study,
        design,
        explored_tier(settings.of(name).exploration, cost_limit=design.cost_limit_s),
        Space(varied(study, settings), design.refused),
        judge,
        store,
        simulate,
    )
    cells = read_parquet(folder / "cells.parquet").to_pandas()
    verdicts = Verdicts(design, pd.DataFrame(columns=["point", "claim"]), cells)
    found = [_search(explored, table, own, settings) for table, own in explored_cells(verdicts)]
    points = [point for search in found for point in search.points]
    rows = [row for search in found for row in search.rows]
    table = pa.Table.from_pandas(_frame(rows), preserve_index=False)
    write_parquet(table, folder / CELLS)
    write_sealed(folder / POINTS, canonical_json(write_points(points)) + "\n")


def read_search(folder: Path) -> tuple[list[PointRecord], pd.DataFrame]:
    """Return the settings that the search tried, and their judged cells.

    Raises
    ------
    InputError
        There are none, or they are damaged.
    """
    path = folder / POINTS
    try:
        text, cells = read_sealed(path), read_parquet(folder / CELLS).to_pandas()
        return read_points(json.loads(text)), cells
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: is missing or damaged ({error}); delete it, run again") from None


def _search(
    explored: _SearchInputs, table: str, cells: pd.DataFrame, settings: Sensitivity
) -> _TableSearch:
    """Return what the search of one table tried; nothing where there is nothing to choose by."""
    tried = candidates(cells)
    halves = split_cells(explored.design.study, tried)
    search = _TableSearch(explored, table, tried[0].reading if tried else "", [])
    if halves is None or not explored.space.axes:
        return search
    search.fitted = halves.fitted
    ranked = sorted(tried, key=lambda c: c.rank(search.fitted))
    search.reading = ranked[0].reading
    start = _positions(explored, ranked, settings.search)
    if len(start) < settings.search.population:
        return search
    from scipy.optimize import differential_evolution

    differential_evolution(
        search.score,
        bounds=[(0.0, 1.0)] * start.shape[1],
        init=start,
        maxiter=settings.search.generations,
        rng=settings.seed,
        polish=False,
        vectorized=True,
        updating="deferred",
        tol=0.0,
    )
    return search


def _positions(explored: _SearchInputs, ranked: Sequence[Candidate], wanted: Search) -> Numbers:
    """Return where the best settings stand in the unit cube: a row each, every setting once."""
    values = {point.id: point.values for point in explored.design.points}
    rows: dict[tuple[float, ...], None] = {}
    for candidate in ranked:
        own = values[candidate.point]
        rows[
            tuple(axis.position(own.get(axis.key, axis.default)) for axis in explored.space.axes)
        ] = None
        if len(rows) == wanted.population:
            break
    return np.array(list(rows), dtype=float).reshape(len(rows), len(explored.space.axes))


def _is_of(run: Run, cell: MappedCell) -> bool:
    """Return whether a run is among those that a cell stands for."""
    if run.experiment != cell.quantity.experiment:
        return False
    for factor, keys in cell.quantity.where.items():
        if run.levels.get(factor) not in ([keys] if isinstance(keys, str) else list(keys)):
            return False
    return True


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(CELL_COLUMNS)).astype(_NUMBERS)
