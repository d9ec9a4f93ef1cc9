"""The space of a region: the study at a point, the path there, and the laws in the picture.

A law predicts a share of the bottleneck's rate from the path at each point; the picture shows where
it crosses the share that the region's file names. A `line` lies where the file says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import JsonValue

from replication.base.errors import InputError, check_known
from replication.design.design import Run
from replication.engines.ns3 import NS3_VERSION
from replication.engines.path import TcpPath, bbr_share, cubic_window, reno_window
from replication.explore.machine import whole_runs
from replication.explore.regions.region_model import DIGITS, Law, OfBdp, Region
from replication.explore.regions.region_rows import LawAtPaper, LawRow, Segments
from replication.explore.trial import StudyPart, serves
from replication.study.claim_model import Claim
from replication.study.study import Study, parameters_of
from replication.study.variation import Variation, apply, parameters, rounded

#: One level of each axis with levels.
Panel = tuple[str, ...]
_NONE = Variation.model_construct()


class Point(NamedTuple):
    """A point of a region: its panel, and its place on both axes, 0 to 1."""

    panel: Panel
    x: float
    y: float


@dataclass(frozen=True)
class Space:
    """The study of a region at each of its points, on an engine."""

    region: Region
    base: Study
    engine: str
    ns3_version: str = NS3_VERSION

    @cached_property
    def claim(self) -> Claim:
        """The claim that is mapped: one of the study, a clause of it, or the region's own."""
        name, number = self.region.claim, self.region.test
        claims = {claim.id: claim for claim in self.base.claims}
        check_known("claim", [name] if name else [], claims, ("claim",))
        claim = self.region.own_claim or claims[str(name)]
        if number is None:
            return claim
        if number > len(tests := claim.tests()):
            raise InputError(f"test: claim {claim.id} has {len(tests)}, not {number}", ("test",))
        return claim.model_copy(update={"test": tests[number - 1]})

    @cached_property
    def study(self) -> Study:
        """The compared part of the study, with the region's claim and what the region fixes."""
        fixed = self.region.fixed
        return self._compared(self.base if fixed is None else apply(self.base, fixed))

    @cached_property
    def paper(self) -> tuple[float | None, ...]:
        """The paper's own value on each axis; None where it has none, such as no random loss.

        It is that of the study: nothing is `fixed`, and no value is drawn for a replicate.
        """
        run, path, values = self._paper_run, self.paper_path, self._paper_values
        places: list[float | None] = []
        for axis in self.region.axes:
            named = [axis.of_bdp.parameter] if axis.of_bdp else [*(axis.set or _NONE).parameters]
            value = values.get(named[0].removeprefix(f"{run.experiment}/")) if named else None
            if isinstance(value, bool) or not isinstance(value, int | float):
                places.append(None)
            elif axis.of_bdp is None:
                places.append(rounded(value / axis.scale, DIGITS))
            else:
                places.append(rounded(_of_path(axis.of_bdp, value, path), DIGITS))
        return tuple(places)

    @cached_property
    def paper_path(self) -> TcpPath:
        """The path at the paper's own point."""
        return TcpPath.of(self._paper_run.scenario)

    @cached_property
    def _paper_study(self) -> Study:
        """The compared part of the study as the paper has it."""
        drawn: dict[str, JsonValue] = {}
        for name, parameter in parameters(self.base):
            if parameter.assumed is not None and parameter.assumed.varies is not None:
                drawn[name] = parameter.value
        study = apply(self.base, Variation(defaults=drawn)) if drawn else self.base
        return self._compared(study)

    @cached_property
    def _paper_run(self) -> Run:
        return self._runs(self._paper_study)[0]

    @cached_property
    def _paper_values(self) -> dict[str, Any]:
        """The values of the parameters at the paper's own point."""
        run, study = self._paper_run, self._paper_study
        experiment = study.experiment(run.experiment)
        named = parameters_of(study, experiment)
        values: dict[str, Any] = {name: parameter.value for name, parameter in named.items()}
        for factor in experiment.factors:
            for level in factor.levels:
                if level.key == run.levels[factor.id]:
                    values |= level.set
        return values

    def _compared(self, study: Study) -> Study:
        """Return the compared part of a study, with the region's claim."""
        claims = [claim for claim in study.claims if claim.id != self.claim.id]
        study = study.model_copy(update={"claims": [*claims, self.claim]})
        compared = {quantity.experiment for quantity in self.claim.quantities()}
        levels = {name: self.region.keep.get(name, {}) for name in compared}
        return StudyPart("region", levels=levels).study(study)

    @cached_property
    def panels(self) -> list[Panel]:
        """The panels: a single empty one where no axis has levels."""
        levels = [[level.key for level in axis.levels] for axis in self.region.panels]
        return list(itertools.product(*levels))

    def values(self, point: Point) -> tuple[float, float]:
        """Return a point's values on both axes."""
        x, y = self.region.axes
        return x.range.at(point.x, DIGITS), y.range.at(point.y, DIGITS)

    def runs(self, point: Point, replicate: int = 0) -> list[Run]:
        """Return the runs of a replicate of a point; InputError if its values make no scenario."""
        return self._runs(self._at(point), replicate)

    def path(self, point: Point) -> TcpPath:
        """Return the path at a point."""
        return TcpPath.of(self.runs(point)[0].scenario)

    def _at(self, point: Point) -> Study:
        """Return the study at a point."""
        study = self.study
        for panel, key in zip(self.region.panels, point.panel, strict=True):
            (change,) = (level.set for level in panel.levels if level.key == key)
            study = study if change is None else apply(study, change)
        axes = list(zip(self.region.axes, self.values(point), strict=True))
        for axis, value in axes:
            if axis.set is not None:
                scaled = value * axis.scale
                number = round(scaled) if axis.range.whole else rounded(scaled, 8)
                study = apply(study, axis.set.at(number))
        # Bandwidth and delay are known once all other axes are set.
        path: TcpPath | None = None
        for axis, value in axes:
            if axis.of_bdp is not None:
                path = path or TcpPath.of(self._runs(study)[0].scenario)
                amount = _amount(axis.of_bdp, value, path)
                study = apply(study, Variation(parameters={axis.of_bdp.parameter: amount}))
        return study

    def _runs(self, study: Study, replicate: int = 0) -> list[Run]:
        compared = list(self.claim.quantities())
        runs = whole_runs(study, self.engine, self.ns3_version, replicate + 1)
        kept = [run for run in runs if run.replicate == replicate and serves(run, compared)]
        if not kept:
            raise InputError("keep: leaves no run that the claim is about", ("keep",))
        return kept


def _amount(of: OfBdp, value: float, path: TcpPath) -> int:
    packets = value * path.bdp_packets if of.amount == "times" else path.bdp_packets + value
    unit_bytes = path.packet_bytes if of.counted_in == "bytes" else 1
    return round(max(packets * unit_bytes, of.least))


def _of_path(of: OfBdp, amount: float, path: TcpPath) -> float:
    """Return the value on an axis at which its parameter takes an amount."""
    packets = amount / (path.packet_bytes if of.counted_in == "bytes" else 1)
    return packets / path.bdp_packets if of.amount == "times" else packets - path.bdp_packets


_LAWS: dict[str, Callable[[Law, TcpPath], Any]] = {
    "room": lambda law, path: path.queue_packets / (law.value or math.nan),
    "mathis": lambda law, path: path.share(reno_window(path.loss, law.constant or math.nan)),
    "cubic_response": lambda law, path: path.share(cubic_window(path.rtt_s, path.loss)),
    "ware": lambda law, path: bbr_share(path),
}
#: The name of the law of kind `ware` in sentences.
WARE = "the law of Ware et al. (2019)"
#: Places along each axis at which a law is computed, and the largest share that is drawn.
_STEPS, _LARGEST = [step / 12 for step in range(13)], 1e9


def drawn_laws(space: Space, panel: Panel) -> list[LawRow]:
    """Return the laws of a panel as segments, 0 to 1; one that is crossed nowhere has none."""
    rows = []
    for law in space.region.laws:
        if law.is_on(space.engine, panel):
            draw = _line if law.kind == "line" else _curve
            segments = draw(space, law, panel)
            rows.append(LawRow(law.title, law.source, law.condition, segments))
    return rows


def laws_at_paper(space: Space) -> list[LawAtPaper]:
    """Return the share of the link that the law of BBR gives at the paper's own point, if drawn."""
    if not any(law.kind == "ware" for law in space.region.laws):
        return []
    return [LawAtPaper(WARE, rounded(float(bbr_share(space.paper_path)), DIGITS))]


def _line(space: Space, law: Law, panel: Panel) -> Segments:
    is_x = law.axis == space.region.axes[0].id
    at = round(space.region.axes[0 if is_x else 1].range.position(law.value or 0.0), 4)
    ends = (at, 0.0, at, 1.0) if is_x else (0.0, at, 1.0, at)
    return [ends] if 0 <= at <= 1 else []


def _curve(space: Space, law: Law, panel: Panel) -> Segments:
    places = itertools.product(_STEPS, repeat=2)
    paths = [space.path(Point(panel, x, y)) for y, x in places]
    # The laws are powers, so their logarithms are interpolated; without loss they are infinite.
    with np.errstate(divide="ignore"):
        shares = _LAWS[law.kind](law, TcpPath(*np.transpose(paths))) / (law.share or 1.0)
        logs = np.log(np.minimum(shares, _LARGEST))
    return contour(logs.reshape(len(_STEPS), len(_STEPS)), _STEPS)


def contour(values: ArrayLike, steps: Sequence[float] | NDArray[np.float64]) -> Segments:
    """Return where values change their sign: a row for each y, a column for each x of `steps`.

    Marching squares: the crossings of a cell's edges are interpolated and joined.
    """
    table = np.asarray(values, dtype=float)
    pieces: Segments = []
    for j, i in itertools.product(range(len(steps) - 1), repeat=2):
        corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        crossed: list[tuple[float, float]] = []
        for (a, b), (c, d) in itertools.pairwise([*corners, corners[0]]):
            start, end = table[b, a], table[d, c]
            if (start < 0) != (end < 0):
                share = start / (start - end)
                x = steps[a] + share * (steps[c] - steps[a])
                y = steps[b] + share * (steps[d] - steps[b])
                crossed.append((round(float(x), 4), round(float(y), 4)))
        # An edge is crossed at most once, so the crossings are none, two or four.
        pieces += [(*crossed[at], *crossed[at + 1]) for at in range(0, len(crossed), 2)]
    return pieces
