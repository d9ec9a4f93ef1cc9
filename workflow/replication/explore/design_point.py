"""Design points: values of a study's assumptions at which its claims and cells are judged.

All points run on one engine, with one replicate:

- `default`: the documented defaults; `seed`: the same with other seeds, for run-to-run variation;
- `one at a time`: one assumption at an end of its range, or at another of its choices;
- `space filling`: all assumptions vary at once, by a Sobol' design, as far as the budget allows.

Claims and cells are judged by the rules of the report, each point a replicate.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
from pydantic import JsonValue
from scipy.stats import qmc

from replication.design.config import (
    Extent,
    Replicates,
    Scale,
    Sensitivity,
    load_sensitivity,
    load_study,
)
from replication.design.design import Run, design_study
from replication.engines.model import Engine
from replication.explore.machine import Costs, Machine, by_replicate
from replication.metrics.cell_map import map_cells
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.errors import InputError, check_known
from replication.study.published import published_path, read_published
from replication.study.study import Study
from replication.study.table import write_parquet, write_table
from replication.study.variation import Assumption, Variation, apply, assumptions
from replication.verdicts.cell import replicate_means, untestable
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

_SETTINGS = "configs/sensitivity.yaml"
DEFAULT, SEED = "default", "seed"
ONE_AT_A_TIME, SPACE_FILLING = "one at a time", "space filling"
POINT_COLUMNS = (
    *("study", "point", "kind", "changed", "values", "engine", "scenarios", "refused"),
    "reason",
)
CELL_COLUMNS = (
    *("study", "table", "row", "column", "engine", "unit", "published"),
    *("designs", "lowest", "highest", "published_in_range"),
)
#: Verdicts on the claims at all points: point, claim, verdict.
VERDICTS = "claims.parquet"


@dataclass(frozen=True)
class DesignPoint:
    """One setting of a study's assumptions, and a run for each point of its experiments.

    `values` are those that differ from the defaults, `changed` the one that is changed alone;
    `refusal` says why the values make no scenario together.
    """

    id: str
    kind: str
    changed: str = ""
    values: dict[str, JsonValue] = field(default_factory=dict)
    runs: Sequence[Run] = ()
    refusal: str = ""

    @property
    def row(self) -> dict[str, object]:
        """Its row of points.csv, without study and engine."""
        refusals = [run.refusal for run in self.runs if run.refusal]
        return {
            **{"point": self.id, "kind": self.kind, "changed": self.changed},
            "values": json.dumps(self.values, sort_keys=True),
            "scenarios": len(self.runs) - len(refusals),
            "refused": len(refusals),
            "reason": self.refusal or "; ".join(sorted(set(refusals))),
        }


def explore_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Run and judge every design point; write points.csv, cells.csv and `VERDICTS` to `folder`."""
    study, settings = load_study(root, name), load_sensitivity(root)
    points = design_points(study, settings, machine.engine)
    ran = [point for point in points if not all(run.refusal for run in point.runs)]
    results = machine.results(name, [point.runs for point in ran])
    write_table(folder / "cells.csv", _cells(root, study, results), CELL_COLUMNS)
    verdicts = []
    for point in ran:
        single = machine.read(name, [point.runs])
        for claim in study.claims:
            judged = evaluate_claim(study, claim, single)
            verdicts += [(point.id, row["claim"], row["verdict"]) for row in judged]
    table = pd.DataFrame(verdicts, columns=["point", "claim", "verdict"])
    write_parquet(pa.Table.from_pandas(table, preserve_index=False), folder / VERDICTS)
    described = ({"study": name, "engine": machine.engine.name} | point.row for point in points)
    write_table(folder / "points.csv", described, POINT_COLUMNS)


def _cells(root: Path, study: Study, results: Results) -> Iterator[dict[str, object]]:
    """Yield the range of our value for each published number over the points.

    Points where one run cannot test it do not count, as with a number of one published run.
    """
    (engine,) = results.engines
    coverage = Coverage(study, results, engine)
    for cell in map_cells(study, read_published(published_path(root, study.id))):
        if cell.is_spread:
            continue
        means = replicate_means(quantity(results, cell.quantity).drop(columns="engine"))
        values = [
            float(mean)
            for number, mean in zip(means.index.tolist(), means, strict=True)
            if not (cell.cell.tolerance.factor or untestable(coverage, cell, 1, number))
        ]
        yield {
            **{"study": study.id, "engine": engine, "published": cell.value},
            **{name: getattr(cell, name) for name in ("table", "row", "column", "unit")},
            **value_range(cell.value, values),
        }


def value_range(published: float, values: Sequence[float]) -> dict[str, object]:
    """Return the range of values at design points, and whether the published one is in it."""
    low, high = min(values, default=math.nan), max(values, default=math.nan)
    within = low <= published <= high if values else None
    return {"designs": len(values), "lowest": low, "highest": high, "published_in_range": within}


def design_points(study: Study, settings: Sensitivity, engine: Engine) -> list[DesignPoint]:
    """Return the design points of a study that its budget allows; print how many those are."""
    scale = settings.of(study.id).exploration
    study = _explored(study, scale)
    axes = varied(study, settings)
    alone = [(axis.key, value) for axis in axes for value in axis.alternatives]
    points = _seeds(study, scale, settings.replicates_at_default, engine)
    usual = {run.refusal for run in points[0].runs}
    # Choices that the engine refuses although it runs the default.
    refused: defaultdict[str, list[JsonValue]] = defaultdict(list)
    for n, (key, value) in enumerate(alone):
        point = DesignPoint(f"o-{n:03d}", ONE_AT_A_TIME, key, {key: value})
        points.append(point := _with_runs(point, study, scale, engine))
        if point.refusal or {run.refusal for run in point.runs} - usual:
            refused[key].append(value)
    costs = Costs()
    costs.count(run for point in points for run in point.runs)
    exponent = settings.points.bit_length() - 1
    sobol = qmc.Sobol(len(axes), rng=settings.seed)
    rows = sobol.random_base2(exponent).tolist() if axes else []
    for n, row in enumerate(rows):
        values = {a.key: a.at(share, refused[a.key]) for a, share in zip(axes, row, strict=True)}
        point = DesignPoint(f"s-{n:03d}", SPACE_FILLING, values=values)
        point = _with_runs(point, study, scale, engine)
        if costs.spent_s + costs.further_s(point.runs) > scale.cpu_budget_s:
            break
        costs.count(point.runs)
        points.append(point)
    print(
        f"{study.id}: {len(points)} design points ({len(rows)} would be space filling), "
        f"{len(costs.counted)} scenarios on {engine.name}, about {costs.spent_s:.0f} s of CPU",
        file=sys.stderr,
    )
    return points


def _explored(study: Study, scale: Scale) -> Study:
    known = {experiment.id: experiment for experiment in study.experiments}
    wanted = scale.experiments or [*known]
    check_known(f"{_SETTINGS}: studies.{study.id}.exploration.experiments", wanted, known)
    kept = [one for name, one in known.items() if name in wanted]
    return study.model_copy(update={"experiments": kept})


def varied(study: Study, settings: Sensitivity) -> list[Assumption]:
    """Return the assumptions that have alternatives and are not held by the settings.

    InputError where the settings hold a parameter that is not assumed.
    """
    found, held = assumptions(study), settings.of(study.id).held
    check_known(f"{_SETTINGS}: studies.{study.id}.held", held, {one.key for one in found})
    return [a for a in found if a.alternatives and a.key not in held]


def _seeds(study: Study, scale: Scale, count: int, engine: Engine) -> list[DesignPoint]:
    """Return the default point, then the same with other seeds."""
    points, runs = [], whole_runs(study, engine.name, engine.version, count, scale.levels)
    for number, same_seed in enumerate(by_replicate(runs)):
        name, kind = (f"seed-{number}", SEED) if number else (DEFAULT, DEFAULT)
        single = [replace(run, replicate=0) for run in same_seed]
        points.append(DesignPoint(name, kind, runs=single))
    return points


def _with_runs(point: DesignPoint, study: Study, scale: Scale, engine: Engine) -> DesignPoint:
    try:
        changed = apply(study, Variation(defaults=point.values))
        runs = whole_runs(changed, engine.name, engine.version, levels=scale.levels)
        return replace(point, runs=runs)
    except InputError as error:
        return replace(point, refusal=str(error))


def whole_runs(
    study: Study, engine: str, version: str, count: int = 1, levels: Literal["all", "quick"] = "all"
) -> list[Run]:
    """Return `count` replicates in full length, at all levels or at those of tier quick."""
    extent = Extent(replicates=[Replicates(count=count)], levels=levels)
    return design_study(study, extent, [engine], version)
