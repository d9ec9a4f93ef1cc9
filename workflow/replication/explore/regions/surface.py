"""The response surface of a panel: a Gaussian process of the compared quantity over both axes.

The quantity is a logarithm, warped by asinh around the claim's threshold: linear close to it, and
logarithmic far from it, where nothing is decided. Exact ties of a comparison whose threshold is
equality are placed at a step from it on the failing side: they are a plateau, not a contour.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from replication.explore.regions.region_rows import Shares

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor

Numbers = NDArray[np.float64]

#: The warp passes from linear to logarithmic at this relative difference, or at so many standard
#: deviations of runs if that is more: the noise has to be alike on both sides of the threshold.
SCALE, DEVIATIONS = 0.1, 4.0
#: Relative difference up to which two quantities tie, and where ties lie on the warped scale.
TIE, TIED = 1e-6, 1.0
#: Probability from which a side counts as known, and the two-sided level of intervals.
SURE, LEVEL = 0.95, 0.9
#: Half the width of such an interval in standard deviations.
REACH = float(scipy.special.ndtri((1 + LEVEL) / 2))
#: Cells of the drawn area along each axis, and of the area from which points are chosen.
CELLS, COARSE_CELLS = 32, 16


def middles(cells: int) -> Numbers:
    """Return the middles of the cells along an axis."""
    return (np.arange(cells) + 0.5) / cells


def _grid(cells: int) -> Numbers:
    """Return the places in the middles of the cells, row by row."""
    x, y = np.meshgrid(middles(cells), middles(cells))
    return np.column_stack([x.ravel(), y.ravel()])


#: Of the drawn area, and of the area from which points are chosen.
GRID, COARSE = _grid(CELLS), _grid(COARSE_CELLS)


@dataclass(frozen=True)
class Bounds:
    """Logarithms of the quantity between which the claim holds; either end may be infinite.

    `scale` is the distance from the threshold at which the warp passes from linear to logarithmic.
    """

    low: float = -math.inf
    high: float = math.inf
    scale: float = SCALE

    @property
    def centre(self) -> float:
        """Where the warp is steepest."""
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        return sum(ends) / len(ends)

    def warp(self, values: Numbers) -> Numbers:
        """Return logarithms of the quantity on the warped scale."""
        warped = np.arcsinh((values - self.centre) / self.scale)
        has_one_end = not (math.isfinite(self.low) and math.isfinite(self.high))
        if self.centre == 0 and has_one_end:
            warped[np.abs(values) <= TIE] = TIED if math.isfinite(self.high) else -TIED
        return warped

    def unwarp(self, warped: Numbers) -> Numbers:
        """Return logarithms of the quantity."""
        return self.centre + self.scale * np.sinh(warped)

    def ends(self) -> tuple[float, float]:
        """Return both bounds on the warped scale."""
        low, high = (math.asinh((end - self.centre) / self.scale) for end in (self.low, self.high))
        return low, high

    def holds(self, mean: Numbers, sd: Numbers) -> Numbers:
        """Return the probability that a normal value on the warped scale lies within the bounds."""
        low, high = self.ends()
        sd = np.maximum(sd, 1e-9)
        below = scipy.special.ndtr
        return np.asarray(below((high - mean) / sd) - below((low - mean) / sd))


@dataclass(frozen=True)
class Surface:
    """A surface on the warped scale, fitted to the runs at `places`.

    `model` is the Gaussian process, None where all runs tie at `level`; `noise` the standard
    deviation of single runs; `inflation` (at least 1) the factor that widens intervals until they
    hold a share of `LEVEL` of the runs, each predicted from all others. `alike` has, for each of
    `places`, whether the alternatives cannot differ in the run there.
    """

    model: GaussianProcessRegressor | None
    bounds: Bounds
    places: Numbers
    alike: NDArray[np.bool_]
    level: float = 0.0
    noise: float = 0.0
    inflation: float = 1.0

    @classmethod
    def fit(
        cls,
        places: Numbers,
        values: Numbers,
        bounds: Bounds,
        noise: float = 0.0,
        alike: Sequence[bool] = (),
    ) -> Self:
        """Fit a surface to single runs: places (0 to 1, a row a run), logarithms of the quantity.

        `noise` is the standard deviation of runs at one place; in runs that are `alike` the
        alternatives cannot differ, in none if it is left out.
        """
        # Importing scikit-learn takes a second, and most readers of regions fit nothing.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        bounds = replace(bounds, scale=max(SCALE, DEVIATIONS * noise))
        warped = bounds.warp(values)
        states = np.array(alike or [False] * len(values))
        if np.ptp(values) <= TIE:
            return cls(None, bounds, places, states, float(warped[0]))
        kernel = ConstantKernel(1.0, (0.1, 30.0)) * Matern([0.4, 0.4], (0.05, 4.0), nu=1.5)
        kernel += WhiteKernel(0.05, (1e-5, 1.0))
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(places, warped)
        noise = float(np.std(warped)) * math.sqrt(model.kernel_.k2.noise_level)
        inverse = scipy.linalg.cho_solve((model.L_, True), np.eye(len(model.L_)))
        residuals = np.abs(np.ravel(model.alpha_)) / np.sqrt(np.diag(inverse))
        inflation = max(1.0, float(np.quantile(residuals, LEVEL)) / REACH)
        return cls(model, bounds, places, states, noise=noise, inflation=inflation)

    def predict(self, places: Numbers, runs: int = 0) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of the surface, or of the mean of `runs` runs."""
        if self.model is None:
            return np.full(len(places), self.level), np.full(len(places), TIE)
        mean, sd = self.model.predict(places, return_std=True)
        variance = np.maximum(sd**2 - self.noise**2, TIE**2)
        if runs:
            variance += self.noise**2 / runs
        return mean, self.inflation * np.sqrt(variance)

    def probability(self) -> Numbers:
        """Return the probability that the claim holds in each cell of the area, a row a y."""
        return self.bounds.holds(*self.predict(GRID)).reshape(CELLS, CELLS)

    def cannot_differ(self, places: Numbers) -> NDArray[np.bool_]:
        """Return where the alternatives cannot differ: as in the nearest run."""
        squares = ((places[:, None, :] - self.places[None, :, :]) ** 2).sum(axis=2)
        nearest: NDArray[np.bool_] = self.alike[squares.argmin(axis=1)]
        return nearest

    def shares(self) -> Shares:
        """Return the shares of the area."""
        known = self.probability().ravel()
        alike = self.cannot_differ(GRID)
        holds = float(((known > SURE) & ~alike).mean())
        fails = float(((known < 1 - SURE) & ~alike).mean())
        return Shares(
            holds=holds,
            fails=fails,
            undecided=1 - holds - fails,
            cannot_differ=float(alike.mean()),
        )


def best_places(surface: Surface) -> Iterator[tuple[float, Numbers]]:
    """Yield the largest expected gain of a run and its place, as if each one yielded was run."""
    if surface.model is None:
        yield 0.0, COARSE[0]
        return
    noise = (surface.inflation * surface.noise) ** 2
    steps = np.eye(len(COARSE))
    mean, covariance = surface.model.predict(COARSE, return_cov=True)
    covariance = surface.inflation**2 * (covariance - surface.noise**2 * steps)
    while True:
        variance = np.maximum(np.diag(covariance), TIE**2)
        now = _entropy(surface.bounds.holds(mean, np.sqrt(variance))).mean()
        falls = covariance**2 / (variance + noise)[:, None]
        after = np.sqrt(np.maximum(variance[None, :] - falls, TIE**2))
        gains = now - _entropy(surface.bounds.holds(mean[None, :], after)).mean(axis=1)
        # Rounded: a last digit of another machine must not choose another place.
        gains = np.round(gains, 6)
        best = int(np.argmax(gains))
        yield float(gains[best]), COARSE[best]
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / max(column[best] + noise, TIE**2)


def _entropy(share: Numbers) -> Numbers:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    return np.asarray(-(share * np.log(share) + (1 - share) * np.log(1 - share)))
