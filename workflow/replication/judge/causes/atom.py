"""Atoms: what may lie between a published table and ours, each one change, as data.

`configs/explanations/<study>.yaml` has a study's atoms, each with title, reason and source, and
what the search for its best explanation (`sensitivity.why`) may spend and must not see. An atom
changes the *set-up* (parameters, links, flows: it is simulated, for all tables, as they come from
one paper) or the *reading* of a column (it is applied to runs that exist); or it says why it cannot
be tested here. An explanation is a set of atoms, each at one of its levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from replication.judge.causes.reading import Reading
from replication.study.assumption import variant
from replication.study.errors import InputError
from replication.study.files import read_model
from replication.study.model import Document, Identifier, PositiveSeconds, Text
from replication.study.sensitivity_settings import explanations_path
from replication.study.study import Study, unique

#: Stands for the value of a range in its `set`.
VALUE = "$value"

Changed = dict[str, dict[str, JsonValue]]


class Setting(Document):
    """A changed set-up; at least one of its parts."""

    parameters: dict[str, JsonValue] = {}
    """Parameter (`experiment/name` for one of an experiment) to value."""
    links: Changed = {}
    """Link (as in the topology's template, or `*`) to changed keys."""
    rate_factor: dict[str, Annotated[float, Field(gt=0)]] = {}
    """Link (as in the template, or `*`) to what its rate is multiplied by: another meaning of the
    unit in which it is printed."""
    delay_factor: dict[str, Annotated[float, Field(gt=0)]] = {}
    """As `rate_factor`, of the link's delay."""
    flows: Changed = {}
    """Flow (as in the template, or `*`) to changed keys."""

    @model_validator(mode="after")
    def _changes_something(self) -> Setting:
        if self == Setting.model_construct():
            raise ValueError("give parameters, links, rate_factor, delay_factor or flows")
        return self

    def at(self, value: float) -> Setting:
        """Return the setting with a value in the place of `$value`."""
        return Setting.model_validate(_put(self.model_dump(), value))

    def on(self, study: Study) -> Study:
        """Return the study with this set-up; InputError where a name is not there."""
        changed = variant(study, self.parameters)
        experiments = []
        for experiment in changed.experiments:
            links = [self._link(link) for link in experiment.topology.links]
            topology = experiment.topology.model_copy(update={"links": links})
            flows = [{**flow, **_own(self.flows, str(flow["id"]))} for flow in experiment.flows]
            update = {"topology": topology, "flows": flows}
            experiments.append(experiment.model_copy(update=update))
        return changed.model_copy(update={"experiments": experiments})

    def _link(self, link: dict[str, Any]) -> dict[str, Any]:
        name = str(link["id"])
        found = {**link, **_own(self.links, name)}
        for field, factors in (("rate_bps", self.rate_factor), ("delay_s", self.delay_factor)):
            factor = factors.get(name, factors.get("*"))
            if factor is not None:
                value = found[field]
                is_text = isinstance(value, str)
                found[field] = f"{value} * {factor:g}" if is_text else value * factor
        return found


class Level(Document):
    """One value of an atom: a changed set-up, or a reading."""

    key: Identifier
    """Its name."""
    title: Text | None = None
    """What it says, where the atom's own title does not."""
    set: Setting | None = None
    """A changed set-up."""
    reading: Reading | None = None
    """Another meaning of a column."""


class Range(Document):
    """Values of a number, from the least to the greatest that are plausible."""

    low: float
    """The least."""
    high: float
    """The greatest."""
    log: bool = False
    """Walked by factors."""
    whole: bool = False
    """Whole numbers only."""
    steps: Annotated[int, Field(ge=2, le=256)]
    """How finely it is told apart: what a value costs is the bits to name one of them."""
    tried: Annotated[list[float], Field(min_length=1)]
    """The values that the search starts from."""

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError("range: low must be below high, and above zero on a log scale")
        if not all(self.low <= value <= self.high for value in self.tried):
            raise ValueError("range: tried has a value outside of low and high")
        return self

    def values(self) -> list[float]:
        """Return its steps, those tried first among them where they coincide."""
        found = []
        for step in range(self.steps):
            share = step / (self.steps - 1)
            if self.log:
                value = self.low * (self.high / self.low) ** share
            else:
                value = self.low + share * (self.high - self.low)
            value = round(value) if self.whole else float(f"{value:.3g}")
            if value not in found:
                found.append(value)
        return found


class Atom(Document):
    """One possible cause; exactly one of `levels`, `range` with `set`, and `untestable`."""

    id: Identifier
    """Its name."""
    title: Text
    """What it says."""
    reason: Text
    """Why it might be."""
    source: Text
    """Where that is documented."""
    tables: list[str] | None = None
    """Of a reading: only these tables."""
    columns: list[Identifier] | None = None
    """Of a reading: only these columns."""
    levels: Annotated[list[Level], Field(min_length=1)] | None = None
    """Its values."""
    range: Range | None = None
    """Or a number."""
    set: Setting | None = None
    """With `range`: what takes the number, written `$value`."""
    outside_ledger: Text | None = None
    """Why a value outside the ledger's plausible range may be tried; such an explanation is
    marked."""
    untestable: Text | None = None
    """Why it cannot be tested here."""

    @model_validator(mode="after")
    def _one_kind(self) -> Atom:
        kinds = (self.levels, self.range, self.untestable)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(f"atom {self.id}: give one of levels, range and untestable")
        if (self.range is None) != (self.set is None):
            raise ValueError(f"atom {self.id}: set goes with range")
        given = {(level.set is None, level.reading is None) for level in self.levels or []}
        if given and given not in ({(False, True)}, {(True, False)}):
            raise ValueError(f"atom {self.id}: every level has a set, or every one a reading")
        unique((level.key for level in self.levels or []), f"level of atom {self.id}")
        return self

    @property
    def is_reading(self) -> bool:
        """Whether it reads a column in another way."""
        return bool(self.levels) and self.levels is not None and self.levels[0].reading is not None

    @property
    def kind(self) -> Literal["set-up", "reading", "untestable"]:
        """What it changes."""
        if self.untestable is not None:
            return "untestable"
        return "reading" if self.is_reading else "set-up"

    def concerns(self, table: str, column: str) -> bool:
        """Return whether it may read this column of this table."""
        in_table = self.tables is None or table in self.tables
        return in_table and (self.columns is None or column in self.columns)

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """The set-ups that the search starts from, by the key of their level."""
        if self.range is not None:
            return {level_key(value): self.setting(level_key(value)) for value in self.range.tried}
        return {level.key: level.set for level in self.levels or [] if level.set is not None}

    def setting(self, key: str) -> Setting:
        """Return the set-up at a level, of a range at any value inside of it."""
        if self.range is not None and self.set is not None:
            value = float(key)
            return self.set.at(round(value) if self.range.whole else value)
        return self.settings[key]

    def level_bits(self, key: str) -> float:
        """Return the bits that name the level among the others of the atom."""
        if self.range is None:
            return math.log2(len(self.levels or [1]))
        tried = {level_key(value) for value in self.range.tried}
        return math.log2(len(tried) if key in tried else self.range.steps)


def level_key(value: float) -> str:
    """Return the key of a value of a range."""
    return f"{value:g}"


class Part(Document):
    """A part of a study's cells or claims; whole rows, or levels of an experiment's factors."""

    rows: dict[str, list[str]] = {}
    """Table to the keys of its rows."""
    levels: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the keys of its levels: the points that claims are judged on; an
    experiment that is left out is not run."""
    claims: list[Identifier] = []
    """Claims."""


class Unseen(Document):
    """What the search never scores: it judges what is found."""

    rows: dict[str, list[str]] = {}
    """Table to the keys of its rows."""
    claims: list[Identifier] = []
    """Claims; with cells to explain no claim is ever scored."""
    reason: Text
    """Why these."""


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
    unseen: Unseen
    """What is never scored."""
    rungs: Annotated[list[Part], Field(min_length=1)]
    """Growing parts of what may be seen: the first tries everything, the last is followed by all
    that may be seen."""
    atoms: list[Atom]
    """Its atoms."""

    @model_validator(mode="after")
    def _unique(self) -> Explanations:
        unique((atom.id for atom in self.atoms), "atom")
        return self

    @cached_property
    def by_id(self) -> dict[str, Atom]:
        """Atoms by their id."""
        return {atom.id: atom for atom in self.atoms}

    def of_kind(self, kind: str) -> list[Atom]:
        """Return the atoms of one kind, in the file's order."""
        return [atom for atom in self.atoms if atom.kind == kind]

    @property
    def atom_bits(self) -> float:
        """The bits that name one atom among all that are tested."""
        tested = [atom for atom in self.atoms if atom.kind != "untestable"]
        return math.log2(max(len(tested), 2))


def load_atoms(root: Path, study: str) -> list[Atom]:
    """Return a study's atoms, none where it has no file of them; InputError as below."""
    found = load_explanations(root, study)
    return found.atoms if found else []


def load_explanations(root: Path, study: str) -> Explanations | None:
    """Read a study's atoms; None where it has none.

    Raises
    ------
    InputError
        Names each wrong field.
    """
    path = explanations_path(root, study)
    if not path.is_file():
        return None
    found = read_model(path, Explanations)
    if found.study != study:
        raise InputError(f"{path}: study: is {found.study!r}; it must be {study!r}, as the file is")
    return found


def _own(changes: Mapping[str, dict[str, JsonValue]], name: str) -> dict[str, JsonValue]:
    return {**changes.get("*", {}), **changes.get(name, {})}


def _put(value: Any, number: float) -> Any:
    if isinstance(value, dict):
        return {key: _put(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, number) for item in value]
    return number if value == VALUE else value


def named_links(study: Study) -> set[str]:
    """Return the links of all templates of a study."""
    return {str(link["id"]) for e in study.experiments for link in e.topology.links}


def named_flows(study: Study) -> Iterator[str]:
    """Yield the flows of all templates of a study."""
    for experiment in study.experiments:
        for flow in experiment.flows:
            yield str(flow["id"])
