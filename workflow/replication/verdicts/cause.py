"""Causes: what may lie between a published table and ours, each one change, as data.

`configs/explanations/<study>.yaml` has a study's possible causes, each with title, reason and
source, and what the search for its best explanation (`explore.explanation`) may spend and must
not see. A cause changes the *configuration* (a variation of the study: it is simulated, for all
tables, as they come from one paper) or the *reading* of a column (it is applied to runs that
exist); or it says why it cannot be tested here. An explanation is a set of causes, each at one of
its levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.design.config import explanations_path
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import check_metric
from replication.study.claim_model import Flows
from replication.study.errors import InputError
from replication.study.files import read_model
from replication.study.model import Document, Identifier, PositiveSeconds, Text, Window
from replication.study.parameter import unique
from replication.study.study import Study
from replication.study.variation import Range, Variation, apply, assumptions
from replication.verdicts.bound import propagation_s


class Interpretation(Document):
    """Another meaning of a table's numbers; what is left out stays as the study has it.

    What the paper prints is taken for (ours - propagation) / `factor`, or for 1 less that.
    """

    metric: Identifier | None = None
    """Another metric."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] | None = None
    """Another aggregate."""
    flows: Flows | None = None
    """Other flows."""
    window_s: Window | None = None
    """Another part of the run; the whole of it takes silence before a start for part of it."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """What the printed value is multiplied by to be in our unit: 1.024 for a kilo of 1024, 8 for
    bytes, 2 for half a round trip or for a sum that is divided by two."""
    complement: bool = False
    """The printed value is one minus the quantity, after `factor`."""
    less_propagation: bool = False
    """The printed delay leaves the path's propagation out."""

    @model_validator(mode="after")
    def _changes_something(self) -> Interpretation:
        if self == Interpretation.model_construct():
            raise ValueError("a reading must change something: metric, aggregate, factor, ...")
        return self

    def of(self, cell: MappedCell) -> MappedCell:
        """Return the cell under this reading, its number as the value of our quantity."""
        parts = {"metric", "aggregate", "flows", "window_s"}
        changes = {name: value for name, value in self if name in parts and value is not None}
        value = cell.value * self.factor
        return replace(
            cell,
            value=1.0 - value if self.complement else value,
            half_ulp=cell.half_ulp * self.factor,
            cell=cell.cell.model_copy(update=changes),
            quantity=cell.quantity.model_copy(update=changes),
        )

    def printed(self, ours: float, propagation_s: float) -> float:
        """Return what the paper would have printed for a value of ours."""
        value = (ours - propagation_s if self.less_propagation else ours) / self.factor
        return 1.0 - value if self.complement else value


def as_read(study: Study, cell: MappedCell, reading: Interpretation) -> MappedCell:
    """Return a cell under a reading of a study: a delay with the propagation it lacks."""
    found = reading.of(cell)
    if not reading.less_propagation:
        return found
    return replace(found, value=found.value + propagation_s(study, found.quantity))


def combined(readings: Iterable[Interpretation]) -> Interpretation | None:
    """Return several readings of one number as one: factors multiply; None for none at all."""

    found = list(readings)
    if not found:
        return None
    factor = math.prod(reading.factor for reading in found)
    changes: dict[str, object] = {}
    for reading in found:
        changes |= reading.model_dump(exclude_defaults=True)
    return Interpretation.model_validate({**changes, "factor": factor})


def refusal(cell: MappedCell, reading: Interpretation | None) -> str:
    """Return why a number cannot be read so; empty where it can."""
    wanted = cell.quantity if reading is None else reading.of(cell).quantity
    try:
        metric = check_metric(
            wanted.metric, wanted.aggregate, wanted.window_s is not None, wanted.links
        )
    except InputError as error:
        return str(error)
    unit = "1" if wanted.aggregate == "jain" else metric.unit
    table = f"table {cell.table}, column {cell.column} is in {cell.unit!r}"
    return "" if unit == cell.unit else f"{table}, metric {wanted.metric} in {unit!r}"


class CauseLevel(Document):
    """One value of a cause: a variation of the study, or a reading."""

    key: Identifier
    """Its name."""
    title: Text | None = None
    """What it says, where the cause's own title does not."""
    set: Variation | None = None
    """A variation of the study."""
    reading: Interpretation | None = None
    """Another meaning of a column."""


#: How well a cause agrees with what the paper and the tools say.
Plausibility = Literal["printed", "tool default", "possible slip", "contradicts the text"]


class CauseRange(Range):
    """Values of a number, from the least to the greatest that are plausible."""

    steps: Annotated[int, Field(ge=2, le=256)]
    """How finely it is told apart: what a value costs is the bits to name one of them."""
    tried: Annotated[list[float], Field(min_length=1)]
    """The values that the search starts from."""

    @model_validator(mode="after")
    def _within(self) -> CauseRange:
        if not all(self.low <= value <= self.high for value in self.tried):
            raise ValueError("range: tried has a value outside of low and high")
        return self

    def values(self) -> list[float]:
        """Return its steps."""
        return list(dict.fromkeys(self.at(n / (self.steps - 1)) for n in range(self.steps)))


class Cause(Document):
    """One possible cause; exactly one of `levels`, `range` with `set`, and `untestable`."""

    id: Identifier
    """Its name."""
    title: Text
    """What it says."""
    reason: Text
    """Why it might be."""
    source: Text
    """Where that is documented."""
    plausibility: Plausibility | None = None
    """printed: the paper says so somewhere; tool default: the paper is silent, and a default or an
    example of the tools has it; possible slip: the paper prints something else, which a slip
    explains; contradicts the text: the paper prints something else."""
    evidence: Text | None = None
    """The place in the paper or in the tool's documentation that `plausibility` rests on."""
    tables: list[str] | None = None
    """Of a reading: only these tables."""
    columns: list[Identifier] | None = None
    """Of a reading: only these columns."""
    levels: Annotated[list[CauseLevel], Field(min_length=1)] | None = None
    """Its values."""
    range: CauseRange | None = None
    """Or a number."""
    set: Variation | None = None
    """With `range`: what takes the number, written `$value`."""
    outside_ledger: Text | None = None
    """Why a value outside the ledger's plausible range may be tried; such an explanation is
    marked."""
    untestable: Text | None = None
    """Why it cannot be tested here."""

    @model_validator(mode="after")
    def _one_kind(self) -> Cause:
        kinds = (self.levels, self.range, self.untestable)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(f"cause {self.id}: give one of levels, range and untestable")
        if (self.range is None) != (self.set is None):
            raise ValueError(f"cause {self.id}: set goes with range")
        given = {(level.set is None, level.reading is None) for level in self.levels or []}
        if given and given not in ({(False, True)}, {(True, False)}):
            raise ValueError(f"cause {self.id}: every level has a set, or every one a reading")
        unique((level.key for level in self.levels or []), f"level of cause {self.id}")
        return self

    @property
    def kind(self) -> Literal["set-up", "reading", "untestable"]:
        """What it changes."""
        if self.untestable is not None:
            return "untestable"
        return "reading" if self.levels and self.levels[0].reading else "set-up"

    def concerns(self, table: str, column: str) -> bool:
        """Return whether it may read this column of this table."""
        in_table = self.tables is None or table in self.tables
        return in_table and (self.columns is None or column in self.columns)

    @cached_property
    def variations(self) -> dict[str, Variation]:
        """The variations that the search starts from, by the key of their level."""
        if self.range is not None:
            return {key: self.variation(key) for key in map(level_key, self.range.tried)}
        return {level.key: level.set for level in self.levels or [] if level.set is not None}

    def variation(self, key: str) -> Variation:
        """Return the variation at a level, of a range at any value inside of it."""
        if self.range is not None and self.set is not None:
            value = float(key)
            return self.set.at(round(value) if self.range.whole else value)
        return self.variations[key]

    def level_bits(self, key: str) -> float:
        """Return the bits that name the level among the others of the cause."""
        if self.range is None:
            return math.log2(len(self.levels or [1]))
        return math.log2(len(self.variations) if key in self.variations else self.range.steps)


def level_key(value: float) -> str:
    """Return the key of a value of a range."""
    # Six digits would make 4194300 of 4 MiB.
    return f"{value:.10g}"


class Stage(Document):
    """A part of a study's cells or claims; whole rows, or levels of an experiment's factors."""

    rows: dict[str, list[str]] = {}
    """Table to the keys of its rows."""
    levels: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the keys of its levels: the points that claims are judged on; an
    experiment that is left out is not run."""
    claims: list[Identifier] = []
    """Claims."""


class HeldOut(Document):
    """What the search never scores: it judges what is found."""

    rows: dict[str, list[str]] = {}
    """Table to the keys of its rows."""
    claims: list[Identifier] = []
    """Claims; with cells to explain no claim is ever scored."""
    reason: Text
    """Why these."""


class Coupled(Document):
    """Causes that cancel each other until all are there: the search starts from them together too.

    The best explanation with `cause` and the best without it are reported side by side.
    """

    cause: Identifier
    """The cause that only one of the two explanations has."""
    title: Text
    """What they say together."""
    reason: Text
    """Why they belong together."""
    starts: Annotated[list[dict[Identifier, str]], Field(min_length=1)]
    """Cause to level, `cause` among them, each of a cause that is simulated."""

    @model_validator(mode="after")
    def _has_cause(self) -> Coupled:
        if not all(self.cause in start for start in self.starts):
            raise ValueError(f"coupled: every start must have the cause {self.cause}")
        return self


class Explanations(Document):
    """configs/explanations/<study>.yaml; every key: configs/README.md."""

    schema_version: Literal[1] = 1
    """The form of the file."""
    study: Identifier
    """The study's id."""
    score: Literal["cells", "claims"]
    """What is to be explained: numbers, or, where the paper prints none, claims."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time of all runs, by the engine's cost model."""
    held_out: HeldOut
    """What is never scored."""
    stages: Annotated[list[Stage], Field(min_length=1)]
    """Growing parts of what may be seen: the first tries everything, the last is followed by all
    that may be seen."""
    causes: list[Cause]
    """Its causes."""
    coupled: Coupled | None = None
    """Causes to start from together."""

    @model_validator(mode="after")
    def _unique(self) -> Explanations:
        unique((cause.id for cause in self.causes), "cause")
        return self

    @cached_property
    def by_id(self) -> dict[str, Cause]:
        """Causes by their id."""
        return {cause.id: cause for cause in self.causes}

    def of_kind(self, kind: str) -> list[Cause]:
        """Return the causes of one kind, in the file's order."""
        return [cause for cause in self.causes if cause.kind == kind]

    @property
    def cause_bits(self) -> float:
        """The bits that name one cause among all that are tested."""
        tested = sum(cause.kind != "untestable" for cause in self.causes)
        return math.log2(max(tested, 2))


def load_explanations(root: Path, study: str) -> Explanations | None:
    """Read a study's causes; None where it has none. InputError names each wrong field."""
    path = explanations_path(root, study)
    if not path.is_file():
        return None
    found = read_model(path, Explanations)
    if found.study != study:
        raise InputError(f"{path}: study: is {found.study!r}; it must be {study!r}, as the file is")
    return found


def check_explanations(found: Explanations, study: Study, cells: Sequence[MappedCell]) -> None:
    """Check a study's causes, stages and held-out rows against it.

    InputError names what is not there, or a value outside the ledger without a reason.
    """
    where = explanations_path(Path(), study.id)
    rows: dict[str, set[str]] = {}
    for cell in cells:
        rows.setdefault(cell.table, set()).add(cell.row)
    parts: dict[str, HeldOut | Stage] = {"held_out": found.held_out}
    parts |= {f"stages[{number}]": stage for number, stage in enumerate(found.stages)}
    for place, part in parts.items():
        for table, keys in part.rows.items():
            if unknown := set(keys) - rows.get(table, set()):
                named = f"{where}: {place}.rows.{table}"
                raise InputError(f"{named}: study has no row {min(unknown)!r}")
        _check_known(f"{where}: study", "claim", part.claims, {claim.id for claim in study.claims})
    if found.score == "cells" and not found.held_out.rows:
        raise InputError(f"{where}: held_out.rows: name rows that the search must not see")
    for cause in found.causes:
        if cause.kind == "reading":
            _check_reading(f"{where}: cause {cause.id}", cause, cells)
        for variation in cause.variations.values():
            _check_variation(f"{where}: cause {cause.id}", cause, variation, study)
    for start in found.coupled.starts if found.coupled else []:
        for name, level in start.items():
            if name not in found.by_id or level not in found.by_id[name].variations:
                raise InputError(
                    f"{where}: coupled: no simulated cause {name} has a level {level!r}"
                )


def _check_reading(named: str, cause: Cause, cells: Sequence[MappedCell]) -> None:
    concerned = [cell for cell in cells if cause.concerns(cell.table, cell.column)]
    if not concerned:
        raise InputError(f"{named}: no number stands in its tables and columns")
    for level in cause.levels or []:
        refused = [refusal(cell, level.reading) for cell in concerned]
        if all(refused):
            raise InputError(f"{named}: level {level.key}: {refused[0]}")


def _check_variation(named: str, cause: Cause, variation: Variation, study: Study) -> None:
    apply(study, variation)
    links = {str(link["id"]) for e in study.experiments for link in e.topology.links} | {"*"}
    flows = {str(flow["id"]) for e in study.experiments for flow in e.flows} | {"*"}
    changed = [*variation.links, *variation.rate_factor, *variation.delay_factor]
    _check_known(f"{named}: the study", "link", changed, links)
    _check_known(f"{named}: the study", "flow", variation.flows, flows)
    ledger = {assumption.key: assumption for assumption in assumptions(study)}
    for key, value in variation.values.items():
        plausible = key in ledger and ledger[key].allows(value)
        if not plausible and cause.outside_ledger is None:
            raise InputError(
                f"{named}: {key} = {value!r} is not plausible by the ledger; widen its range "
                "there, or say under outside_ledger why it may be tried"
            )


def _check_known(named: str, what: str, given: Iterable[str], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"{named} has no {what} {name!r}; it has {', '.join(sorted(known))}")
