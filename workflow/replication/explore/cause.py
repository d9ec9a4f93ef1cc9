"""Causes: single changes that may explain why a published table and ours differ, as data.

`configs/explanations/<study>.yaml` lists a study's possible causes, each with title, reason and
source, and the budget and held-out parts of the search for its best explanation
(`explore.explanation`). A cause changes the *configuration* (a variation of the study, simulated
for all tables) or the *interpretation* of a column (applied to existing runs), or it says why it
cannot be tested. An explanation is a set of causes, each at one of its levels.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from replication.base.errors import InputError, check_known, quoted
from replication.base.model import Document, Identifier, PositiveSeconds, Text, Window
from replication.base.position import located, read_model, within
from replication.design.config import explanations_path
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import check_metric
from replication.study.claim_model import Flows
from replication.study.parameter import unique
from replication.study.study import Study
from replication.study.variation import Range, Variation, assumptions, check_variation
from replication.study.verdict import Date
from replication.verdicts.bound import propagation_s


class Interpretation(Document):
    """Another meaning of a table's numbers; parts that are not given stay as the study has them.

    The paper is taken to print (ours - propagation) / `factor`, or 1 minus that.
    """

    metric: Identifier | None = None
    """Another metric."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] | None = None
    """Another aggregate."""
    flows: Flows | None = None
    """Other flows."""
    window_s: Window | None = None
    """Another part of the run; time before a flow starts counts as part of the whole run."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """Factor from the printed value to our unit: 1.024 for a kilo of 1024, 8 for bytes, 2 for half
    a round trip or half a sum."""
    complement: bool = False
    """The printed value is one minus the quantity, after `factor`."""
    less_propagation: bool = False
    """The printed delay excludes the path's propagation delay."""

    def of(self, cell: MappedCell) -> MappedCell:
        """Return the cell under this interpretation, its number as a value of our quantity."""
        changes: dict[str, object] = {}
        for name in ("metric", "aggregate", "flows", "window_s"):
            if (part := getattr(self, name)) is not None:
                changes[name] = part
        value = cell.value * self.factor
        return replace(
            cell,
            value=1.0 - value if self.complement else value,
            half_ulp=cell.half_ulp * self.factor,
            cell=cell.cell.model_copy(update=changes),
            quantity=cell.quantity.model_copy(update=changes),
        )

    def printed(self, measured: float, propagation_s: float) -> float:
        """Return what the paper would have printed for a value of ours."""
        value = measured - propagation_s if self.less_propagation else measured
        value /= self.factor
        return 1.0 - value if self.complement else value


def as_read(study: Study, cell: MappedCell, reading: Interpretation) -> MappedCell:
    """Return a cell under an interpretation, a delay with the propagation that it excludes."""
    read = reading.of(cell)
    if not reading.less_propagation:
        return read
    return replace(read, value=read.value + propagation_s(study, read.quantity))


def combined(readings: Iterable[Interpretation]) -> Interpretation:
    """Combine interpretations of one number, the study's without any; factors multiply."""
    changes: dict[str, object] = {}
    factor = 1.0
    for reading in readings:
        changes |= reading.model_dump(exclude_defaults=True)
        factor *= reading.factor
    return Interpretation.model_validate({**changes, "factor": factor})


def refusal(cell: MappedCell, reading: Interpretation) -> str:
    """Return why a number cannot have this interpretation; empty if it can."""
    wanted = reading.of(cell).quantity
    try:
        windowed = wanted.window_s is not None
        metric = check_metric(wanted.metric, wanted.aggregate, windowed)
    except InputError as error:
        return str(error)
    unit = "1" if wanted.aggregate == "jain" else metric.unit
    table = f"table {cell.table}, column {cell.column} is in {cell.unit!r}"
    return "" if unit == cell.unit else f"{table}, metric {wanted.metric} in {unit!r}"


#: Who suggested a cause.
Suggestion = Literal["document", "specification of the search", "search"]


class Added(Document):
    """When a cause was added."""

    date: Date
    """Day, as `2026-11-22`."""
    results: Literal["before", "after"]
    """Whether that was before or after results of the study were seen."""


class CauseLevel(Document):
    """One value of a cause: a variation of the study, or an interpretation."""

    key: Identifier
    """Its name."""
    title: Text | None = None
    """What it changes, if the cause's own title does not say it."""
    added: Added | None = None
    """When it was added, if not with the cause."""
    suggested_by: Suggestion | None = None
    """Who suggested it, if not who suggested the cause."""
    set: Variation | None = None
    """A variation of the study."""
    reading: Interpretation | None = None
    """Another meaning of a column."""


#: How well a cause agrees with what the paper and the tools say.
Plausibility = Literal[
    "printed", "tool default", "possible slip", "contradicts the text", "contradicts the data"
]
AGAINST_TEXT: Plausibility = "contradicts the text"
AGAINST_DATA: Plausibility = "contradicts the data"
#: A cause of such a plausibility is no part of an explanation.
CONTRADICTS = (AGAINST_TEXT, AGAINST_DATA)


class CauseRange(Range):
    """A range of plausible values of a number."""

    steps: Annotated[int, Field(ge=2, le=256)]
    """How many values are distinguished; a value costs the bits to name one of them."""
    tried: Annotated[list[float], Field(min_length=1)]
    """The values that the search starts with."""

    def values(self) -> list[float]:
        """Return the distinguished values."""
        return list(dict.fromkeys(self.at(n / (self.steps - 1)) for n in range(self.steps)))


class Cause(Document):
    """One possible cause; exactly one of `levels`, `range` with `set`, and `untestable`."""

    id: Identifier
    """Its name."""
    title: Text
    """What it changes."""
    reason: Text
    """Why it is possible."""
    source: Text
    """Where that is documented."""
    plausibility: Plausibility | None = None
    """printed: the paper says it somewhere; tool default: the paper does not say it, and the tools
    have it as a default or in an example; possible slip: the paper prints something else, perhaps
    by a slip; contradicts the text: the paper says something else anywhere; contradicts the data:
    what its authors recorded shows something else."""
    evidence: Text | None = None
    """The place in the paper or in the tool's documentation that `plausibility` rests on."""
    added: Added
    """When it was added."""
    suggested_by: Suggestion
    """Who suggested it: `document` is the one that `source` names; a cause of the `specification of
    the search` was given with the search; a cause of a `search` was made from what one found."""
    columns: list[Identifier] | None = None
    """For a reading: only these columns."""
    levels: Annotated[list[CauseLevel], Field(min_length=1)] | None = None
    """Its values."""
    range: CauseRange | None = None
    """A number instead of `levels`."""
    set: Variation | None = None
    """With `range`: the variation, with the number written `$value`."""
    outside_ledger: Text | None = None
    """Why a value outside the assumption's plausible range may be tried; pages mark it."""
    untestable: Text | None = None
    """Why it cannot be tested here."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (self.levels, self.range, self.untestable)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(f"cause {self.id}: give one of levels, range and untestable")
        if (self.range is None) != (self.set is None):
            raise ValueError(f"cause {self.id}: set goes with range")
        given = {(level.set is None, level.reading is None) for level in self.levels or []}
        if given and given not in ({(False, True)}, {(True, False)}):
            raise ValueError(f"cause {self.id}: every level has a set, or every one a reading")
        unique((level.key for level in self.levels or []), f"level of cause {self.id}", "levels")
        return self

    @property
    def kind(self) -> Literal["set-up", "reading", "untestable"]:
        """What it changes."""
        if self.untestable is not None:
            return "untestable"
        return "reading" if self.levels and self.levels[0].reading else "set-up"

    def title_at(self, level: str) -> str:
        """Return what the cause changes at a level."""
        titles = {choice.key: choice.title for choice in self.levels or []}
        return titles.get(level) or self.title

    def concerns(self, column: str) -> bool:
        """Return whether an interpretation applies to this column."""
        return self.columns is None or column in self.columns

    @cached_property
    def variations(self) -> dict[str, Variation]:
        """The variations that the search starts with, by the key of their level."""
        if self.range is not None:
            return {key: self.variation(key) for key in map(level_key, self.range.tried)}
        return {level.key: level.set for level in self.levels or [] if level.set is not None}

    def variation(self, key: str) -> Variation:
        """Return the variation at a level, or at any value of the range."""
        if self.range is not None and self.set is not None:
            value = float(key)
            return self.set.at(round(value) if self.range.whole else value)
        return self.variations[key]

    def level_bits(self, key: str) -> float:
        """Return the bits that name one level of the cause."""
        if self.range is None:
            return math.log2(len(self.levels or [1]))
        return math.log2(len(self.variations) if key in self.variations else self.range.steps)


def level_key(value: float) -> str:
    """Return the key of a value of a range."""
    # Six digits would turn 4 MiB into 4194300.
    return f"{value:.10g}"


class Part(Document):
    """A part of a study's cells."""

    rows: dict[str, list[str]] = {}
    """Table to the keys of its rows."""


class Stage(Part):
    """A part that the search may score: whole rows, or levels of an experiment's factors."""

    levels: dict[Identifier, dict[Identifier, list[str]]] = {}
    """Experiment to factor to the keys of its levels: the points that claims are judged on; other
    experiments are not run."""
    set: Variation | None = None
    """A variation of this stage alone, such as shorter runs."""


class HeldOut(Part):
    """What the search never scores, so that it can check the result."""

    claims: list[Identifier] = []
    """Claims; a search that explains cells never scores a claim."""
    reason: Text
    """Why these."""


class Coupled(Document):
    """Causes that only have an effect together: the search also starts with all of them.

    The best explanation with `cause` and the best one without it are both reported.
    """

    cause: Identifier
    """The cause that only one of the two explanations has."""
    title: Text
    """What they change together."""
    reason: Text
    """Why they belong together."""
    added: Added
    """When the starts were added."""
    suggested_by: Suggestion
    """Who suggested the starts. It holds for their causes at these levels too, since without the
    starts the search might not have reached them."""
    starts: Annotated[list[dict[Identifier, str]], Field(min_length=1)]
    """Cause to level, including `cause`; all are simulated causes."""

    @model_validator(mode="after")
    def _has_cause(self) -> Self:
        if not all(self.cause in start for start in self.starts):
            raise ValueError(f"coupled: every start must have the cause {self.cause}")
        return self


class Refuted(Document):
    """A published explanation that a document refuted later."""

    published: Date
    """Day of the first release with it."""
    causes: Annotated[list[Text], Field(min_length=1)]
    """Its causes, in words with their numbers."""
    cells: Annotated[int, Field(ge=1)]
    """Numbers of the paper."""
    matches_before: Annotated[int, Field(ge=0)]
    """How many matched at the defaults."""
    matches_after: Annotated[int, Field(ge=0)]
    """How many matched under it."""
    null_p: Annotated[float, Field(gt=0, le=1)]
    """Its p value in the permutation test."""
    refuted: Date
    """Day on which it was found wrong."""
    by: Text
    """The document, and what it shows."""


class Explanations(Document):
    """configs/explanations/<study>.yaml; every key: configs/README.md."""

    study: Identifier
    """The study's id."""
    score: Literal["cells", "claims"]
    """What is explained: numbers, or claims if the paper prints no numbers."""
    cpu_budget_s: PositiveSeconds
    """Expected CPU time of all runs, by the engine's cost model."""
    held_out: HeldOut
    """What is never scored."""
    stages: Annotated[list[Stage], Field(min_length=1)]
    """Growing parts of what the search may score: the first tries every cause; after the last the
    search scores everything that is not held out."""
    causes: list[Cause]
    """Its causes."""
    coupled: Coupled | None = None
    """Causes to start with together."""
    refuted: list[Refuted] = []
    """Earlier explanations that turned out wrong; the Method page lists them."""

    @model_validator(mode="after")
    def _unique(self) -> Self:
        unique((cause.id for cause in self.causes), "cause", "causes")
        return self

    @model_validator(mode="after")
    def _judged_as_published(self) -> Self:
        # After the last stage numbers are all scored once more; claims are not.
        if self.score == "claims" and self.stages[-1].set is not None:
            raise ValueError("stages: the last one must not have set, since it judges the result")
        return self

    @cached_property
    def by_id(self) -> dict[str, Cause]:
        """Causes by their id."""
        return {cause.id: cause for cause in self.causes}

    def of_kind(self, kind: str) -> list[Cause]:
        """Return the causes of one kind, in the file's order."""
        return [cause for cause in self.causes if cause.kind == kind]

    def origin(self, name: str, level: str, configuration: Mapping[str, str]) -> tuple[Added, str]:
        """Return when a cause of a configuration was added at a level, and who suggested it.

        A coupled cause at the level of a start counts as the start does, if the configuration has
        the main coupled cause.
        """
        coupled = self.coupled
        starts = coupled.starts if coupled and coupled.cause in configuration else []
        if coupled and any(start.get(name) == level for start in starts):
            return coupled.added, coupled.suggested_by
        cause = self.by_id[name]
        levels = {choice.key: choice for choice in cause.levels or []}
        chosen = levels.get(level)
        if chosen is None:
            return cause.added, cause.suggested_by
        return chosen.added or cause.added, chosen.suggested_by or cause.suggested_by

    @property
    def cause_bits(self) -> float:
        """The bits that name one of the tested causes."""
        tested = sum(cause.kind != "untestable" for cause in self.causes)
        return math.log2(max(tested, 2))


def load_explanations(root: Path, study: str) -> Explanations | None:
    """Read a study's causes; None if it has no file. InputError names each wrong field."""
    path = explanations_path(root, study)
    if not path.is_file():
        return None
    explanations = read_model(path, Explanations)
    with located(path):
        if explanations.study != study:
            text = f"study: is {explanations.study!r}; it must be {study!r}, as the file is"
            raise InputError(text, ("study",))
    return explanations


def check_explanations(
    explanations: Explanations, study: Study, cells: Sequence[MappedCell]
) -> None:
    """Check the causes, stages and held-out parts of a file against its study.

    InputError names what the study lacks, or an implausible value without a reason.
    """
    with within("held_out", words="held_out"):
        _check_rows(explanations.held_out, cells)
        claims = {claim.id for claim in study.claims}
        check_known("claims: claim", explanations.held_out.claims, claims, ("claims",))
        if explanations.score == "cells" and not explanations.held_out.rows:
            raise InputError("rows: name the rows that the search must not score", ())
    for number, stage in enumerate(explanations.stages):
        with within("stages", number, words=f"stages[{number}]"):
            _check_rows(stage, cells)
            for experiment, where in stage.levels.items():
                with within("levels", experiment, words="levels"):
                    study.check_levels(experiment, where)
            if stage.set is not None:
                with within("set"):
                    check_variation(study, stage.set)
    for cause in explanations.causes:
        with within("causes", cause.id, words=f"cause {cause.id}"):
            if cause.kind == "reading":
                _check_reading(cause, cells)
            for key, variation in cause.variations.items():
                place = ("levels", key, "set") if cause.range is None else ("set",)
                with within(*place):
                    _check_variation(cause, variation, study)
    if explanations.coupled is not None:
        _check_starts(explanations.coupled, explanations.by_id)


def _check_starts(coupled: Coupled, causes: Mapping[str, Cause]) -> None:
    for number, start in enumerate(coupled.starts):
        for name, level in start.items():
            if name not in causes or level not in causes[name].variations:
                text = f"coupled: no simulated cause {name} has a level {level!r}"
                raise InputError(text, ("coupled", "starts", number, name))


def _check_rows(part: Part, cells: Sequence[MappedCell]) -> None:
    check_known("rows: table", part.rows, {cell.table for cell in cells}, ("rows",))
    for table, keys in part.rows.items():
        rows = {cell.row for cell in cells if cell.table == table}
        check_known(f"rows.{table}: row", keys, rows, ("rows", table))


def _check_reading(cause: Cause, cells: Sequence[MappedCell]) -> None:
    columns = {cell.column for cell in cells}
    check_known("columns: column", cause.columns or [], columns, ("columns",))
    concerned = [cell for cell in cells if cause.concerns(cell.column)]
    if not concerned:
        raise InputError("its columns have no number", ("columns",))
    for level in cause.levels or []:
        refused = [refusal(cell, level.reading or Interpretation()) for cell in concerned]
        if all(refused):
            place = "levels", level.key, "reading"
            raise InputError(f"level {level.key}: {refused[0]}", place)


def _check_variation(cause: Cause, variation: Variation, study: Study) -> None:
    check_variation(study, variation)
    assumed = {assumption.key: assumption for assumption in assumptions(study)}
    for part in ("defaults", "parameters"):
        for key, value in getattr(variation, part).items():
            plausible = key in assumed and assumed[key].allows(value)
            if not plausible and cause.outside_ledger is None:
                raise InputError(
                    f"{key} = {quoted(value)} is not plausible by the study's assumptions; widen "
                    "the range there, or say under outside_ledger why it may be tried",
                    (part, key),
                )
