"""Robustness: at how many plausible designs a claim holds, and the range of each cell.

A claim *holds* at a design point where its verdict there is `reproduced`. It holds at a share of
the space-filling points at which it can be tested, given with Wilson's interval as if the points
were a random sample (a Sobol' design covers the space more evenly, so the interval is too wide
rather than too narrow). The words for it are robust, conditional and fragile.

Which assumptions matter: extremely randomised trees (Geurts, Ernst and Wehenkel 2006) learn an
outcome from the positions of the assumptions. The importance of one is the loss of explained
variance on held-out points when its values are shuffled (Breiman 2001), averaged over the folds of
a cross-validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.design.config import load_sensitivity, load_study
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.design_point import (
    DEFAULT,
    JUDGED,
    ONE_AT_A_TIME,
    POINT_COLUMNS,
    SEED,
    SPACE_FILLING,
    varied,
)
from replication.explore.machine import write_json
from replication.metrics.statistic import wilson_interval
from replication.study.files import read_json
from replication.study.storage.table import (
    CLAIM_COLUMNS,
    Row,
    read_parquet,
    read_rows,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import Verdict

#: Tables of a study's folder.
TABLES: dict[str, tuple[str, ...]] = {
    "points": POINT_COLUMNS,
    "claims": (
        *("study", "claim", "engine", "verdict_tier", "verdict_default", "reduced_scale_differs"),
        *("seeds", "seeds_alike", "designs", "holds", "share", "low", "high"),
        *("word", "tested_alone", "flipped_by", "important", "r2"),
    ),
    "cells": (
        *("study", "table", "row", "column", "engine", "unit", "published"),
        *("designs", "lowest", "highest", "published_in_range"),
    ),
    "effects": ("study", "claim", "engine", "parameter", "method", "value", "before", "after"),
}
INPUT_HASHES = "input_hashes.json"
#: A claim is robust at or above the first share of designs, and fragile at or below the second.
#: With fewer than 35 designs Wilson's interval is too wide for either word, even if all agree.
ROBUST_AT_LEAST, FRAGILE_AT_MOST = 0.9, 0.1
ROBUST, CONDITIONAL, FRAGILE, TOO_FEW = "robust", "conditional", "fragile", "too few designs"
#: Fewest points, and fewest of either outcome, from which importance is learnt.
LEAST_POINTS, LEAST_OF_EACH = 16, 4
#: The regression, its permutations of each assumption, and the folds of its cross-validation.
TREES, REPEATS, FOLDS = 100, 5, 4
#: Least share of explained variance on held-out points for any parameter to be important. Random
#: outcomes at 64 points in 6 and 20 dimensions reached at most 0.07 (24 trials).
LEAST_R2 = 0.2
Numbers = npt.NDArray[np.float64]


def robustness_word(holds: int, designs: int) -> str:
    """Return robust, conditional, fragile, too few designs or not testable."""
    if not designs:
        return Verdict.NOT_TESTABLE
    if wilson_interval(designs, designs)[0] < ROBUST_AT_LEAST:
        return TOO_FEW
    if holds / designs >= ROBUST_AT_LEAST:
        return ROBUST
    return FRAGILE if holds / designs <= FRAGILE_AT_MOST else CONDITIONAL


def important(
    matrix: Numbers, outcome: Numbers, names: Sequence[str], seed: int
) -> tuple[list[str], float] | None:
    """Return the columns of `matrix` that decide `outcome`, most important first, and the R².

    `matrix` has a row a point and a column an assumption; points whose outcome is NaN are left out.
    R² is on held-out points; a column is important above twice its spread over the folds. None
    with too few points, or nearly always the same outcome.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import KFold

    known = np.isfinite(outcome)
    matrix, outcome = matrix[known], outcome[known]
    commonest = np.unique(outcome, return_counts=True)[1].max(initial=0)
    if len(outcome) < LEAST_POINTS or len(outcome) - commonest < LEAST_OF_EACH:
        return None
    how: Any = {"scoring": "neg_mean_squared_error", "n_repeats": REPEATS, "random_state": seed}
    drops, errors = [], 0.0
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(matrix):
        trees = ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=seed)
        trees.fit(matrix[train], outcome[train])
        errors += float(((outcome[test] - trees.predict(matrix[test])) ** 2).sum())
        drop = permutation_importance(trees, matrix[test], outcome[test], **how)
        drops.append(drop.importances_mean)
    variance = float(outcome.var())
    r2 = 1.0 - errors / (variance * len(outcome))
    shares = np.array(drops) / variance
    spread = shares.std(axis=0, ddof=1) / np.sqrt(len(drops))
    ranked = sorted(zip(-shares.mean(axis=0), names, 2 * spread, strict=True))
    return [name for low, name, twice in ranked if r2 >= LEAST_R2 and -low > max(twice, 0.01)], r2


def measure_study(
    root: Path, name: str, folder: Path, data: Path, ns3_version: str = NS3_VERSION
) -> None:
    """Write the tables of one study (`TABLES`) to `folder`, and the hashes of their inputs.

    `data` holds the verdicts of the tier in the report, if one was run: they are compared with
    those at the reduced scale. `ns3_version` is that of the runs.
    """
    points = pd.DataFrame(robustness_table(folder, "points"))
    points["values"] = points["values"].map(json.loads)
    engine = str(points["engine"].iloc[0])
    claims, cells = (read_parquet(folder / f"{part}.parquet").to_pandas() for part in JUDGED)
    verdicts = verdicts_by_claim(points, claims)
    path = data / "claims.csv"
    in_tier = {
        row["claim"]: row["verdict"]
        for row in (read_rows(path, CLAIM_COLUMNS) if path.is_file() else [])
        if (row["study"], row["engine"]) == (name, engine)
    }
    found = dict(_important(root, load_study(root, name), verdicts))
    rows = {
        "claims": claim_rows(verdicts, in_tier, found),
        "cells": cell_rows(cells),
        "effects": effect_rows(verdicts),
    }
    for part, table in rows.items():
        rows_with_study = ({"study": name, "engine": engine} | row for row in table)
        write_table(folder / f"{part}.csv", rows_with_study, TABLES[part])
    write_json(folder / INPUT_HASHES, sources(root, name, chosen_engine(engine, ns3_version)))


def _important(
    root: Path, study: Study, verdicts: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[str, tuple[list[str], float]]]:
    """Yield the important assumptions of each claim; none for claims that hardly ever flip."""
    settings = load_sensitivity(root)
    axes = varied(study, settings)
    for claim, table in verdicts.items():
        filling = table[table["kind"] == SPACE_FILLING]
        rows = [[a.position(values[a.key]) for a in axes] for values in filling["values"]]
        matrix = np.array(rows, dtype=float).reshape(len(rows), len(axes))
        outcome = (filling["verdict"] == Verdict.REPRODUCED).astype(float)
        known = np.asarray(outcome.where(_is_decided(filling)), dtype=float)
        if found := important(matrix, known, [axis.key for axis in axes], settings.seed):
            yield claim, found


def verdicts_by_claim(points: pd.DataFrame, claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the verdicts on each claim, a row a design point; empty where it was not run."""
    return {
        str(claim): points.merge(verdicts[["point", "verdict"]], how="left").fillna({"verdict": ""})
        for claim, verdicts in claims.groupby("claim", sort=False)
    }


def _is_decided(table: pd.DataFrame) -> pd.Series[bool]:
    return ~table["verdict"].isin(["", Verdict.NOT_TESTABLE])


def claim_rows(
    verdicts: Mapping[str, pd.DataFrame],
    in_tier: Mapping[str, str],
    found: Mapping[str, tuple[list[str], float]],
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim, from verdicts in the report's tier and results of `important`."""
    for claim, table in verdicts.items():
        default, tier = _default(table) or str(Verdict.NOT_TESTABLE), in_tier.get(claim, "")
        seeds = table.loc[table["kind"].isin([DEFAULT, SEED]) & (table["verdict"] != ""), "verdict"]
        decided = table[_is_decided(table)]
        filled = decided.loc[decided["kind"] == SPACE_FILLING, "verdict"]
        holds, designs = int((filled == Verdict.REPRODUCED).sum()), len(filled)
        low, high = wilson_interval(holds, designs) if designs else (math.nan, math.nan)
        alone = decided[decided["kind"] == ONE_AT_A_TIME]
        flips = (alone["verdict"] == Verdict.REPRODUCED) != (default == Verdict.REPRODUCED)
        flipped = alone[flips & (default != Verdict.NOT_TESTABLE)]
        names, r2 = found.get(claim, ([], math.nan))
        yield {
            "claim": claim,
            "verdict_tier": tier,
            "verdict_default": default,
            "reduced_scale_differs": bool(tier) and tier != default,
            "seeds": len(seeds),
            "seeds_alike": int((seeds == default).sum()),
            "designs": designs,
            "holds": holds,
            "share": holds / designs if designs else math.nan,
            "low": low,
            "high": high,
            "word": robustness_word(holds, designs),
            "tested_alone": len(alone),
            "flipped_by": "; ".join(
                f"{key} = {value if isinstance(value := values[key], str) else json.dumps(value)}"
                for key, values in zip(flipped["changed"], flipped["values"], strict=True)
            ),
            "important": "; ".join(names),
            "r2": r2,
        }


def _default(table: pd.DataFrame) -> str:
    return str(table.loc[table["kind"] == DEFAULT, "verdict"].iloc[0])


def cell_rows(cells: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the range of our value for each published number over all designs."""
    groups = cells.groupby(["table", "row", "column", "unit", "published"], sort=False)["value"]
    rows = groups.agg(designs="count", lowest="min", highest="max").reset_index()
    within = rows["published"].between(rows["lowest"], rows["highest"]).astype(object)
    rows["published_in_range"] = within.where(rows["designs"] > 0, None)
    return rows.to_dict("records")


def effect_rows(verdicts: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, object]]:
    """Yield the verdict on each claim before and after each change of one assumption."""
    for claim, table in verdicts.items():
        for one in table[table["kind"] == ONE_AT_A_TIME].to_dict("records"):
            yield {
                "claim": claim,
                "parameter": one["changed"],
                "method": ONE_AT_A_TIME,
                "value": json.dumps(one["values"][one["changed"]]),
                "before": _default(table),
                "after": one["verdict"],
            }


def robustness_table(folder: Path, part: str) -> list[Row]:
    """Read one of `TABLES`; InputError names it if it is missing or of another version."""
    return read_rows(folder / f"{part}.csv", TABLES[part])


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a study's robustness."""
    settings = load_sensitivity(root)
    common = settings.decisive(exclude={"explanation", "studies", "other_studies"})
    study_settings = settings.of(name).decisive()
    return input_hashes(root, name, engine, settings=[common, study_settings])


def read_input_hashes(folder: Path) -> Mapping[str, str]:
    """Return the hashes of the inputs of the tables in `folder`; empty where they are unknown."""
    path = folder / INPUT_HASHES
    found: dict[str, str] = read_json(path) if path.is_file() else {}
    return found


def is_current(root: Path, data: Path, name: str) -> bool:
    """Return whether no input of a study's tables in the folder of results has changed."""
    then = read_input_hashes(data / "sensitivity" / name)
    return is_same(data, then, lambda engine: sources(root, name, engine))
