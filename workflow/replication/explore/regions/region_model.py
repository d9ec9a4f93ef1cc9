"""Regions as data: a claim, the set-up that it is tested on, and the axes of the region.

`configs/regions/<region>.yaml` has one region, `configs/regions.yaml` what each tier spends on all.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Claim, SimpleTest
from replication.study.errors import InputError, exit_with_error
from replication.study.files import read_model
from replication.study.model import (
    LINE,
    Document,
    EngineName,
    Identifier,
    Label,
    PositiveSeconds,
    Text,
    one_of,
)
from replication.study.parameter import unique
from replication.study.study import Study
from replication.study.variation import Range, Variation
from replication.study.verdict import Change

REGIONS = Path("configs/regions")
SETTINGS = Path("configs/regions.yaml")
#: Digits kept of a value on an axis.
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
    """Or levels, a panel each."""
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
        takes = (self.set is not None) + (self.of_bdp is not None)
        if (self.range is None) == (self.levels is None) or takes != (0 if self.levels else 1):
            raise ValueError(f"axis {self.id}: give levels, or range with one of set and of_bdp")
        unique((level.key for level in self.levels or []), f"level of axis {self.id}")
        return self


class OwnClaim(Document):
    """A sentence that is no claim of the study, tested as claims are."""

    quote: Text
    """The sentence."""
    place: Text
    """Section of the paper, or who says so."""
    reading: Text
    """How the words became the test, and why this threshold."""
    test: Annotated[SimpleTest, Field(discriminator="kind")]
    """Its test, over the study's experiments; see [claims](#claims)."""


class Law(Document):
    """A law that is drawn: a line, or where a predicted share of the link is crossed."""

    kind: Literal["line", "room", "mathis", "cubic_response", "ware"]
    """`line` at a value of an axis; `room` (the queue holds so many packets); `mathis` (Reno's rate
    at random loss), `cubic_response` (CUBIC's, RFC 8312), `ware` (BBR's share beside loss-based
    flows in a deep buffer)."""
    axis: Identifier | None = None
    """Of a `line`."""
    value: float | None = None
    """Of a `line`: its place on the axis. Of `room`: packets."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Of the others: the share of the bottleneck whose crossing is drawn."""
    constant: Annotated[float, Field(gt=0)] | None = None
    """Of `mathis`: C."""
    panels: list[Identifier] = []
    """Levels in whose panels alone it is drawn."""
    engines: list[EngineName] = []
    """Engines on which alone it is drawn."""
    title: Label
    """What it says."""
    source: Text
    """Paper, RFC or manual with its section."""
    condition: Text
    """When it holds."""

    @model_validator(mode="after")
    def _whole(self) -> Law:
        needed = {"line": ["axis", "value"], "room": ["value"], "mathis": ["share", "constant"]}
        for name in needed.get(self.kind, ["share"]):
            if getattr(self, name) is None:
                raise ValueError(f"{self.kind} needs {name}")
        return self


class Trait(Document):
    """A trait of an engine that shapes some panels."""

    entry: Identifier
    """Id of an entry of engine_differences.yaml."""
    engine: EngineName
    """The engine that has it."""
    panels: list[Identifier] = []
    """Levels in whose panels alone it is named."""
    effect: Text
    """What it does to the contour."""


class Region(Document):
    """configs/regions/<region>.yaml."""

    schema_version: Literal[1] = 1
    """The form of the file."""
    id: Identifier
    """The file's name."""
    title: Text
    """What the claim says, in short."""
    study: Identifier
    """The study whose set-up it is."""
    claim: Identifier | None = None
    """The claim of the study."""
    test: Annotated[int, Field(ge=1)] | None = None
    """Number of the one clause of the claim that is mapped; without it all of them, of which the
    one that is closest to failing decides."""
    own_claim: OwnClaim | None = None
    """Or another sentence."""
    keep: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the levels that are run; a factor that is left out is run whole."""
    fixed: Variation | None = None
    """What differs from the study at every point."""
    reason: Text | None = None
    """Why; goes with `fixed` and `keep`."""
    axes: Annotated[list[Axis], Field(min_length=2, max_length=4)]
    """Two ranges, x and y, and up to two with levels."""
    engines: Annotated[list[EngineName], Field(min_length=1)]
    """Those it is mapped on."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time on each engine in tier paper, by its cost model, validation included."""
    laws: list[Law] = []
    """List of laws that are drawn."""
    traits: list[Trait] = []
    """List of engines' own traits that shape the surface; named below the panels."""
    changed: list[Change] = []
    """List of what was changed after results were seen; the page shows it."""

    _one_claim = one_of("claim", "own_claim")

    @model_validator(mode="after")
    def _consistent(self) -> Region:
        if self.test is not None and self.claim is None:
            raise ValueError("test: goes with claim")
        if bool(self.keep or self.fixed) != (self.reason is not None):
            raise ValueError("reason: goes with fixed and keep; say why they differ from the paper")
        unique((axis.id for axis in self.axes), "axis")
        unique(self.engines, "engine")
        if len(self.ranges) != 2:
            raise ValueError(f"axes: {len(self.ranges)} have a range; a region needs two")
        levels = {v.key for axis in self.level_axes for v in axis.levels or []}
        for law in self.laws:
            if law.axis is not None and law.axis not in {axis.id for axis in self.ranges}:
                raise ValueError(f"laws: {law.axis!r} is no axis with a range")
        for name, named in (("laws", self.laws), ("traits", self.traits)):
            for key in {key for one in named for key in one.panels} - levels:
                raise ValueError(f"{name}: {key!r} is no level of an axis")
        return self

    @property
    def ranges(self) -> list[Axis]:
        """The axes with a range: x, then y."""
        return [axis for axis in self.axes if axis.range is not None]

    @property
    def spans(self) -> list[Range]:
        """Their ranges."""
        return [axis.range for axis in self.axes if axis.range is not None]

    @property
    def level_axes(self) -> list[Axis]:
        """The axes with levels, which make the panels."""
        return [axis for axis in self.axes if axis.levels is not None]

    def claim_of(self, study: Study) -> Claim:
        """Return the claim that is mapped: one of the study, a clause of it, or its own."""
        if self.own_claim is not None:
            return Claim(id=self.id, **dict(self.own_claim))
        claims = {claim.id: claim for claim in study.claims}
        if self.claim not in claims:
            raise InputError(
                f"claim: study {study.id} has no claim {self.claim!r}; it has {', '.join(claims)}"
            )
        found = claims[str(self.claim)]
        if self.test is None:
            return found
        if self.test > len(found.tests()):
            raise InputError(f"test: claim {found.id} has {len(found.tests())}, not {self.test}")
        return found.model_copy(update={"test": found.tests()[self.test - 1]})


class Spending(Document):
    """What a tier spends on a region."""

    budget_factor: Annotated[float, Field(gt=0)]
    """What each region's budget is multiplied by."""
    first_points: Annotated[int, Field(ge=4, le=256)]
    """Points of each panel's first design, spread evenly; a power of two."""
    validation_points: Annotated[int, Field(ge=0, le=1000)]
    """Random points by which all surfaces of a region are validated, at the most."""


class RegionSettings(Document):
    """configs/regions.yaml."""

    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    """Of the first points and the validation points."""
    replicates: Annotated[int, Field(ge=2, le=99)]
    """Runs at each first point, from which the noise is learnt, and at each validation point."""
    replicate_offset: Annotated[float, Field(ge=0, lt=0.05)]
    """How far from a point its replicates lie, as a share of each axis."""
    batch_share: Annotated[float, Field(gt=0, le=1)]
    """Runs that are chosen before the surfaces are fitted again, as a share of those so far."""
    validation_share: Annotated[float, Field(gt=0, lt=1)]
    """Share of the budget that validation may take."""
    enough: Annotated[float, Field(ge=0, lt=1)]
    """Undecided share of the area at which no more points are run."""
    tiers: dict[Literal["quick", "paper", "deep"], Spending]
    """Tier to what it spends."""
    changed: list[Change] = []
    """List of [changes](#changes-after-results) made after results were seen."""


def region_path(root: Path, name: str) -> Path:
    """Return the file of a region."""
    return root / REGIONS / f"{name}.yaml"


def region_names(root: Path) -> list[str]:
    """Return the ids of all regions, sorted."""
    return sorted(path.stem for path in (root / REGIONS).glob("*.yaml"))


def load_region(root: Path, name: str) -> Region:
    """Read a region; InputError names each wrong field."""
    path = region_path(root, name)
    if not path.is_file():
        raise InputError(f"region: {name!r} is unknown; there are {', '.join(region_names(root))}")
    found = read_model(path, Region)
    if found.id != name:
        raise InputError(f"{path}: id: is {found.id!r}; it must be {name!r}, as the file is")
    return found


def regions_or_exit(root: Path, engines: Collection[str]) -> list[tuple[str, str]]:
    """Return region and engine of every region on each of its engines that is among `engines`.

    An invalid region file produces a one-line error and ends the program with exit code 2.
    """
    try:
        found = [load_region(root, name) for name in region_names(root)]
    except InputError as error:
        exit_with_error(error)
    return [(one.id, engine) for one in found for engine in one.engines if engine in engines]


def load_settings(root: Path) -> RegionSettings:
    """Read configs/regions.yaml; InputError names each wrong field."""
    return read_model(root / SETTINGS, RegionSettings)
