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

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.explore.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    SEED,
    SPACE_FILLING,
    Design,
)
from replication.metrics.statistic import wilson_interval
from replication.study.claim_model import Claim, NotTestable
from replication.study.sensitivity_settings import Scale
from replication.study.storage.table import Row
from replication.study.variation import Assumption
from replication.study.verdict import Verdict

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


def design_matrix(design: Design, axes: Sequence[Assumption]) -> tuple[list[str], Numbers]:
    """Return the space-filling points and the positions of the assumptions there."""
    points = design.of(SPACE_FILLING)
    rows = [[axis.position(point.values[axis.key]) for axis in axes] for point in points]
    return [p.id for p in points], np.array(rows, dtype=float).reshape(len(points), len(axes))


def importances(
    matrix: Numbers, outcome: Numbers, names: Sequence[str], seed: int
) -> Importances | None:
    """Return the importances of the columns of `matrix` for `outcome`.

    Parameters
    ----------
    matrix, names
        A row a point, a column an assumption, and the columns' names.
    outcome
        A number for each point; NaN are left out.
    seed
        Of the regression and its permutations.

    Returns
    -------
    Importances or None
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


class Verdicts:
    """The verdicts on a study's claims at its design points, and the points themselves."""

    def __init__(self, design: Design, claims: pd.DataFrame) -> None:
        self.design = design
        self.claims = claims.assign(kind=claims["point"].map(design.kinds))
        self.names: list[str] = list(dict.fromkeys(claims["claim"]))

    def claim(self, claim: str, *kinds: str) -> dict[str, str]:
        """Return the verdicts on a claim at the points of some kinds, by point."""
        rows = self.claims[(self.claims["claim"] == claim) & self.claims["kind"].isin(kinds)]
        return dict(zip(rows["point"], rows["verdict"], strict=True))

    def default(self, claim: str) -> str:
        """Return the verdict on a claim at the defaults."""
        return self.claim(claim, DEFAULT).get(DEFAULT, Verdict.NOT_TESTABLE)

    def testable(self, claim: str, kind: str) -> dict[str, str]:
        """Return the verdicts on a claim at the points of a kind that can test it."""
        found = self.claim(claim, kind)
        return {p: verdict for p, verdict in found.items() if verdict != Verdict.NOT_TESTABLE}

    def flips(self, claim: str) -> list[str]:
        """Return the single changes that flip a claim between holding and not holding."""
        default, after = self.default(claim), self.testable(claim, ONE_AT_A_TIME)
        if default == Verdict.NOT_TESTABLE:
            return []
        return [
            f"{point.changed} = {value if isinstance(value, str) else json.dumps(value)}"
            for point in self.design.of(ONE_AT_A_TIME)
            for value in point.values.values()
            if point.id in after
            and (default == Verdict.REPRODUCED) != (after[point.id] == Verdict.REPRODUCED)
        ]


def claim_rows(
    verdicts: Verdicts, tier: Mapping[str, str], found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim.

    `tier` has the verdicts of the tier that the report shows, by claim, if one was run; `found`
    what decides a claim.
    """
    for claim in verdicts.names:
        default, importance = verdicts.default(claim), found.get(claim)
        seeds = list(verdicts.claim(claim, DEFAULT, SEED).values())
        filled = list(verdicts.testable(claim, SPACE_FILLING).values())
        holds, designs = filled.count(Verdict.REPRODUCED), len(filled)
        right = holds + filled.count(Verdict.DIRECTION_ONLY)
        low, high = wilson_interval(holds, designs) if designs else (math.nan, math.nan)
        yield {
            "study": verdicts.design.study,
            "claim": claim,
            "engine": verdicts.design.engine,
            "verdict_tier": tier.get(claim, ""),
            "verdict_default": default,
            "reduced_scale_differs": claim in tier and tier[claim] != default,
            "seeds": len(seeds),
            "seeds_alike": seeds.count(default),
            "designs": designs,
            "holds": holds,
            "share": holds / designs if designs else math.nan,
            "low": low,
            "high": high,
            "share_direction": right / designs if designs else math.nan,
            "word": robustness_word(holds, designs),
            "tested_alone": len(verdicts.testable(claim, ONE_AT_A_TIME)),
            "flipped_by": "; ".join(verdicts.flips(claim)),
            "important": "; ".join(importance.important if importance else ()),
            "r2": importance.r2 if importance else math.nan,
        }


def cell_rows(
    design: Design, cells: pd.DataFrame, tier: Mapping[tuple[str, str, str], str]
) -> Iterator[dict[str, object]]:
    """Yield a row for each published number under the study's own reading.

    The range is over all designs: the defaults, one at a time and space filling.
    """
    cells = cells.assign(kind=cells["point"].map(design.kinds))
    for key, group in cells.groupby(["table", "row", "column"], sort=False):
        table, row, column = (str(part) for part in key)
        found = group[group["value"].notna() & (group["verdict"] != Verdict.NOT_TESTABLE)]
        seeds = found.loc[found["kind"].isin((DEFAULT, SEED)), "value"]
        default = found[found["kind"] == DEFAULT].to_dict("records")
        filled = found.loc[found["kind"] == SPACE_FILLING, "inside"]
        published = float(group["published"].iloc[0])
        low, high = float(found["value"].min()), float(found["value"].max())
        yield {
            "study": design.study,
            "table": table,
            "row": row,
            "column": column,
            "engine": design.engine,
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
    verdicts: Verdicts, found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield the effect of each assumption on each claim: one at a time, and by permutation."""
    design = verdicts.design
    no_verdicts = {"value": "", "before": "", "after": ""}
    for claim in verdicts.names:
        shared = {"study": design.study, "claim": claim, "engine": design.engine}
        before = verdicts.claim(claim, DEFAULT).get(DEFAULT, "")
        after = verdicts.claim(claim, ONE_AT_A_TIME)
        for point in design.of(ONE_AT_A_TIME):
            yield shared | {
                "parameter": point.changed,
                "method": ONE_AT_A_TIME,
                "value": json.dumps(point.values[point.changed]),
                "before": before,
                "after": after.get(point.id, ""),
                "importance": None,
                "deviation": None,
            }
        for name, mean in found[claim].mean.items() if claim in found else ():
            own = {"parameter": name, "method": "permutation", **no_verdicts, "importance": mean}
            yield shared | own | {"deviation": found[claim].deviation[name]}


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
        sentences.append(f"{flipped} by one change alone: {row['flipped_by']}.")
    else:
        changed = "fail" if holds else "hold"
        sentences.append(f"None of the {row['tested_alone']} single changes makes it {changed}.")
    if row["seeds_alike"] != row["seeds"]:
        alike = f"{row['seeds_alike']} of {row['seeds']} seeds agree with the first."
        sentences.append(f"Chance alone moves it: {alike}")
    if row["important"]:
        r2 = f"R² {float(row['r2']):.2f}"
        sentences.append(f"What decides over all designs: {row['important']} ({r2}).")
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
