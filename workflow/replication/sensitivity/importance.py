"""Which assumptions matter: permutation importance of a regression over the space-filling points.

Extremely randomised trees (Geurts, Ernst and Wehenkel 2006) learn an outcome from the positions of
the assumptions. The importance of one is how much the explained variance on points that the trees
have not seen falls when its values are shuffled among them (Breiman 2001), averaged over the folds
of a cross-validation. Where they explain nothing of unseen points, nothing is called important.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replication.sensitivity.design_point import SPACE_FILLING, Design
from replication.study.sensitivity_settings import Importance
from replication.study.variation import Assumption

#: Fewer points, or fewer of either outcome, teach nothing.
LEAST_POINTS = 16
LEAST_OF_EACH = 4
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Importances:
    """Explained variance on unseen points, and each assumption's importance with its spread."""

    r2: float
    mean: dict[str, float]
    deviation: dict[str, float]

    def important(self, settings: Importance) -> list[str]:
        """Return the assumptions above twice their spread, the most important first."""
        if not self.r2 >= settings.least_r2:
            return []
        ranked = sorted(self.mean, key=lambda key: (-self.mean[key], key))
        return [k for k in ranked if self.mean[k] > max(2 * self.deviation[k], 0.01)]


def design_matrix(design: Design, axes: Sequence[Assumption]) -> tuple[list[str], Numbers]:
    """Return the space-filling points and the positions of the assumptions there."""
    points = design.of(SPACE_FILLING)
    rows = [[axis.position(point.values[axis.key]) for axis in axes] for point in points]
    return [p.id for p in points], np.array(rows, dtype=float).reshape(len(points), len(axes))


def importances(
    matrix: Numbers, outcome: Numbers, names: Sequence[str], settings: Importance, seed: int
) -> Importances | None:
    """Return the importances of the columns of `matrix` for `outcome`.

    Parameters
    ----------
    matrix, names
        A row a point, a column an assumption, and the columns' names.
    outcome
        A number for each point; NaN are left out.
    settings, seed
        Size of the regression; its random numbers.

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
    folds = KFold(settings.folds, shuffle=True, random_state=seed)
    for train, test in folds.split(matrix):
        trees = ExtraTreesRegressor(settings.trees, min_samples_leaf=2, random_state=seed)
        trees.fit(matrix[train], outcome[train])
        errors += float(((outcome[test] - trees.predict(matrix[test])) ** 2).sum())
        drop = permutation_importance(
            trees,
            matrix[test],
            outcome[test],
            scoring="neg_mean_squared_error",
            n_repeats=settings.repeats,
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
