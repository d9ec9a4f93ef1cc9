"""A study: one published paper as data, read from YAML files below ``configs/studies/``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from replication.study.claim_model import AllTest, Claim, Unjudged, Where
from replication.study.model import Document, EngineName, Identifier, PositiveSeconds, Text
from replication.study.parameter import MOST_POINTS, Factor, Parameter, Parameters, unique
from replication.study.published import Table
from replication.study.verdict import Change, StudyChange, Subject

#: What stands for all studies where one is asked for.
ALL_STUDIES = "all"
ExperimentType = Literal[
    "cbr_sweep",
    "pairwise_fairness",
    "queuing",
    "homogeneous_dumbbell",
    "throughput_tables",
    "bdp_jain",
    "cwnd_traces",
]

#: The report's own pages, which no study may be called, with their titles in the menu, if any.
REPORT_PAGES = {
    "index": "",
    "changes": "",
    "regions": "Where it holds",
    "engines": "Engines",
    "method": "Method",
}
#: The table of results without which there is no page of regions.
REGIONS_TABLE = "regions.csv"
#: What the engines show in canonical scenarios, written by tests/engines/conformance.py.
CONFORMANCE = Path("data/conformance.csv")
#: Where engines differ in what one flow gets, written by tests/engines/differences.py.
DIFFERENCES = Path("data/engine_differences.csv")
#: What no study may be called, since it stands for something else.
RESERVED = frozenset({*REPORT_PAGES, ALL_STUDIES, "available"})


class Topology(Document):
    """Templates of nodes and links; see `study.template` for `$name`, `repeat` and `{i}`."""

    nodes: Annotated[list[JsonValue], Field(min_length=2)]
    links: Annotated[list[dict[str, JsonValue]], Field(min_length=1)]
    monitors: list[dict[str, JsonValue]] = []


class ReplicatesAtLeast(Document):
    """Replicates that an experiment needs, on engines on which its dearest point is cheap."""

    count: Annotated[int, Field(ge=1, le=1000)]
    where_cost_below_s: PositiveSeconds | None = None


class Experiment(Document):
    """A full factorial of factors over one topology and its flows."""

    id: Identifier
    """Its name."""
    type: ExperimentType
    """Which notebook shows it: `cbr_sweep`, `pairwise_fairness`, `queuing`,
    `homogeneous_dumbbell`, `throughput_tables`, `bdp_jain` or `cwnd_traces`."""
    title: Text
    """What it is."""
    question: Text
    """What it asks."""
    place: Text
    """Where the paper describes it."""
    parameters: Parameters = {}
    """Over the study's."""
    factors: Annotated[list[Factor], Field(min_length=1)]
    """What is varied; every combination of levels is a point, or a replicate of one where the
    factor is `averaged`."""
    topology: Topology
    """`nodes` *, `links` *, `monitors`."""
    flows: Annotated[list[dict[str, JsonValue]], Field(min_length=1)]
    """Templates of flows; a key that is left out takes the parameter of its name, if there is
    one."""
    host: dict[str, JsonValue] | None = None
    """Template of what all hosts have in common."""
    duration_s: JsonValue = "$duration_s"
    """Length of a run."""
    sampling_interval_s: JsonValue = "$sampling_interval_s"
    """Of the series: 0.1 for what is read over time, 0.5 to 1 for tables."""
    replicates_at_least: ReplicatesAtLeast | None = None
    """`count` *, `where_cost_below_s`: the least number of replicates, in tiers that heed it, on
    engines on which no point's run is expected to cost so much (s of CPU)."""

    @model_validator(mode="after")
    def _unique_factors(self) -> Experiment:
        unique((factor.id for factor in self.factors), f"factor of experiment {self.id}")
        points = math.prod(len(factor.levels) for factor in self.factors)
        if points > MOST_POINTS:
            raise ValueError(
                f"experiment {self.id}: its factors make {points} points, more than {MOST_POINTS}; "
                "vary less"
            )
        if not self.axes:
            raise ValueError(
                f"experiment {self.id}: all its factors are averaged: nothing is left to compare; "
                "add a factor, if of one level"
            )
        return self

    @property
    def axes(self) -> list[Factor]:
        """Return the factors whose levels make points; the others' make replicates."""
        return [factor for factor in self.factors if not factor.averaged]

    def factor(self, name: str) -> Factor:
        """Return the factor called `name`; KeyError where there is none."""
        return {factor.id: factor for factor in self.factors}[name]


class Bibliography(Document):
    """The paper."""

    title: Text
    authors: Annotated[list[Text], Field(min_length=1)]
    year: int | None = None
    venue: Text | None = None


class OriginalSystem(Document):
    """What the paper ran; `engine` is the family whose verdicts are the study's headline."""

    engine: EngineName
    description: Text
    repetitions: Text | None = None


class Notes(Document):
    """Prose for the report's summary page."""

    scope: Text
    easy: Text
    hard: Text
    threats: list[Text] = []
    differences: list[Text] = []


class Substitution(Document):
    """What an engine runs in the place of a parameter's value that it cannot have."""

    engine: EngineName
    """The engine that it holds for."""
    set: Annotated[dict[Identifier, JsonValue], Field(min_length=1)]
    """Parameter to its value there; a level that sets the parameter goes before it."""
    reason: Text
    """Why the engine cannot have what the study asks for."""


class Study(Document):
    """One paper; see the module's docstring."""

    schema_version: Literal[1] = 1
    """Version of this format."""
    id: Identifier
    """The file's name."""
    title: Text
    """Short title in the report."""
    bibliography: Bibliography
    """`title` *, `authors` * (list), `year`, `venue`."""
    original_system: OriginalSystem
    """`engine` *: family of what the paper ran (`ns3`, `ns2`, `linux`); `description` *;
    `repetitions`: what the paper says of repeated runs and of their spread, if it does."""
    notes: Notes
    """Prose of the summary page: `scope` *, `easy` *, `hard` *, `threats` (list), `differences`
    (list)."""
    parameters: Parameters
    """Values that all experiments share."""
    substitutions: list[Substitution] = []
    """What an engine runs where it cannot have what the study asks for."""
    experiments: Annotated[list[Experiment], Field(min_length=1)]
    """Factorials of points to run."""
    tables: list[Table] = []
    """Published tables, mapped to points."""
    claims: list[Claim] = []
    """The paper's results in its own sentences, each with its test."""
    unjudged: list[Unjudged] = []
    """Sentences that are no results: listed, and not judged."""
    changes: list[StudyChange] = []
    """What was changed after results were seen."""

    @field_validator("id")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value in RESERVED:
            raise ValueError("is a name that the report or the command line needs; give another")
        return value

    @field_validator("claims")
    @classmethod
    def _parts_for_each_level(cls, claims: list[Claim], info: ValidationInfo) -> list[Claim]:
        experiments = {e.id: e for e in info.data.get("experiments", [])}
        return [_written_out(claim, experiments) for claim in claims]

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        unique((e.id for e in self.experiments), "experiment")
        unique((t.id for t in self.tables), "table")
        unique((c.id for c in self.sentences), "claim")
        unique((s.engine for s in self.substitutions), "substitution")
        self._check_parameters()
        for claim in self.claims:
            for quantity in claim.quantities():
                self._check_where(f"claim {claim.id}", quantity.experiment, quantity.where)
        for table in self.tables:
            own = f"table {table.id}"
            factors: Where = {f: [] for f in (table.row_factor, table.column_factor) if f}
            self._check_where(own, table.experiment, factors | table.where)
            for key, row in (table.rows or {}).items():
                experiment = row.experiment or table.experiment
                self._check_where(f"{own}, row {key}", experiment, row.where)
        firsts = {claim.id for claim in self.claims if claim.is_counted}
        for claim in self.claims:
            if not claim.is_counted and claim.repeats not in firsts:
                raise ValueError(
                    f"claim {claim.id}: repeats {claim.repeats!r}, which is no claim of the study "
                    "that repeats none; name the claim that tells the finding first"
                )
        self._check_changes()
        return self

    @property
    def sentences(self) -> list[Claim | Unjudged]:
        """All sentences of the paper, those that are judged first."""
        return [*self.claims, *self.unjudged]

    def changes_to(self, kind: Subject, name: str) -> list[Change]:
        """Return what was changed of a claim, table or parameter after results were seen."""
        readings = {sentence.id: sentence.reading for sentence in self.sentences}
        reading = readings.get(name, "") if kind == "claims" else ""
        found = [change.to(kind, name, reading) for change in self.changes]
        return [change for change in found if change is not None]

    def substituted(self, engine: str) -> Substitution | None:
        """Return what an engine runs in the place of values that it cannot have, if anything."""
        return next((s for s in self.substitutions if s.engine == engine), None)

    def experiment(self, name: str) -> Experiment:
        """Return the experiment called `name`; KeyError where there is none."""
        return {experiment.id: experiment for experiment in self.experiments}[name]

    def _check_parameters(self) -> None:
        sets = [(f"substitution on {s.engine}", s.set, self.parameters) for s in self.substitutions]
        for one in self.experiments:
            for factor in one.factors:
                place = f"experiment {one.id}, factor {factor.id}"
                known = parameters_of(self, one)
                sets += [
                    (f"{place}, level {level.key}", level.set, known) for level in factor.levels
                ]
        for place, values, known in sets:
            if unknown := [name for name in values if name not in known]:
                raise ValueError(
                    f"{place}: sets unknown parameter {unknown[0]!r}; declare it under parameters"
                )

    def _check_changes(self) -> None:
        own = {f"{e.id}/{name}" for e in self.experiments for name in e.parameters}
        subjects: dict[Subject, set[str]] = {
            "claims": {sentence.id for sentence in self.sentences},
            "tables": {table.id for table in self.tables},
            "parameters": own | self.parameters.keys(),
        }
        for kind, known in subjects.items():
            for name in (name for change in self.changes for name in getattr(change, kind)):
                if name not in known:
                    raise ValueError(f"changes: {kind}: the study has no {name!r}")
                self.changes_to(kind, name)

    def _check_where(self, place: str, experiment: str, where: Where) -> None:
        factors = {e.id: {f.id: f for f in e.factors} for e in self.experiments}
        if experiment not in factors:
            raise ValueError(f"{place}: unknown experiment {experiment!r}")
        for name, levels in where.items():
            factor = factors[experiment].get(name)
            if factor is None:
                raise ValueError(f"{place}: experiment {experiment} has no factor {name!r}")
            if factor.averaged:
                raise ValueError(
                    f"{place}: factor {name} of experiment {experiment} is averaged, and its "
                    "levels are replicates; leave it out, or remove `averaged`"
                )
            known = {level.key for level in factor.levels}
            if unknown := [key for key in levels if key not in known]:
                raise ValueError(f"{place}: factor {name} has no level {unknown[0]!r}")


def _written_out(claim: Claim, experiments: Mapping[str, Experiment]) -> Claim:
    """Return a claim with what it asks for at each level of a factor written out."""
    test, names = claim.test, dict.fromkeys(wanted.experiment for wanted in claim.quantities())
    # `_check_where` names an unknown experiment.
    if (
        not isinstance(test, AllTest)
        or test.for_each is None
        or not names.keys() <= experiments.keys()
    ):
        return claim
    found = [f for name in names for f in experiments[name].factors if f.id == test.for_each]
    try:
        if len(found) < len(names):
            experiment = " or ".join(names)
            raise ValueError(f"for_each: experiment {experiment} has no factor {test.for_each!r}")
        levels = [level.key for level in found[0].levels]
        return claim.model_copy(update={"test": test.at_each(test.for_each, levels)})
    except ValueError as error:
        raise ValueError(f"claim {claim.id}: {error}") from None


def parameters_of(study: Study, experiment: Experiment) -> dict[str, Parameter]:
    """Return the study's parameters with the experiment's own laid over them."""
    return {**study.parameters, **experiment.parameters}
