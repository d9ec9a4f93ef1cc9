"""Maps as data: a sentence, the set-up it is tested on, the axes over which it is mapped.

`configs/maps/<map>.yaml` has one map, `configs/mapping.yaml` what each tier spends on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Claim, NotTestable, PublishedRun, Test
from replication.study.errors import InputError, leave
from replication.study.files import read_model
from replication.study.model import (
    LINE,
    Document,
    EngineName,
    Identifier,
    Label,
    PositiveSeconds,
    Text,
)
from replication.study.parameter import unique
from replication.study.study import Study
from replication.study.variation import Range, Variation
from replication.study.verdict import Changes

MAPS = Path("configs/maps")
MAPPING = Path("configs/mapping.yaml")
#: Digits kept of a value on an axis, as the released regions have them.
DIGITS = 5


class AxisLevel(Document):
    """One level of an axis without numbers."""

    key: Identifier
    """Its name."""
    title: Label
    """What it says in charts."""
    set: Variation | None = None
    """Its set-up; without it the base's own."""


class OfBdp(Document):
    """A parameter that is computed from the path's product of bandwidth and delay.

    The product is that of the first TCP flow's path at the point, with all other axes set: its
    slowest link and twice its propagation, in IP packets of full segments.
    """

    parameter: str
    """Parameter (`experiment/name` for one of an experiment) that takes the number."""
    amount: Literal["times", "plus_packets"]
    """`times`: the axis' value times the product. `plus_packets`: the product and so many packets
    more."""
    counted_in: Literal["bytes", "packets", "segments"]
    """What the parameter counts: bytes on the wire, packets, or segments, of which a packet has
    one."""
    least: Annotated[float, Field(gt=0)] = 1.0
    """What it never is below."""


class Axis(Document):
    """One axis; `levels`, or `range` with one of `set` and `of_bdp`."""

    id: Identifier
    """Its name."""
    title: Label
    """Its name in charts."""
    unit: Annotated[str, LINE] = ""
    """Of its values."""
    range: Range | None = None
    """A range of numbers."""
    levels: Annotated[list[AxisLevel], Field(min_length=1)] | None = None
    """Or levels, a chart each."""
    set: Variation | None = None
    """With `range`: what takes the number, written `$value`."""
    scale: Annotated[float, Field(gt=0)] = 1.0
    """What the number is multiplied by where it is put in."""
    of_bdp: OfBdp | None = None
    """With `range`: what is computed from bandwidth and delay."""
    paper: float | None = None
    """The paper's own value, where it is not the default of the one parameter that is set."""

    @model_validator(mode="after")
    def _one_kind(self) -> Axis:
        if (self.range is None) == (self.levels is None):
            raise ValueError(f"axis {self.id}: give one of range and levels")
        takes = (self.set is not None) + (self.of_bdp is not None)
        if takes != (0 if self.levels else 1):
            raise ValueError(
                f"axis {self.id}: with range give one of set and of_bdp, with levels neither"
            )
        unique((level.key for level in self.levels or []), f"level of axis {self.id}")
        return self


class Sentence(Document):
    """A sentence of no claim, tested as claims are."""

    quote: Text
    """The sentence."""
    place: Text
    """Where it stands, or who says so."""
    reading: Text
    """How the words became the test, and why this threshold."""
    test: Test
    """Its test, over the base's experiments; see [claims](#claims)."""


class Law(Document):
    """A law that is drawn into a map: a line, or where a predicted share of the link is crossed."""

    kind: Literal["line", "room", "mathis", "cubic_response", "ware"]
    """`line` at a value of an axis; `room` (the queue holds so many packets); `mathis` (Reno's rate
    at random loss), `cubic_response` (CUBIC's, RFC 8312), `ware` (BBR's share beside loss-based
    flows in a deep buffer)."""
    axis: Identifier | None = None
    """Of a `line`."""
    value: float | None = None
    """Of a `line`: where it stands on the axis. Of `room`: packets."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Of the others: the share of the bottleneck whose crossing is drawn."""
    constant: Annotated[float, Field(gt=0)] | None = None
    """Of `mathis`: C."""
    facets: list[Identifier] = []
    """Levels in whose charts alone it is drawn."""
    title: Label
    """What it says."""
    source: Text
    """Where it stands."""
    condition: Text
    """When it holds."""

    @model_validator(mode="after")
    def _whole(self) -> Law:
        if self.kind == "line" and (self.axis is None or self.value is None):
            raise ValueError("a line needs axis and value")
        if self.kind == "room" and self.value is None:
            raise ValueError("room needs a value, in packets")
        if self.kind not in ("line", "room") and self.share is None:
            raise ValueError(f"{self.kind} needs the share that is drawn")
        if self.kind == "mathis" and self.constant is None:
            raise ValueError("mathis needs its constant C")
        return self


class Map(Document):
    """configs/maps/<map>.yaml."""

    schema_version: Literal[1] = 1
    """The form of the file."""
    id: Identifier
    """The file's name."""
    title: Text
    """What is mapped."""
    study: Identifier
    """The study whose set-up it is."""
    claim: Identifier | None = None
    """The claim of the study that is mapped."""
    sentence: Sentence | None = None
    """Or another sentence."""
    keep: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the levels that are run; a factor that is left out is run whole."""
    fixed: Variation | None = None
    """What differs from the study at every point."""
    reason: Text | None = None
    """Why; goes with `fixed` and `keep`."""
    axes: Annotated[list[Axis], Field(min_length=2, max_length=4)]
    """Two ranges, across and up, and up to two with levels."""
    engines: Annotated[list[EngineName], Field(min_length=1)]
    """Those it is mapped on."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time on each engine in tier paper, by its cost model."""
    border_width: Annotated[float, Field(gt=0, le=0.5)] = 0.0625
    """How well the border is to be known: a share of each axis."""
    theory: list[Law] = []
    """List of laws that are drawn in."""
    changed: Changes = []
    """List of what was changed after this map was seen; the page shows it."""

    @model_validator(mode="after")
    def _consistent(self) -> Map:
        if (self.claim is None) == (self.sentence is None):
            raise ValueError("give one of claim and sentence")
        if bool(self.keep or self.fixed) != (self.reason is not None):
            raise ValueError("reason: goes with fixed and keep; say why they differ from the paper")
        unique((axis.id for axis in self.axes), "axis")
        unique(self.engines, "engine")
        if len(self.ranges) != 2:
            raise ValueError(
                f"axes: {len(self.ranges)} have a range; a map needs two, and levels for the others"
            )
        for law in self.theory:
            if law.axis is not None and law.axis not in {axis.id for axis in self.ranges}:
                raise ValueError(f"theory: {law.axis!r} is no axis with a range")
            for key in law.facets:
                if key not in {v.key for axis in self.facets for v in axis.levels or []}:
                    raise ValueError(f"theory: {key!r} is no level of an axis")
        return self

    @property
    def ranges(self) -> list[Axis]:
        """The axes with a range: across, then up."""
        return [axis for axis in self.axes if axis.range is not None]

    @property
    def facets(self) -> list[Axis]:
        """The axes with levels."""
        return [axis for axis in self.axes if axis.levels is not None]

    def claim_of(self, study: Study) -> Claim:
        """Return the claim that is mapped, its own sentence as a claim of the map's name."""
        if self.sentence is not None:
            found = Claim(id=self.id, **dict(self.sentence))
        else:
            claims = {claim.id: claim for claim in study.claims}
            if self.claim not in claims:
                raise InputError(
                    f"claim: study {study.id} has no claim {self.claim!r}; "
                    f"it has {', '.join(claims)}"
                )
            found = claims[str(self.claim)]
        for test in [found.test, *found.tests()]:
            if isinstance(test, NotTestable) or isinstance(
                getattr(test, "expect", None), PublishedRun
            ):
                raise InputError(
                    f"claim: {found.id} of {study.id} has no bound to map (not testable, or of a "
                    "published run); map another, or give a sentence"
                )
        return found


class Spending(Document):
    """What a tier spends on a map."""

    budget_factor: Annotated[float, Field(gt=0)]
    """What each map's budget is multiplied by."""
    coarse_cells: Annotated[int, Field(ge=1, le=64)]
    """Cells of the first grid along each axis."""
    width_factor: Annotated[float, Field(gt=0)]
    """What each map's `border_width` is multiplied by."""
    checks_a_side: Annotated[int, Field(ge=0, le=1000)]
    """Fresh points on each side of the border, by which it is checked."""
    tries: Annotated[int, Field(ge=0, le=1000)] = 0
    """Sets of as many places that try the grid before, at the most: until none is denied."""

    def halvings(self, width: float) -> int:
        """Return how often cells on the border are halved until they are as narrow as asked."""
        return max(0, math.ceil(math.log2(1 / (self.coarse_cells * width * self.width_factor))))


class MapSettings(Document):
    """configs/mapping.yaml."""

    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    """Of the fresh points."""
    replicates: Annotated[int, Field(ge=3, le=99)]
    """Of a point whose margin is within the noise; an odd number, so that most of them decide."""
    noise_points: Annotated[int, Field(ge=1, le=20)]
    """Points of the first grid that are replicated to learn the noise: those of the least margin,
    at cells in which the verdict changes if there are any."""
    noise_deviations: Annotated[float, Field(gt=0)]
    """Standard deviations of a statistic up to which a margin is within the noise."""
    replicate_offset: Annotated[float, Field(ge=0, lt=0.05)] = 0.0
    """How far from a point its replicates lie, as a share of each axis."""
    tiers: dict[Literal["quick", "paper", "deep"], Spending]
    """Tier to what it spends."""
    changed: Changes = []
    """List of [changes](#changes-after-results) made after maps were seen."""

    @model_validator(mode="after")
    def _odd(self) -> MapSettings:
        if self.replicates % 2 == 0:
            raise ValueError(f"replicates: needs an odd number, not {self.replicates}")
        return self


def map_path(root: Path, name: str) -> Path:
    """Return the file of a map."""
    return root / MAPS / f"{name}.yaml"


def map_names(root: Path) -> list[str]:
    """Return the ids of all maps, sorted."""
    return sorted(path.stem for path in (root / MAPS).glob("*.yaml"))


def load_map(root: Path, name: str) -> Map:
    """Read a map; InputError names each wrong field."""
    path = map_path(root, name)
    if not path.is_file():
        raise InputError(f"map: {name!r} is unknown; there are {', '.join(map_names(root))}")
    found = read_model(path, Map)
    if found.id != name:
        raise InputError(f"{path}: id: is {found.id!r}; it must be {name!r}, as the file is")
    return found


def maps_or_exit(root: Path, engines: Collection[str]) -> list[tuple[str, str]]:
    """Return map and engine of every map on each of its engines that is among `engines`.

    A wrong map is told in one line and ends the program with exit code 2.
    """
    try:
        found = [load_map(root, name) for name in map_names(root)]
    except InputError as error:
        leave(error)
    return [(one.id, engine) for one in found for engine in one.engines if engine in engines]


def load_mapping(root: Path) -> MapSettings:
    """Read configs/mapping.yaml; InputError names each wrong field."""
    return read_model(root / MAPPING, MapSettings)
