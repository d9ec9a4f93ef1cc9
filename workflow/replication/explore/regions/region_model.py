"""Regions as data: a claim, the configuration that it is tested on, and the axes of the region.

`configs/regions/<region>.yaml` has one region, `configs/regions.yaml` what each tier spends on all.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from replication.base.errors import InputError, check_known
from replication.base.model import (
    Document,
    EngineName,
    Identifier,
    Label,
    PositiveSeconds,
    Text,
    one_of,
)
from replication.base.position import located, read_model
from replication.study.claim_model import Claim, SimpleTest
from replication.study.parameter import unique
from replication.study.variation import Range, Variation
from replication.study.verdict import Change

_REGIONS, SETTINGS = Path("configs/regions"), Path("configs/regions.yaml")
#: Significant digits of a value on an axis.
DIGITS = 5


class AxisLevel(Document):
    """One level of an axis without numbers."""

    key: Identifier
    title: Label
    set: Variation | None = None
    """What it changes in the study; nothing without it."""


class OfBdp(Document):
    """A parameter that is computed from the bandwidth-delay product of the path at a point.

    The path is that of the first TCP flow with all other axes set: the rate of its slowest link
    times twice its propagation delay, in IP packets of full segments.
    """

    parameter: str
    """Parameter that takes the number (`experiment/name` for one of an experiment)."""
    amount: Literal["times", "plus_packets"]
    """The axis' value `times` the product, or the product plus that many packets."""
    counted_in: Literal["bytes", "packets", "segments"]
    """What the parameter counts: bytes on the wire, packets, or segments (one in each packet)."""
    least: Annotated[float, Field(gt=0)] = 1.0
    """Its lower limit."""


class LevelAxis(Document):
    """An axis without numbers."""

    id: Identifier
    title: Label
    levels: Annotated[list[AxisLevel], Field(min_length=1)]


class Axis(Document):
    """An axis with a range, and one of `set` and `of_bdp`."""

    id: Identifier
    title: Label
    """Its name in charts."""
    unit: Label = ""
    range: Range
    set: Variation | None = None
    """The parameters that take the number, written `$value`."""
    scale: Annotated[float, Field(gt=0)] = 1.0
    """Factor between the axis' value and the number that is set."""
    of_bdp: OfBdp | None = None
    """The parameter that is computed from the bandwidth-delay product."""

    _one_setter = one_of("set", "of_bdp")


class OwnClaim(Claim):
    """A sentence that is no claim of the study; keys as in a [claim](#claim)."""

    test: Annotated[SimpleTest, Field(discriminator="kind")]
    """A test of one part, over the study's experiments."""


class Shown(Document):
    """Something in the pictures of some panels."""

    panels: list[Identifier] = []
    """Levels of the panels that show it; all without it."""
    engines: list[EngineName] = []
    """Engines that show it; all without it."""

    def is_on(self, engine: str, panel: Sequence[str]) -> bool:
        """Return whether a panel shows it on an engine."""
        in_panel = not self.panels or not {*panel}.isdisjoint(self.panels)
        return in_panel and (not self.engines or engine in self.engines)


class Law(Shown):
    """A law in the picture: a line, or where the share that it predicts crosses `share`."""

    kind: Literal["line", "room", "mathis", "cubic_response", "ware"]
    """`line` at a value of an axis; `room`, a queue of that many packets; Reno's rate at random
    loss (`mathis`), CUBIC's (`cubic_response`), BBR's share against loss-based flows (`ware`)."""
    axis: Identifier | None = None
    value: float | None = None
    """Place of a `line` on its axis; packets of `room`."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """For the other kinds: the share of the bottleneck whose crossing is drawn."""
    constant: Annotated[float, Field(gt=0)] | None = None
    """C of `mathis`."""
    title: Label
    source: Text
    """Paper, RFC or manual with its section."""
    condition: Text
    """When it holds."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"line": ["axis", "value"], "room": ["value"], "mathis": ["share", "constant"]}
        for name in needed.get(self.kind, ["share"]):
            if getattr(self, name) is None:
                raise ValueError(f"{self.kind} needs {name}")
        return self


class Trait(Shown):
    """A known difference of engines that shapes some panels."""

    entry: Identifier
    """Id of an entry of engine_differences.yaml."""
    effect: Text
    """What it does to the contour."""


class Region(Document):
    """configs/regions/<region>.yaml."""

    id: Identifier
    """The file's name."""
    title: Text
    """The claim in short."""
    study: Identifier
    claim: Identifier | None = None
    """The claim of the study."""
    test: Annotated[int, Field(ge=1)] | None = None
    """Number of the mapped clause; without it all are, and the closest to failing decides."""
    own_claim: OwnClaim | None = None
    """Or another sentence."""
    keep: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the levels that are run; all levels of a factor that is left out."""
    fixed: Variation | None = None
    """What differs from the study at every point."""
    reason: Text | None = None
    """Why `fixed` and `keep` differ from the paper."""
    axes: Annotated[list[Axis], Field(min_length=2, max_length=2)]
    """The axes x and y."""
    panels: Annotated[list[LevelAxis], Field(max_length=2)] = []
    """Axes whose levels make the panels."""
    engines: Annotated[list[EngineName], Field(min_length=1)]
    cpu_budget_s: PositiveSeconds
    """Expected CPU time on each engine in tier paper, by its cost model, validation included."""
    laws: list[Law] = []
    """Laws in the pictures."""
    traits: list[Trait] = []
    """Differences between engines that are named below the panels."""
    changed: list[Change] = []
    """List of changes made after results were seen; the page shows it."""

    _one_claim = one_of("claim", "own_claim")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.keep or self.fixed) != (self.reason is not None):
            text = "reason: goes with fixed and keep; say why they differ from the paper"
            raise InputError(text, ("reason" if self.reason else "keep",))
        names = [axis.id for axis in self.axes] + [axis.id for axis in self.panels]
        unique(names, "axis", "axes")
        unique(self.engines, "engine", "engines")
        levels: list[str] = []
        for level_axis in self.panels:
            levels += [level.key for level in level_axis.levels]
        unique(levels, "level", "panels")
        axes = {axis.id: axis for axis in self.axes}
        for number, law in enumerate(self.laws):
            if law.axis:
                check_known("laws: axis", [law.axis], axes, ("laws", number, "axis"))
            check_known("laws: panels", law.panels, levels, ("laws", number, "panels"))
        for number, trait in enumerate(self.traits):
            check_known("traits: panels", trait.panels, levels, ("traits", number, "panels"))
        return self


class Spending(Document):
    """What a tier spends on a region."""

    budget_factor: Annotated[float, Field(gt=0)]
    """Factor on each region's budget."""
    first_points: Annotated[int, Field(ge=4, le=256)]
    """Points of each panel's first design, spread evenly; a power of two."""
    validation_points: Annotated[int, Field(ge=0, le=1000)]
    """Largest number of random points that validate the surfaces of a region."""


class RegionSettings(Document):
    """configs/regions.yaml."""

    seed: Annotated[int, Field(ge=0, le=2**32 - 1)]
    """Seed of the first points and the validation points."""
    replicates: Annotated[int, Field(ge=2, le=99)]
    """Runs at each first point, which show the noise, and at each validation point."""
    replicate_offset: Annotated[float, Field(ge=0, lt=0.05)]
    """Distance of replicates from their point, as a share of each axis."""
    batch_share: Annotated[float, Field(gt=0, le=1)]
    """Runs that are chosen before the surfaces are fitted again, as a share of those so far."""
    validation_share: Annotated[float, Field(gt=0, lt=1)]
    """Largest share of the budget for validation."""
    enough: Annotated[float, Field(ge=0, lt=1)]
    """Undecided share of the area at which no more points are run."""
    tiers: dict[str, Spending]
    """Tier to what it spends."""
    changed: list[Change] = []
    """List of [changes](#changes-after-results) made after results were seen."""


def region_path(root: Path, name: str) -> Path:
    """Return the file of a region."""
    return root / _REGIONS / f"{name}.yaml"


def region_names(root: Path) -> list[str]:
    """Return the ids of all regions, sorted."""
    return sorted(path.stem for path in (root / _REGIONS).glob("*.yaml"))


def load_region(root: Path, name: str) -> Region:
    """Read a region; InputError names each wrong field."""
    check_known("region", [name], region_names(root))
    path = region_path(root, name)
    region = read_model(path, Region)
    with located(path):
        if region.id != name:
            text = f"id: is {region.id!r}; it must be {name!r}, as the file is"
            raise InputError(text, ("id",))
    return region


def region_runs(root: Path, engines: Collection[str], studies: Collection[str]) -> list[str]:
    """Return `region/engine` of the regions of studies, on those of their engines in `engines`."""
    runs = []
    for name in region_names(root):
        region = load_region(root, name)
        if region.study in studies:
            runs += [f"{name}/{engine}" for engine in region.engines if engine in engines]
    return runs


def load_settings(root: Path) -> RegionSettings:
    """Read configs/regions.yaml; InputError names each wrong field."""
    return read_model(root / SETTINGS, RegionSettings)
