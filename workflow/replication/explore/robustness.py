"""Robustness: whether a claim holds over the plausible values of what its paper does not state.

A *design point* sets a study's assumptions. All run on one engine, with one replicate, and each is
judged by the rules of the report:

- `default`: the documented defaults; `seed`: the same with other seeds, for run-to-run variation;
- `one at a time`: one assumption at an end of its range, or at another of its choices;
- `space filling`: all assumptions vary at once, by a Sobol' design, as far as the budget allows.

A claim *holds* where its verdict is `reproduced`. It holds at a share of the space-filling points
at which it can be tested, given with Wilson's interval as if the points were a random sample (a
Sobol' design covers the space more evenly, so the interval is too wide rather than too narrow).
"""

import itertools
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_type_hints

import pandas as pd
import scipy
from pydantic import JsonValue

from replication.base.errors import InputError, check_known
from replication.base.files import read_json
from replication.base.position import located
from replication.base.table import (
    flat,
    read_parquet,
    read_rows,
    write_frame,
    write_table,
)
from replication.design.config import SENSITIVITY, Scale, Sensitivity, load_sensitivity, load_study
from replication.design.design import Run
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.machine import Costs, Machine, by_replicate, whole_runs, write_json
from replication.explore.readings import check_readings
from replication.explore.trial import verdicts
from replication.metrics.cell_map import cells_of
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.metrics.statistic import wilson_interval
from replication.study.study import Study
from replication.study.variation import Assumption, Variation, apply, assumptions
from replication.study.verdict import Verdict
from replication.verdicts.cell import replicate_means, untestable
from replication.verdicts.sample import Coverage
from replication.verdicts.verdict_table import NAME, read_claims, rows_on

#: Kinds of design points.
DEFAULT, SEED = "default", "seed"
ONE_AT_A_TIME, SPACE_FILLING = "one at a time", "space filling"
#: Verdicts on the claims at all points: point, claim, verdict.
VERDICTS = "claims.parquet"
INPUT_HASHES = "input_hashes.json"
#: A claim is robust at or above the first share of designs, and fragile at or below the second.
#: With fewer than 35 designs Wilson's interval is too wide for either word, even if all agree.
ROBUST_AT_LEAST, FRAGILE_AT_MOST = 0.9, 0.1
ROBUST, CONDITIONAL, FRAGILE, TOO_FEW = "robust", "conditional", "fragile", "too few designs"


@dataclass(frozen=True)
class DesignRow:
    """A design point: a row of points.csv."""

    study: str
    point: str
    kind: str
    #: The assumption that is changed alone.
    changed: str
    #: JSON of the values that differ from the defaults.
    values: str
    engine: str
    scenarios: int
    refused: int
    reason: str


@dataclass(frozen=True)
class CellRange:
    """The range of our value for a published number: a row of cells.csv."""

    study: str
    table: str
    row: str
    column: str
    engine: str
    unit: str
    published: float
    designs: int
    lowest: float
    highest: float
    published_in_range: bool | None


@dataclass(frozen=True)
class ClaimRobustness:
    """The robustness of a claim: a row of claims.csv."""

    study: str
    claim: str
    engine: str
    #: In the report's tier, and at the reduced scale of the design points.
    verdict_tier: str
    verdict_default: str
    reduced_scale_differs: bool
    seeds: int
    seeds_alike: int
    #: Space-filling points that can test it.
    designs: int
    holds: int
    #: With Wilson's interval.
    share: float
    low: float
    high: float
    word: str
    #: Single changes that can test it.
    tested_alone: int
    #: Those that change whether it holds.
    flipped_by: str


@dataclass(frozen=True)
class Effect:
    """A claim's verdict without and with a single change: a row of effects.csv."""

    study: str
    claim: str
    engine: str
    parameter: str
    value: str
    before: str
    after: str


#: Tables of a study's folder.
TABLES = {
    "points": tuple(get_type_hints(DesignRow)),
    "cells": tuple(get_type_hints(CellRange)),
    "claims": tuple(get_type_hints(ClaimRobustness)),
    "effects": tuple(get_type_hints(Effect)),
}


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

    def row(self, study: str, engine: str) -> DesignRow:
        """Return its row of points.csv."""
        refusals = [run.refusal for run in self.runs if run.refusal]
        return DesignRow(
            study=study,
            point=self.id,
            kind=self.kind,
            changed=self.changed,
            values=json.dumps(self.values, sort_keys=True),
            engine=engine,
            scenarios=len(self.runs) - len(refusals),
            refused=len(refusals),
            reason=self.refusal or "; ".join(sorted(set(refusals))),
        )


def explore_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Run and judge every design point; write points.csv, cells.csv and `VERDICTS` to `folder`."""
    study = load_study(root, name)
    settings = load_sensitivity(root)
    points = design_points(study, settings, machine.engine)
    ran = [point for point in points if not all(run.refusal for run in point.runs)]
    results = machine.results(name, [point.runs for point in ran])
    _write(folder, "cells", _cells(root, study, results))
    judged: list[tuple[str, str, str]] = []
    for point in ran:
        by_claim = verdicts(study, study.claims, machine.results(name, [point.runs]))
        judged += [(point.id, claim, verdict) for claim, verdict in by_claim.items()]
    table = pd.DataFrame(judged, columns=["point", "claim", "verdict"])
    write_frame(table, folder / VERDICTS)
    _write(folder, "points", [point.row(name, machine.engine.name) for point in points])


def _write(folder: Path, table: str, rows: Iterable[object]) -> None:
    """Write rows of one of `TABLES`."""
    write_table(folder / f"{table}.csv", map(vars, rows), TABLES[table])


def _cells(root: Path, study: Study, results: Results) -> Iterator[CellRange]:
    """Yield the range of our value for each published number over the points.

    Points where one run cannot test it do not count, as with a number of one published run.
    """
    (engine,) = results.engines
    coverage = Coverage(study, results, engine)
    for cell in cells_of(root, study):
        if cell.is_spread:
            continue
        means = replicate_means(quantity(results, cell.quantity).drop(columns="engine"))
        values = []
        for number, mean in zip(means.index.tolist(), means, strict=True):
            if not (cell.cell.tolerance.factor or untestable(coverage, cell, 1, number)):
                values.append(float(mean))
        yield CellRange(
            study.id,
            cell.table,
            cell.row,
            cell.column,
            engine,
            cell.unit,
            cell.value,
            *value_range(cell.value, values),
        )


def value_range(published: float, values: Sequence[float]) -> tuple[int, float, float, bool | None]:
    """Return how many values design points have, their ends, and whether `published` is within."""
    low = min(values, default=math.nan)
    high = max(values, default=math.nan)
    within = low <= published <= high if values else None
    return len(values), low, high, within


def design_points(study: Study, settings: Sensitivity, engine: Engine) -> list[DesignPoint]:
    """Return the design points of a study that its budget allows; print how many those are."""
    scale = settings.of(study.id).exploration
    study, axes = explored(study, settings)
    points = _seeds(study, scale, settings.replicates_at_default, engine)
    usual = {run.refusal for run in points[0].runs}
    # Choices that the engine refuses although it runs the default.
    refused: defaultdict[str, list[JsonValue]] = defaultdict(list)
    numbers = itertools.count()
    for axis in axes:
        for value in axis.alternatives:
            name = f"o-{next(numbers):03d}"
            point = DesignPoint(name, ONE_AT_A_TIME, axis.key, {axis.key: value})
            points.append(point := _with_runs(point, study, scale, engine))
            if point.refusal or {run.refusal for run in point.runs} - usual:
                refused[axis.key].append(value)
    costs = Costs()
    costs.count(flat(point.runs for point in points))
    sobol = scipy.stats.qmc.Sobol(len(axes), rng=settings.seed)
    rows = sobol.random(settings.points).tolist() if axes else []
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


def check_scale(root: Path, study: Study) -> None:
    """Raise InputError for a name in a study's scale that the study does not have."""
    with located(root / SENSITIVITY):
        settings = load_sensitivity(root)
        explored(study, settings)
        check_readings(study, settings)


def explored(study: Study, settings: Sensitivity) -> tuple[Study, list[Assumption]]:
    """Return the explored part of a study, and its assumptions that vary."""
    chosen, where = settings.of(study.id), f"studies.{study.id}"
    known = {experiment.id: experiment for experiment in study.experiments}
    wanted = chosen.exploration.experiments or [*known]
    place = "studies", study.id, "exploration", "experiments"
    check_known(f"{where}.exploration.experiments", wanted, known, place)
    kept = [experiment for name, experiment in known.items() if name in wanted]
    study = study.model_copy(update={"experiments": kept})
    axes = {axis.key: axis for axis in assumptions(study)}
    check_known(f"{where}.held", chosen.held, axes, ("studies", study.id, "held"))
    varied = [axis for key, axis in axes.items() if key not in chosen.held]
    return study, [axis for axis in varied if axis.alternatives]


def _seeds(study: Study, scale: Scale, count: int, engine: Engine) -> list[DesignPoint]:
    """Return the default point, then the same with other seeds."""
    points = []
    runs = whole_runs(study, engine.name, engine.version, count, scale.levels)
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


def robustness_word(holds: int, designs: int) -> str:
    """Return robust, conditional, fragile, too few designs or not testable."""
    if not designs:
        return Verdict.NOT_TESTABLE
    if wilson_interval(designs, designs)[0] < ROBUST_AT_LEAST:
        return TOO_FEW
    if holds / designs >= ROBUST_AT_LEAST:
        return ROBUST
    return FRAGILE if holds / designs <= FRAGILE_AT_MOST else CONDITIONAL


def measure_study(
    root: Path, name: str, folder: Path, data: Path, ns3_version: str = NS3_VERSION
) -> None:
    """Write claims.csv and effects.csv of one study to `folder`, and the hashes of their inputs.

    The verdicts at the reduced scale are compared with those of the report's tier, if `data` has
    any. `ns3_version` is that of the runs.
    """
    points = pd.DataFrame(read_rows(folder / "points.csv", TABLES["points"]))
    points["values"] = points["values"].map(json.loads)
    engine = str(points["engine"].iloc[0])
    judged = read_claims(data) if (data / NAME).is_file() else []
    in_tier = {row.claim: str(row.verdict) for row in rows_on(judged, {name: engine})}
    claims: list[ClaimRobustness] = []
    effects: list[Effect] = []
    at_points = read_parquet(folder / VERDICTS).to_pandas()
    for claim, judged_at in at_points.groupby("claim", sort=False):
        key = name, str(claim), engine
        # The verdict is empty where no run could be made.
        table = points.merge(judged_at[["point", "verdict"]], how="left").fillna({"verdict": ""})
        claims.append(claim_row(*key, table, in_tier.get(str(claim), "")))
        (default,) = table.loc[table["kind"] == DEFAULT, "verdict"]
        for point in table[table["kind"] == ONE_AT_A_TIME].to_dict("records"):
            value = json.dumps(point["values"][point["changed"]])
            effects.append(Effect(*key, point["changed"], value, default, point["verdict"]))
    _write(folder, "claims", claims)
    _write(folder, "effects", effects)
    write_json(folder / INPUT_HASHES, sources(root, name, chosen_engine(engine, ns3_version)))


def claim_row(
    study: str, claim: str, engine: str, table: pd.DataFrame, tier: str
) -> ClaimRobustness:
    """Return a claim's row from a table of its verdicts by design point, and that in the tier."""
    (default,) = table.loc[table["kind"] == DEFAULT, "verdict"]
    default = default or str(Verdict.NOT_TESTABLE)
    seeds = table.loc[table["kind"].isin([DEFAULT, SEED]) & (table["verdict"] != ""), "verdict"]
    decided = table[~table["verdict"].isin(["", Verdict.NOT_TESTABLE])]
    filled = decided.loc[decided["kind"] == SPACE_FILLING, "verdict"]
    holds = int((filled == Verdict.REPRODUCED).sum())
    designs = len(filled)
    low, high = wilson_interval(holds, designs) if designs else (math.nan, math.nan)
    alone = decided[decided["kind"] == ONE_AT_A_TIME]
    flips = (alone["verdict"] == Verdict.REPRODUCED) != (default == Verdict.REPRODUCED)
    flipped = alone[flips & (default != Verdict.NOT_TESTABLE)]
    changes = []
    for key, values in zip(flipped["changed"], flipped["values"], strict=True):
        value = values[key]
        changes.append(f"{key} = {value if isinstance(value, str) else json.dumps(value)}")
    return ClaimRobustness(
        study=study,
        claim=claim,
        engine=engine,
        verdict_tier=tier,
        verdict_default=default,
        reduced_scale_differs=bool(tier) and tier != default,
        seeds=len(seeds),
        seeds_alike=int((seeds == default).sum()),
        designs=designs,
        holds=holds,
        share=holds / designs if designs else math.nan,
        low=low,
        high=high,
        word=robustness_word(holds, designs),
        tested_alone=len(alone),
        flipped_by="; ".join(changes),
    )


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a study's robustness."""
    settings = load_sensitivity(root)
    common = settings.decisive(exclude={"explanation", "studies", "other_studies"})
    study_settings = settings.of(name).decisive()
    return input_hashes(root, name, engine, settings=[common, study_settings])


def is_current(root: Path, data: Path, name: str) -> bool:
    """Return whether no input of a study's tables in the folder of results has changed."""
    path = data / "sensitivity" / name / INPUT_HASHES
    then = read_json(path) if path.is_file() else {}
    return is_same(data, then, lambda engine: sources(root, name, engine))
