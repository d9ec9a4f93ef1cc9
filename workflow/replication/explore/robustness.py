"""Robustness: in how many of the plausible designs a claim holds, and the range a cell reaches.

A claim *holds* at a design point where its verdict there is `reproduced`. Of the space-filling
points at which it can be tested it holds in a share, given with Wilson's interval as if the points
were a random sample (a Sobol' design covers the space more evenly, so the interval is wide rather
than narrow). The words: robust, conditional, fragile.

Which assumptions matter: extremely randomised trees (Geurts, Ernst and Wehenkel 2006) learn an
outcome from the positions of the assumptions. The importance of one is how much the explained
variance on points that the trees have not seen falls when its values are shuffled among them
(Breiman 2001), averaged over the folds of a cross-validation.
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
#: Below this share of explained variance on points that the trees have not seen no parameter is
#: important. Coin tosses over 64 points in 6 and 20 dimensions reached 0.07 at most (24 trials).
LEAST_R2 = 0.2
Numbers = npt.NDArray[np.float64]

ROBUST = "robust"
CONDITIONAL = "conditional"
FRAGILE = "fragile"
TOO_FEW = "too few designs"


@dataclass(frozen=True)
class Share:
    """How many of some designs hold, with Wilson's 95 % interval; NaN where there is none."""

    holds: int
    designs: int

    @property
    def share(self) -> float:
        """Return the share."""
        return self.holds / self.designs if self.designs else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval."""
        return wilson_interval(self.holds, self.designs) if self.designs else (math.nan, math.nan)

    @property
    def word(self) -> str:
        """Return robust, conditional, fragile, too few designs or not testable."""
        if not self.designs:
            return Verdict.NOT_TESTABLE
        unanimous = (
            wilson_interval(self.designs, self.designs)[0] >= ROBUST_AT_LEAST
            and wilson_interval(0, self.designs)[1] <= FRAGILE_AT_MOST
        )
        if not unanimous:
            return TOO_FEW
        if self.share >= ROBUST_AT_LEAST:
            return ROBUST
        return FRAGILE if self.share <= FRAGILE_AT_MOST else CONDITIONAL


@dataclass(frozen=True)
class Importances:
    """Explained variance on unseen points, and each assumption's importance with its spread."""

    r2: float
    mean: dict[str, float]
    deviation: dict[str, float]

    @property
    def important(self) -> list[str]:
        """Return the assumptions above twice their spread, the most important first."""
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
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(matrix):
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
    """The verdicts of a study at its design points, and the points themselves."""

    def __init__(self, design: Design, claims: pd.DataFrame, cells: pd.DataFrame) -> None:
        self.design = design
        kinds = {point.id: point.kind for point in design.points}
        self.claims = claims.assign(kind=claims["point"].map(kinds))
        self.cells = cells.assign(kind=cells["point"].map(kinds))

    @property
    def names(self) -> list[str]:
        """The claims."""
        return list(dict.fromkeys(self.claims["claim"]))

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
            for value in [point.values[point.changed]]
            if point.id in after
            and (default == Verdict.REPRODUCED) != (after[point.id] == Verdict.REPRODUCED)
        ]

    def share(self, claim: str) -> Share:
        """Return in how many space-filling designs a claim holds, of those that can test it."""
        verdicts = list(self.testable(claim, SPACE_FILLING).values())
        return Share(verdicts.count(Verdict.REPRODUCED), len(verdicts))


def claim_rows(
    verdicts: Verdicts, tier: Mapping[str, str], found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim.

    `tier` has the verdicts of the tier that the report shows, by claim, if one was run; `found`
    what decides a claim.
    """
    for claim in verdicts.names:
        default, share = verdicts.default(claim), verdicts.share(claim)
        seeds = list(verdicts.claim(claim, DEFAULT, SEED).values())
        right = sum(
            verdict in (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY)
            for verdict in verdicts.testable(claim, SPACE_FILLING).values()
        )
        importance = found.get(claim)
        yield {
            "study": verdicts.design.study,
            "claim": claim,
            "engine": verdicts.design.engine,
            "verdict_tier": tier.get(claim, ""),
            "verdict_default": default,
            "reduced_scale_differs": claim in tier and tier[claim] != default,
            "seeds": len(seeds),
            "seeds_alike": seeds.count(default),
            "designs": share.designs,
            "holds": share.holds,
            "share": share.share,
            "low": share.interval[0],
            "high": share.interval[1],
            "share_direction": right / share.designs if share.designs else math.nan,
            "word": share.word,
            "tested_alone": len(verdicts.testable(claim, ONE_AT_A_TIME)),
            "flipped_by": "; ".join(verdicts.flips(claim)),
            "important": "; ".join(importance.important if importance else ()),
            "r2": importance.r2 if importance else math.nan,
        }


def cell_rows(
    verdicts: Verdicts, tier: Mapping[tuple[str, str, str], str]
) -> Iterator[dict[str, object]]:
    """Yield a row for each published number under the study's own reading.

    The range is over all designs: the defaults, one at a time and space filling.
    """
    cells = verdicts.cells[verdicts.cells["kind"].notna()]
    for key, group in cells.groupby(["table", "row", "column"], sort=False):
        found = group[group["value"].notna() & (group["verdict"] != Verdict.NOT_TESTABLE)]
        seeds = found.loc[found["kind"].isin((DEFAULT, SEED)), "value"]
        first = found[found["kind"] == DEFAULT]
        filled = found.loc[found["kind"] == SPACE_FILLING, "inside"]
        published = float(group["published"].iloc[0])
        low, high = found["value"].min(), found["value"].max()
        table, row, column = (str(part) for part in key)
        yield {
            "study": verdicts.design.study,
            "table": table,
            "row": row,
            "column": column,
            "engine": verdicts.design.engine,
            "unit": group["unit"].iloc[0],
            "published": published,
            "verdict_tier": tier.get((table, row, column), ""),
            "default": float(first["value"].iloc[0]) if len(first) else math.nan,
            "inside_default": bool(first["inside"].iloc[0]) if len(first) else None,
            "seed_low": float(seeds.min()),
            "seed_high": float(seeds.max()),
            "designs": len(found),
            "lowest": float(low),
            "highest": float(high),
            "published_in_range": bool(low <= published <= high) if len(found) else None,
            "share_inside": float(filled.astype(bool).mean()) if len(filled) else math.nan,
        }


def effect_rows(
    verdicts: Verdicts, found: Mapping[str, Importances]
) -> Iterator[dict[str, object]]:
    """Yield the effect of each assumption on each claim: one at a time, and by permutation."""
    design = verdicts.design
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
            deviation = found[claim].deviation[name]
            yield shared | {
                "parameter": name,
                "method": "permutation",
                "value": "",
                "before": "",
                "after": "",
                "importance": mean,
                "deviation": deviation,
            }


# --- what is said of a claim: fixed words, and the numbers of its row ---


def claim_sentence(row: Row, claim: Claim, scale: Scale) -> str:
    """Return what the designs say of a claim: what makes it hold or fail, or why nothing does."""
    if row["designs"] == "0" and row["tested_alone"] == "0":
        return _undecided(claim, scale)
    sentences = []
    if row["designs"] != "0":
        sentences.append(
            f"Holds in {row['holds']} of {row['designs']} designs ({_percent(row['share'])}, "
            f"interval {_percent(row['low'])} to {_percent(row['high'])})."
        )
    if row["word"] == TOO_FEW:
        sentences.append("So few designs decide it that none of the words is given.")
    if row["reduced_scale_differs"] == "true":
        sentences.append(_scale_differs(row, scale))
    sentences.append(_alone(row))
    if row["seeds_alike"] != row["seeds"]:
        sentences.append(
            f"Chance alone moves it: {row['seeds_alike']} of {row['seeds']} seeds agree with the "
            "first."
        )
    if row["important"]:
        sentences.append(
            f"What decides over all designs: {row['important']} (R² {float(row['r2']):.2f})."
        )
    return " ".join(sentences)


def _scale_differs(row: Row, scale: Scale) -> str:
    """Say how the verdict changes with length, levels and replicates, all else being equal."""
    if row["verdict_default"] == Verdict.REPRODUCED:
        return (
            f"Made to hold by the scale alone: {row['verdict_tier']} in full, reproduced with the "
            f"same settings in the design's runs. How these differ: {scale.reason.strip()}"
        )
    return (
        f"Reduced scale differs: {row['verdict_default']} there with the defaults, "
        f"{row['verdict_tier']} in full."
    )


def _alone(row: Row) -> str:
    """Return which single changes flip a claim, or how many were tested and rejected."""
    holds = row["verdict_default"] == Verdict.REPRODUCED
    if row["flipped_by"]:
        return f"{'Fails' if holds else 'Made to hold'} by one change alone: {row['flipped_by']}."
    if holds:
        return f"None of {row['tested_alone']} single changes makes it fail."
    return (
        f"Tested and rejected: none of {row['tested_alone']} single changes, listed below, makes "
        "it hold."
    )


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


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f} %"
