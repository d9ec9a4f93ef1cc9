"""Hypotheses: what might explain a gap between a published table and ours, as data.

They stand in configs/hypotheses.yaml, written before their outcomes are looked at. A hypothesis
changes the *set-up* (parameters or links: it is simulated) or the *reading* of the table (metric,
aggregate, flows, window, factor: it is applied to runs that exist); or it says why it cannot be
tested here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from replication.measure.cell_map import MappedCell
from replication.measure.metric_model import check_metric
from replication.study.assumption import assumptions, variant
from replication.study.claim_model import Flows
from replication.study.errors import InputError
from replication.study.files import read_model
from replication.study.model import Document, Identifier, Text, Window
from replication.study.study import Study, unique

HYPOTHESES = Path("configs/hypotheses.yaml")


class Reading(Document):
    """Another meaning of a table's numbers; what is left out stays as the study has it.

    A printed value times `factor` is the value in our unit; `complement` then takes it from 1
    (a delivery ratio read as one minus a loss rate).
    """

    metric: Identifier | None = None
    """Another metric."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] | None = None
    """Another aggregate."""
    flows: Flows | None = None
    """Other flows."""
    window_s: Window | None = None
    """Another part of the run."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """What the printed value is multiplied by."""
    complement: bool = False
    """Take one minus the value, after `factor`."""

    @model_validator(mode="after")
    def _changes_something(self) -> Reading:
        if self == Reading.model_construct():
            raise ValueError("a reading must change metric, aggregate, flows, window_s or factor")
        return self

    def of(self, cell: MappedCell) -> MappedCell:
        """Return the cell under this reading."""
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


class Hypothesis(Document):
    """One possible explanation; exactly one of the last four says what it changes."""

    id: Identifier
    """Its name."""
    study: Identifier
    """The study's id."""
    tables: Annotated[list[str], Field(min_length=1)]
    """The tables that it would explain."""
    columns: Annotated[list[Identifier], Field(min_length=1)] | None = None
    """Only these columns of them."""
    title: Text
    """What it says."""
    reason: Text
    """Why it might be."""
    source: Text
    """Where that is documented."""
    parameters: Annotated[dict[str, JsonValue], Field(min_length=1)] | None = None
    """Parameter to value, inside the ledger's plausible range: simulated."""
    links: Annotated[dict[str, dict[str, JsonValue]], Field(min_length=1)] | None = None
    """Link to changed keys (`bottleneck: {loss_ab: {kind: random, probability: 0.01}}`):
    simulated."""
    reading: Reading | None = None
    """Another meaning of the numbers."""
    untestable: Text | None = None
    """Why it cannot be tested here."""

    @model_validator(mode="after")
    def _one_kind(self) -> Hypothesis:
        kinds = (self.parameters, self.links, self.reading, self.untestable)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(
                f"hypothesis {self.id}: give exactly one of parameters, links, reading, untestable"
            )
        return self

    @property
    def kind(self) -> str:
        """What it changes: parameters, links or reading; or untestable."""
        kinds = ("parameters", "links", "reading", "untestable")
        return next(kind for kind in kinds if getattr(self, kind) is not None)

    @property
    def is_simulated(self) -> bool:
        """Whether it needs runs of its own."""
        return self.kind in ("parameters", "links")

    def concerns(self, cell: MappedCell) -> bool:
        """Return whether the cell is among those that it would explain."""
        return cell.table in self.tables and (self.columns is None or cell.column in self.columns)

    def set_up(self, study: Study) -> Study:
        """Return the study with the set-up that is supposed."""
        changed = variant(study, self.parameters or {})
        for link, change in (self.links or {}).items():
            changed = _with_link(changed, link, change)
        return changed


def _with_link(study: Study, link: str, change: Mapping[str, JsonValue]) -> Study:
    experiments = []
    for experiment in study.experiments:
        links = [{**t, **change} if t["id"] == link else t for t in experiment.topology.links]
        topology = experiment.topology.model_copy(update={"links": links})
        experiments.append(experiment.model_copy(update={"topology": topology}))
    return study.model_copy(update={"experiments": experiments})


class Hypotheses(Document):
    """configs/hypotheses.yaml."""

    hypotheses: list[Hypothesis]

    @model_validator(mode="after")
    def _unique(self) -> Hypotheses:
        unique((f"{h.study}/{h.id}" for h in self.hypotheses), "hypothesis")
        return self

    def of(self, study: str) -> list[Hypothesis]:
        """Return the hypotheses on a study, in the file's order."""
        return [h for h in self.hypotheses if h.study == study]


def load_hypotheses(root: Path) -> Hypotheses:
    """Read configs/hypotheses.yaml; InputError names each wrong field."""
    return read_model(root / HYPOTHESES, Hypotheses)


def check_hypothesis(hypothesis: Hypothesis, study: Study, cells: list[MappedCell]) -> None:
    """Check a hypothesis against its study.

    Raises
    ------
    InputError
        It names a table, column, parameter or link that is not there, a value outside the ledger's
        plausible range, or a reading in another unit.
    """
    where = f"{HYPOTHESES}: hypothesis {hypothesis.id}"
    known = {table.id for table in study.tables}
    for table in hypothesis.tables:
        if table not in known:
            raise InputError(
                f"{where}: study {study.id} has no table {table!r}; it has {sorted(known)}"
            )
    concerned = [cell for cell in cells if hypothesis.concerns(cell)]
    if not concerned:
        raise InputError(f"{where}: columns {hypothesis.columns} have no cell in its tables")
    ledger = {assumption.key: assumption for assumption in assumptions(study)}
    for key, value in (hypothesis.parameters or {}).items():
        if key not in ledger:
            raise InputError(f"{where}: {key!r} is not an assumed parameter of study {study.id}")
        if not ledger[key].allows(value):
            raise InputError(
                f"{where}: {key} = {value!r} is not plausible by the ledger; widen its range there"
            )
    links = {str(link["id"]) for e in study.experiments for link in e.topology.links}
    for link in hypothesis.links or {}:
        if link not in links:
            raise InputError(f"{where}: no experiment has a link {link!r}; they have {links}")
    if hypothesis.reading is not None:
        _check_reading(where, hypothesis.reading, concerned)


def _check_reading(where: str, reading: Reading, cells: list[MappedCell]) -> None:
    for cell in cells:
        wanted = reading.of(cell).quantity
        try:
            metric = check_metric(wanted.metric, wanted.aggregate, wanted.window_s is not None)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        unit = "1" if wanted.aggregate == "jain" else metric.unit
        if unit != cell.unit:
            raise InputError(
                f"{where}: table {cell.table}, column {cell.column} is in {cell.unit!r}, metric "
                f"{wanted.metric} in {unit!r}"
            )
