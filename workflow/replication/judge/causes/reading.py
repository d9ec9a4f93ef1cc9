"""Readings: what a printed number may be, other than what the study says it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.judge.bound import propagation_s
from replication.measure.cell_map import MappedCell
from replication.measure.metric_model import check_metric
from replication.study.claim_model import Flows
from replication.study.errors import InputError
from replication.study.model import Document, Identifier, Window
from replication.study.study import Study


class Reading(Document):
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
    def _changes_something(self) -> Reading:
        if self == Reading.model_construct():
            raise ValueError("a reading must change something: metric, aggregate, factor, ...")
        return self

    def of(self, cell: MappedCell) -> MappedCell:
        """Return the cell under this reading, its number as the value of our quantity."""
        changes = {
            name: value
            for name in ("metric", "aggregate", "flows", "window_s")
            if (value := getattr(self, name)) is not None
        }
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


def as_read(study: Study, cell: MappedCell, reading: Reading) -> MappedCell:
    """Return a cell under a reading in a study's set-up: a delay with the propagation it lacks."""
    found = reading.of(cell)
    if not reading.less_propagation:
        return found
    return replace(found, value=found.value + propagation_s(study, found.quantity))


def combined(readings: Iterable[Reading]) -> Reading | None:
    """Return several readings of one number as one: factors multiply; None for none at all."""
    found: Reading | None = None
    for reading in readings:
        if found is None:
            found = reading
            continue
        own = reading.model_dump(exclude_defaults=True)
        factor = found.factor * reading.factor
        document = found.model_dump(exclude_defaults=True) | own | {"factor": factor}
        found = Reading.model_validate(document)
    return found


def refusal(cell: MappedCell, reading: Reading | None) -> str:
    """Return why a number cannot be read so; empty where it can."""
    wanted = cell.quantity if reading is None else reading.of(cell).quantity
    try:
        windowed = wanted.window_s is not None
        metric = check_metric(wanted.metric, wanted.aggregate, windowed, wanted.links)
    except InputError as error:
        return str(error)
    unit = "1" if wanted.aggregate == "jain" else metric.unit
    if unit != cell.unit:
        return (
            f"table {cell.table}, column {cell.column} is in {cell.unit!r}, metric "
            f"{wanted.metric} in {unit!r}"
        )
    return ""
