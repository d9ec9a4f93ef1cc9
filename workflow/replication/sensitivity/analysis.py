"""Sensitivity of a study: from its design and the store of runs to the tables of robustness.

Stages, each a rule: design, simulate, judge (verdicts at every design point), measure (shares,
ranges, effects), merge. The best explanation of the gaps is searched by `sensitivity.why`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from replication.plan.config import load_study
from replication.run.store import Store
from replication.sensitivity.design import (
    SensitivityDesign,
    read_scenarios,
    read_sensitivity_design,
)
from replication.sensitivity.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    SPACE_FILLING,
    varied,
)
from replication.sensitivity.importance import Importances, design_matrix, importances
from replication.sensitivity.robustness import Verdicts, cell_rows, claim_rows, point_rows
from replication.sensitivity.robustness_rows import MADE_FROM, TABLES, made_from
from replication.sensitivity.spread import spread_table
from replication.sensitivity.verdict_point import (
    CELL_COLUMNS as JUDGED_CELL,
)
from replication.sensitivity.verdict_point import (
    CLAIM_COLUMNS as JUDGED_CLAIM,
)
from replication.sensitivity.verdict_point import (
    SPREAD_COLUMNS,
    Judge,
    point_results,
    spread_rows,
)
from replication.study.assumption import Assumption
from replication.study.files import write_text
from replication.study.published import published_path
from replication.study.scenario import canonical_json
from replication.study.sensitivity_settings import Sensitivity, load_sensitivity
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.table import CELL_COLUMNS, CLAIM_COLUMNS, Row, read_rows, write_table
from replication.study.verdict import Verdict


def judge_points(root: Path, name: str, folder: Path, store: Store) -> None:
    """Judge every design point of a study; write claims, cells and spread (Parquet) to `folder`.

    Raises
    ------
    RunError, InputError
        A run is not in the store, or a table does not fit the study.
    """
    study = load_study(root, name)
    design = read_sensitivity_design(folder)
    scenarios = read_scenarios(folder)
    judge = Judge.of(study, published_path(root, name))
    points = [p for p in design.points if any(not run.refusal for run in p.runs)]
    everything = point_results(name, design.engine, points, scenarios, store)
    cells = list(judge.judged_cells([point.id for point in points], everything))
    claims: list[dict[str, object]] = []
    spread: list[dict[str, object]] = []
    for point in points:
        results = point_results(name, design.engine, [point], scenarios, store)
        claims += judge.claims(point.id, results)
        spread += spread_rows(point.id, results)
    types = {"observed": float, "published": float, "value": float}
    for part, rows, columns in (
        ("claims", claims, JUDGED_CLAIM),
        ("cells", cells, JUDGED_CELL),
        ("spread", spread, SPREAD_COLUMNS),
    ):
        table = pd.DataFrame(rows, columns=list(columns))
        table = table.astype({n: t for n, t in types.items() if n in columns})
        judged = pa.Table.from_pandas(table, preserve_index=False)
        write_parquet(judged, folder / f"{part}.parquet")


def measure(root: Path, name: str, folder: Path, data: Path) -> None:
    """Write the tables of one study (`TABLES`) to `folder`, and what they were made from.

    `data` holds the verdicts of the tier that the report shows, if one was run; they stand beside
    those at the reduced scale.
    """
    study, settings = load_study(root, name), load_sensitivity(root)
    design = read_sensitivity_design(folder)
    judged = {
        part: read_parquet(folder / f"{part}.parquet").to_pandas()
        for part in ("claims", "cells", "spread")
    }
    verdicts = Verdicts(design, judged["claims"], judged["cells"])
    axes = varied(study, settings)
    found = _importances(verdicts, axes, settings)
    named = {
        claim: (values.r2, values.important(settings.importance)) for claim, values in found.items()
    }
    tier = _tier_rows(data / "claims.csv", CLAIM_COLUMNS, design)
    tier_cells = _tier_rows(data / "cells.csv", CELL_COLUMNS, design)
    rows = {
        "points": point_rows(design),
        "claims": claim_rows(verdicts, settings, {r["claim"]: r["verdict"] for r in tier}, named),
        "cells": cell_rows(
            verdicts,
            {(r["table"], r["row"], r["column"]): r["verdict"] for r in tier_cells},
        ),
        "effects": _effect_rows(verdicts, axes, found),
        "spread": spread_table(design, judged["spread"], data / "evaluation" / name),
    }
    for part, table in rows.items():
        write_table(folder / f"{part}.csv", table, TABLES[part])
    write_text(folder / MADE_FROM, canonical_json(made_from(root, name, design.engine)) + "\n")


def _tier_rows(path: Path, columns: Sequence[str], design: SensitivityDesign) -> list[Row]:
    if not path.is_file():
        return []
    own = design.study, design.engine
    return [row for row in read_rows(path, columns) if (row["study"], row["engine"]) == own]


def _importances(
    verdicts: Verdicts, axes: Sequence[Assumption], settings: Sensitivity
) -> dict[str, Importances]:
    """Return what makes each claim hold or not; claims that hardly ever flip have none."""
    points, matrix = design_matrix(verdicts.design, axes)
    names = [axis.key for axis in axes]
    found = {}
    for claim in dict.fromkeys(verdicts.claims["claim"]):
        words = verdicts.claim(claim, SPACE_FILLING)
        testable = {p: word for p, word in words.items() if word != Verdict.NOT_TESTABLE}
        outcome = [
            float(testable[p] == Verdict.REPRODUCED) if p in testable else math.nan for p in points
        ]
        values = importances(
            matrix,
            np.array(outcome, dtype=float),
            names,
            settings.importance,
            settings.seed,
        )
        if values is not None:
            found[claim] = values
    return found


def _effect_rows(
    verdicts: Verdicts, axes: Sequence[Assumption], found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield the effect of each assumption on each claim: one at a time, and by permutation."""
    design = verdicts.design
    for claim in dict.fromkeys(verdicts.claims["claim"]):
        shared = {"study": design.study, "claim": claim, "engine": design.engine}
        before = verdicts.claim(claim, DEFAULT).get("default", "")
        after = verdicts.claim(claim, ONE_AT_A_TIME)
        for point in design.of(ONE_AT_A_TIME):
            value = point.values[point.changed]
            yield shared | {
                "parameter": point.changed,
                "method": ONE_AT_A_TIME,
                "value": json.dumps(value),
                "before": before,
                "after": after.get(point.id, ""),
                "importance": None,
                "deviation": None,
            }
        for axis in axes if claim in found else ():
            yield shared | {
                "parameter": axis.key,
                "method": "permutation",
                "value": "",
                "before": "",
                "after": "",
                "importance": found[claim].mean[axis.key],
                "deviation": found[claim].deviation[axis.key],
            }
