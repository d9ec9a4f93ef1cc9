"""Explores a study: its verdicts at every design point, and the tables of its robustness.

`explore_study` runs and judges the design points; `measure_study` makes the tables that the report
shows. The study's own claims and cells are judged as they always are: `evaluate_claim` and
`judge_cell` take the results of a design point as they take those of a tier. Cells are looked up
for all points at once, each point a replicate, and judged one by one: looking up is what costs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from replication.design.config import load_study
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.design_point import (
    SPACE_FILLING,
    Design,
    DesignPoint,
    design_points,
    varied,
)
from replication.explore.machine import Machine
from replication.explore.robustness import (
    Importances,
    cell_rows,
    claim_rows,
    design_matrix,
    effect_rows,
    importances,
    verdicts_by_claim,
)
from replication.metrics.cell_map import map_cells
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.metrics.statistic import estimate
from replication.study.files import read_json, write_text
from replication.study.published import published_path, read_published
from replication.study.scenario import canonical_json
from replication.study.sensitivity_settings import load_sensitivity
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.table import (
    CELL_COLUMNS,
    CLAIM_COLUMNS,
    Row,
    read_rows,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import audit_study, impossible_cells
from replication.verdicts.cell import (
    judge_cell,
    replicate_means,
    untestable,
    within_tolerance,
)
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

#: Tables of a study's folder, which are merged under the same names.
TABLES: dict[str, tuple[str, ...]] = {
    "points": (
        *("study", "point", "kind", "changed", "values", "engine", "scenarios", "refused"),
        "reason",
    ),
    "claims": (
        *("study", "claim", "engine", "verdict_tier", "verdict_default", "reduced_scale_differs"),
        *("seeds", "seeds_alike", "designs", "holds", "share", "low", "high", "share_direction"),
        *("word", "tested_alone", "flipped_by", "important", "r2"),
    ),
    "cells": (
        *("study", "table", "row", "column", "engine", "unit", "published", "verdict_tier"),
        *("default", "inside_default", "seed_low", "seed_high", "designs", "lowest", "highest"),
        *("published_in_range", "share_inside"),
    ),
    "effects": (
        *("study", "claim", "engine", "parameter", "method", "value", "before", "after"),
        *("importance", "deviation"),
    ),
}
MADE_FROM = "made_from.json"
#: Columns of what is judged at every design point, Parquet files of these names.
_JUDGED = {
    "claims": ("point", "claim", "engine", "observed", "verdict"),
    "cells": (
        *("point", "table", "row", "column", "engine", "unit", "published", "value", "inside"),
        "verdict",
    ),
}
_NUMBERS = {"observed": float, "published": float, "value": float}


def explore_study(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Run and judge every design point of a study; write points.csv and `_JUDGED` to `folder`."""
    study = load_study(root, name)
    design = design_points(study, load_sensitivity(root), machine.engine, machine.ns3_version)
    print(design, file=sys.stderr)
    points = [point for point in design.points if point.ran]
    everything = machine.results(name, [point.runs for point in points])
    rows: dict[str, list[dict[str, object]]] = {"claims": []}
    rows["cells"] = list(_cells_at(root, study, [point.id for point in points], everything))
    for point in points:
        results = machine.read(name, [point.runs])
        for claim in study.claims:
            rows["claims"] += [
                row | {"point": point.id} for row in evaluate_claim(study, claim, results)
            ]
    for part, columns in _JUDGED.items():
        table = pd.DataFrame(rows[part], columns=list(columns))
        table = table.astype({n: t for n, t in _NUMBERS.items() if n in columns})
        judged = pa.Table.from_pandas(table, preserve_index=False)
        write_parquet(judged, folder / f"{part}.parquet")
    described = (_point_row(design, point) for point in design.points)
    write_table(folder / "points.csv", described, TABLES["points"])


def _point_row(design: Design, point: DesignPoint) -> dict[str, object]:
    return {
        "study": design.study,
        "point": point.id,
        "kind": point.kind,
        "changed": point.changed,
        "values": json.dumps(point.values, sort_keys=True),
        "engine": design.engine,
        "scenarios": point.ran,
        "refused": len(point.runs) - point.ran,
        "reason": point.refusal or "; ".join(sorted({r.refusal for r in point.runs} - {""})),
    }


def read_design(folder: Path) -> Design:
    """Return the design points of points.csv, without their runs."""
    rows = robustness_table(folder, "points")
    points = [
        DesignPoint(r["point"], r["kind"], r["changed"], json.loads(r["values"])) for r in rows
    ]
    return Design(rows[0]["study"], rows[0]["engine"], points)


def _cells_at(
    root: Path, study: Study, points: Sequence[str], results: Results
) -> Iterator[dict[str, object]]:
    """Yield a row for each published number and point, a replicate of the results each.

    The study has its own defaults: what is expected does not change from point to point.
    """
    numbers = read_published(published_path(root, study.id))
    cells = [cell for cell in map_cells(study, numbers) if not cell.is_spread]
    broken = impossible_cells(audit_study(study, cells))
    coverage = Coverage(study, results)
    (engine,) = results.engines
    for cell in cells:
        means = replicate_means(quantity(results, cell.quantity).drop(columns="engine"))
        for number, point in enumerate(points):
            found = estimate(means[means.index == number].to_numpy(dtype=float))
            why_not = untestable(coverage, engine, cell, found.n, number)
            row = judge_cell(study.id, cell, engine, found, why_not, broken.get(cell.key))
            own = {"value": found.mean, "inside": within_tolerance(cell, found.mean)}
            yield row | {"point": point, **own}


def measure_study(
    root: Path, name: str, folder: Path, data: Path, ns3_version: str = NS3_VERSION
) -> None:
    """Write the tables of one study (`TABLES`) to `folder`, and what they were made from.

    `data` holds the verdicts of the tier that the report shows, if one was run, to be compared
    with those at the reduced scale; `ns3_version` is that of the runs.
    """
    study, design = load_study(root, name), read_design(folder)
    judged = {part: read_parquet(folder / f"{part}.parquet").to_pandas() for part in _JUDGED}
    verdicts = verdicts_by_claim(design, judged["claims"])
    found = dict(_importances(root, study, design, verdicts))
    claims = _tier_rows(data / "claims.csv", CLAIM_COLUMNS, design)
    cells = _tier_rows(data / "cells.csv", CELL_COLUMNS, design)
    in_claims = {row["claim"]: row["verdict"] for row in claims}
    in_cells = {(row["table"], row["row"], row["column"]): row["verdict"] for row in cells}
    rows = {
        "claims": claim_rows(design, verdicts, in_claims, found),
        "cells": cell_rows(design, judged["cells"], in_cells),
        "effects": effect_rows(design, verdicts, found),
    }
    for part, table in rows.items():
        write_table(folder / f"{part}.csv", table, TABLES[part])
    engine = chosen_engine(design.engine, ns3_version)
    write_text(folder / MADE_FROM, canonical_json(made_from(root, name, engine)) + "\n")


def _tier_rows(path: Path, columns: Sequence[str], design: Design) -> list[Row]:
    if not path.is_file():
        return []
    own = design.study, design.engine
    return [row for row in read_rows(path, columns) if (row["study"], row["engine"]) == own]


def _importances(
    root: Path, study: Study, design: Design, verdicts: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[str, Importances]]:
    """Yield what makes each claim hold or not; claims that hardly ever flip have none."""
    settings = load_sensitivity(root)
    axes = varied(study, settings)
    matrix, names = design_matrix(design, axes), [axis.key for axis in axes]
    for claim, table in verdicts.items():
        verdict = table.loc[table["kind"] == SPACE_FILLING, "verdict"]
        undecided = verdict.isin(["", Verdict.NOT_TESTABLE])
        outcome = (verdict == Verdict.REPRODUCED).astype(float).mask(undecided)
        found = importances(matrix, np.array(outcome, dtype=float), names, settings.seed)
        if found is not None:
            yield claim, found


def robustness_table(folder: Path, part: str) -> list[Row]:
    """Read one of `TABLES`; InputError names it if it is missing or of another version."""
    return read_rows(folder / f"{part}.csv", TABLES[part])


def made_from(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the hashes of all that decides a study's robustness, as it is now."""
    settings = load_sensitivity(root)
    common = settings.model_dump(mode="json", exclude={"explanation", "studies", "other_studies"})
    own = settings.of(name).model_dump(mode="json")
    return input_hashes(root, name, engine, settings=[common, own])


def read_made_from(folder: Path) -> Mapping[str, str]:
    """Return what the tables in `folder` were made from; empty where that is not known."""
    path = folder / MADE_FROM
    found: dict[str, str] = read_json(path) if path.is_file() else {}
    return found


def is_current(root: Path, data: Path, name: str) -> bool:
    """Return whether a study's tables in the folder of results are what would be made now."""
    then = read_made_from(data / "sensitivity" / name)
    return is_same(data, then, lambda engine: made_from(root, name, engine))
