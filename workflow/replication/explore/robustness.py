"""Robustness: in how many of the plausible designs a claim holds, and the range a cell reaches.

A claim *holds* at a design point where its verdict there is `reproduced`. Of the space-filling
points at which it can be tested it holds in a share, given with Wilson's interval as if the points
were a random sample (a Sobol' design covers the space more evenly, so the interval is wide rather
than narrow). The words: robust, conditional, fragile.

Which assumptions matter: extremely randomised trees (Geurts, Ernst and Wehenkel 2006) learn an
outcome from the positions of the assumptions. The importance of one is how much the explained
variance on held-out points falls when its values are shuffled among them (Breiman 2001), averaged
over the folds of a cross-validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.design.config import Scale, load_sensitivity, load_study
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
from replication.metrics.statistic import wilson_interval
from replication.study.claim_model import Claim, NotTestable
from replication.study.files import read_json, write_text
from replication.study.scenario import canonical_json
from replication.study.storage.table import (
    CELL_COLUMNS,
    CLAIM_COLUMNS,
    Row,
    read_parquet,
    read_rows,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import Verdict

#: Tables of a study's folder, which are merged under the same names.
TABLES: dict[str, tuple[str, ...]] = {
    "points": POINT_COLUMNS,
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
#: Shares of designs from which on a claim is robust, and up to which it is fragile. With fewer
#: designs than unanimity needs for Wilson's interval to lie beyond them (35) no word is given.
ROBUST_AT_LEAST, FRAGILE_AT_MOST = 0.9, 0.1
#: Fewer points, or fewer of either outcome, teach nothing.
LEAST_POINTS = 16
LEAST_OF_EACH = 4
#: The regression, its permutations of each assumption, and the folds of its cross-validation.
TREES, REPEATS, FOLDS = 100, 5, 4
#: Below this share of explained variance on held-out points no parameter is important. Coin tosses
#: over 64 points in 6 and 20 dimensions reached 0.07 at most (24 trials).
LEAST_R2 = 0.2
Numbers = npt.NDArray[np.float64]

ROBUST = "robust"
CONDITIONAL = "conditional"
FRAGILE = "fragile"
TOO_FEW = "too few designs"


def robustness_word(holds: int, designs: int) -> str:
    """Return robust, conditional, fragile, too few designs or not testable."""
    if not designs:
        return Verdict.NOT_TESTABLE
    if wilson_interval(designs, designs)[0] < ROBUST_AT_LEAST:
        return TOO_FEW
    if holds / designs >= ROBUST_AT_LEAST:
        return ROBUST
    return FRAGILE if holds / designs <= FRAGILE_AT_MOST else CONDITIONAL


@dataclass(frozen=True)
class Importances:
    """Explained variance on held-out points, and each assumption's importance with its spread."""

    r2: float
    mean: dict[str, float]
    deviation: dict[str, float]

    @property
    def important(self) -> list[str]:
        """The assumptions above twice their spread, the most important first."""
        if not self.r2 >= LEAST_R2:
            return []
        ranked = sorted(self.mean, key=lambda key: (-self.mean[key], key))
        return [k for k in ranked if self.mean[k] > max(2 * self.deviation[k], 0.01)]


def importances(
    matrix: Numbers, outcome: Numbers, names: Sequence[str], seed: int
) -> Importances | None:
    """Return the importances of the columns of `matrix` for `outcome`.

    `matrix` has a row a point and a column an assumption; points whose outcome is NaN are left out.
    None where there is too little to learn from: few points, or nearly always one outcome.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import KFold

    known = np.isfinite(outcome)
    matrix, outcome = matrix[known], outcome[known]
    commonest = np.unique(outcome, return_counts=True)[1].max(initial=0)
    if len(outcome) < LEAST_POINTS or len(outcome) - commonest < LEAST_OF_EACH:
        return None
    drops, errors = [], 0.0
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(matrix):
        trees = ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=seed)
        trees.fit(matrix[train], outcome[train])
        errors += float(((outcome[test] - trees.predict(matrix[test])) ** 2).sum())
        drop = permutation_importance(
            trees,
            matrix[test],
            outcome[test],
            scoring="neg_mean_squared_error",
            n_repeats=REPEATS,
            random_state=seed,
        )
        drops.append(drop.importances_mean)
    variance = float(outcome.var())
    shares = np.array(drops) / variance
    spread = shares.std(axis=0, ddof=1) / np.sqrt(len(drops))
    return Importances(
        r2=1.0 - errors / (variance * len(outcome)),
        mean=dict(zip(names, shares.mean(axis=0).tolist(), strict=True)),
        deviation=dict(zip(names, spread.tolist(), strict=True)),
    )


def measure_study(
    root: Path, name: str, folder: Path, data: Path, ns3_version: str = NS3_VERSION
) -> None:
    """Write the tables of one study (`TABLES`) to `folder`, and what they were made from.

    `data` holds the verdicts of the tier that the report shows, if one was run, to be compared
    with those at the reduced scale; `ns3_version` is that of the runs.
    """
    points = pd.DataFrame(robustness_table(folder, "points"))
    points["values"] = points["values"].map(json.loads)
    engine = str(points["engine"].iloc[0])
    judged = {part: read_parquet(folder / f"{part}.parquet").to_pandas() for part in JUDGED}
    verdicts = verdicts_by_claim(points, judged["claims"])
    found = dict(_importances(root, load_study(root, name), points, verdicts))
    in_tier: dict[tuple[str, ...], str] = {}
    for file, columns, item in (
        ("claims.csv", CLAIM_COLUMNS, ("claim",)),
        ("cells.csv", CELL_COLUMNS, ("table", "row", "column")),
    ):
        for row in read_rows(data / file, columns) if (data / file).is_file() else []:
            if (row["study"], row["engine"]) == (name, engine):
                in_tier[tuple(row[column] for column in item)] = row["verdict"]
    rows = {
        "claims": claim_rows(verdicts, in_tier, found),
        "cells": cell_rows(points, judged["cells"], in_tier),
        "effects": effect_rows(verdicts, found),
    }
    for part, table in rows.items():
        own = ({"study": name, "engine": engine} | row for row in table)
        write_table(folder / f"{part}.csv", own, TABLES[part])
    hashes = made_from(root, name, chosen_engine(engine, ns3_version))
    write_text(folder / MADE_FROM, canonical_json(hashes) + "\n")


def _importances(
    root: Path, study: Study, points: pd.DataFrame, verdicts: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[str, Importances]]:
    """Yield what makes each claim hold or not; claims that hardly ever flip have none."""
    settings = load_sensitivity(root)
    axes = varied(study, settings)
    filling = points.loc[points["kind"] == SPACE_FILLING, "values"]
    rows = [[axis.position(values[axis.key]) for axis in axes] for values in filling]
    matrix = np.array(rows, dtype=float).reshape(len(rows), len(axes))
    for claim, table in verdicts.items():
        verdict = table.loc[table["kind"] == SPACE_FILLING, "verdict"]
        undecided = verdict.isin(["", Verdict.NOT_TESTABLE])
        outcome = (verdict == Verdict.REPRODUCED).astype(float).mask(undecided)
        known = np.array(outcome, dtype=float)
        found = importances(matrix, known, [axis.key for axis in axes], settings.seed)
        if found is not None:
            yield claim, found


def verdicts_by_claim(points: pd.DataFrame, claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the verdicts on each claim, a row a design point; empty where it was not run."""
    return {
        str(claim): points.merge(own[["point", "verdict"]], how="left").fillna({"verdict": ""})
        for claim, own in claims.groupby("claim", sort=False)
    }


def claim_rows(
    verdicts: Mapping[str, pd.DataFrame],
    tier: Mapping[tuple[str, ...], str],
    found: Mapping[str, Importances],
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim.

    `tier` has the verdicts of the tier that the report shows, if one was run; `found` what decides
    a claim.
    """
    for claim, table in verdicts.items():
        verdict, kind = table["verdict"], table["kind"]
        decided = ~verdict.isin(["", Verdict.NOT_TESTABLE])
        default, importance = _default(table) or str(Verdict.NOT_TESTABLE), found.get(claim)
        seeds = verdict[kind.isin([DEFAULT, SEED]) & (verdict != "")]
        filled = verdict[decided & (kind == SPACE_FILLING)]
        holds, designs = int((filled == Verdict.REPRODUCED).sum()), len(filled)
        right = holds + int((filled == Verdict.DIRECTION_ONLY).sum())
        low, high = wilson_interval(holds, designs) if designs else (math.nan, math.nan)
        alone = table[decided & (kind == ONE_AT_A_TIME)]
        flips = (alone["verdict"] == Verdict.REPRODUCED) != (default == Verdict.REPRODUCED)
        flipped = alone[flips & (default != Verdict.NOT_TESTABLE)]
        in_tier = tier.get((claim,), "")
        yield {
            "claim": claim,
            "verdict_tier": in_tier,
            "verdict_default": default,
            "reduced_scale_differs": bool(in_tier) and in_tier != default,
            "seeds": len(seeds),
            "seeds_alike": int((seeds == default).sum()),
            "designs": designs,
            "holds": holds,
            "share": holds / designs if designs else math.nan,
            "low": low,
            "high": high,
            "share_direction": right / designs if designs else math.nan,
            "word": robustness_word(holds, designs),
            "tested_alone": len(alone),
            "flipped_by": "; ".join(
                f"{key} = {value if isinstance(value := values[key], str) else json.dumps(value)}"
                for key, values in zip(flipped["changed"], flipped["values"], strict=True)
            ),
            "important": "; ".join(importance.important if importance else ()),
            "r2": importance.r2 if importance else math.nan,
        }


def _default(table: pd.DataFrame) -> str:
    return str(table.loc[table["kind"] == DEFAULT, "verdict"].iloc[0])


def cell_rows(
    points: pd.DataFrame, cells: pd.DataFrame, tier: Mapping[tuple[str, ...], str]
) -> Iterator[dict[str, object]]:
    """Yield a row for each published number under the study's own reading.

    The range is over all designs: the defaults, one at a time and space filling.
    """
    cells = cells.merge(points[["point", "kind"]])
    for key, group in cells.groupby(["table", "row", "column"], sort=False):
        table, row, column = (str(part) for part in key)
        found = group[group["value"].notna() & (group["verdict"] != Verdict.NOT_TESTABLE)]
        seeds = found.loc[found["kind"].isin((DEFAULT, SEED)), "value"]
        default = found[found["kind"] == DEFAULT].to_dict("records")
        filled = found.loc[found["kind"] == SPACE_FILLING, "inside"]
        published = float(group["published"].iloc[0])
        low, high = float(found["value"].min()), float(found["value"].max())
        yield {
            "table": table,
            "row": row,
            "column": column,
            "unit": group["unit"].iloc[0],
            "published": published,
            "verdict_tier": tier.get((table, row, column), ""),
            "default": default[0]["value"] if default else math.nan,
            "inside_default": bool(default[0]["inside"]) if default else None,
            "seed_low": float(seeds.min()),
            "seed_high": float(seeds.max()),
            "designs": len(found),
            "lowest": low,
            "highest": high,
            "published_in_range": low <= published <= high if len(found) else None,
            "share_inside": float(filled.astype(bool).mean()) if len(filled) else math.nan,
        }


def effect_rows(
    verdicts: Mapping[str, pd.DataFrame], found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield the effect of each assumption on each claim: one at a time, and by permutation."""
    columns = ("parameter", "method", "value", "before", "after", "importance", "deviation")
    for claim, table in verdicts.items():
        alone = table.loc[table["kind"] == ONE_AT_A_TIME, ["changed", "values", "verdict"]]
        rows: list[tuple[object, ...]] = [
            (key, ONE_AT_A_TIME, json.dumps(values[key]), _default(table), after, None, None)
            for key, values, after in alone.itertuples(index=False)
        ]
        if claim in found:
            deviation = found[claim].deviation
            for name, mean in found[claim].mean.items():
                rows.append((name, "permutation", "", "", "", mean, deviation[name]))
        yield from ({"claim": claim, **dict(zip(columns, row, strict=True))} for row in rows)


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


def claim_sentence(row: Row, claim: Claim, scale: Scale) -> str:
    """Return what the designs say of a claim: what makes it hold or fail, or why nothing does."""
    if row["designs"] == "0" and row["tested_alone"] == "0":
        return _undecided(claim, scale)
    holds = row["verdict_default"] == Verdict.REPRODUCED
    sentences = []
    if row["designs"] != "0":
        share, low, high = (f"{100 * float(row[name]):.0f} %" for name in ("share", "low", "high"))
        of = f"{row['holds']} of {row['designs']}"
        sentences.append(f"Holds in {of} designs ({share}, interval {low} to {high}).")
    if row["word"] == TOO_FEW:
        sentences.append("These are too few designs for one of the words.")
    if row["reduced_scale_differs"] == "true":
        sentences.append(
            f"The reduced scale alone changes its verdict from {row['verdict_tier']} to "
            f"{row['verdict_default']}. {scale.reason.strip() if holds else ''}".strip()
        )
    if row["flipped_by"]:
        flipped = "Fails" if holds else "Made to hold"
        sentences.append(f"{flipped} by one change alone: {row['flipped_by'].replace('_', ' ')}.")
    else:
        changed = "fail" if holds else "hold"
        sentences.append(f"None of the {row['tested_alone']} single changes makes it {changed}.")
    if row["seeds_alike"] != row["seeds"]:
        alike = f"{row['seeds_alike']} of {row['seeds']} seeds agree with the first."
        sentences.append(f"Chance alone moves it: {alike}")
    if row["important"]:
        r2 = f"R² {float(row['r2']):.2f}"
        sentences.append(
            f"What decides over all designs: {row['important'].replace('_', ' ')} ({r2})."
        )
    return " ".join(sentences)


def _undecided(claim: Claim, scale: Scale) -> str:
    if isinstance(claim.test, NotTestable):
        return f"Not testable at any scale: {claim.test.reason}"
    needed = {wanted.experiment for wanted in claim.quantities()}
    absent = sorted(needed - set(scale.experiments or needed))
    if absent:
        return (
            f"Not explored: experiment {', '.join(absent)}, which it needs, costs too much at "
            "every design point and was left out. Nothing is known of its robustness."
        )
    return "Not testable at the reduced scale: no design runs the levels or the time that it needs."
