"""Contours: where a function that is known on a grid crosses zero, as straight segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

#: Ends of straight pieces: x, y, x, y, each 0 to 1.
Segments = list[tuple[float, float, float, float]]


def contour(values: ArrayLike, steps: Sequence[float]) -> Segments:
    """Return where values change their sign: a row a y, a column an x, both at `steps`.

    Marching squares: a crossing of a cell's edge is interpolated, and joined to the next.
    """
    table = np.asarray(values, dtype=float)
    found: Segments = []
    for j in range(len(steps) - 1):
        for i in range(len(steps) - 1):
            corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            crossed = []
            for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
                one, other = table[b, a], table[d, c]
                if (one < 0) != (other < 0):
                    share = one / (one - other)
                    x = steps[a] + share * (steps[c] - steps[a])
                    y = steps[b] + share * (steps[d] - steps[b])
                    crossed += [round(float(x), 4), round(float(y), 4)]
            found += [tuple(crossed[at : at + 4]) for at in range(0, len(crossed), 4)]  # type: ignore[misc]
    return found
