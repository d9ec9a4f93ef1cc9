"""A study: one published paper as data, read from YAML files in ``configs/studies/<study>/``."""

import math
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, Strict, field_validator, model_validator

from replication.base.errors import InputError, Place, check_known
from replication.base.model import LINE, Document, EngineName, Identifier, PositiveSeconds, Text
from replication.base.position import within
from replication.study.claim_model import Claim, Unjudged, Where
from replication.study.parameter import MOST_POINTS, Factor, Parameter, Parameters, unique
from replication.study.published import Table
from replication.study.setup import Setup
from replication.study.stated_cause import StatedCause, check_stated
from replication.study.verdict import Change, Date, StudyChange, Subject

ALL_STUDIES = "all"
#: The groups of studies in the report: papers have their findings on the first page.
Group = Literal["papers", "further works"]
PAPERS: Group = "papers"
ExperimentType = Literal[
    "cbr_sweep",
    "pairwise_fairness",
    "queuing",
    "homogeneous_dumbbell",
    "throughput_tables",
    "bdp_jain",
    "cwnd_traces",
]

#: Names that no study may have: of the report's other pages, and of options.
RESERVED = frozenset({"index", "changes", "regions", "engines", "method", ALL_STUDIES, "available"})


class Topology(Document):
    """Templates of nodes and links ("Topology and flows" in configs/README.md)."""

    nodes: Annotated[list[JsonValue], Field(min_length=2)]
    links: Annotated[list[dict[str, JsonValue]], Field(min_length=1)]
    monitors: list[dict[str, JsonValue]] = []


#: A sign test needs so many runs to be significant (5 %).
LEAST_REPEATS = 5


def check_run_count(count: int, place: Place) -> None:
    """Raise InputError for two to four replicates, which have no verdict that runs decide."""
    if 1 < count < LEAST_REPEATS:
        text = f"count: {count} runs are too few for a verdict; give {LEAST_REPEATS} or more, or 1"
        raise InputError(text, place)


class ReplicatesAtLeast(Document):
    """Least number of replicates, on engines where every point's run costs less (s of CPU)."""

    count: Annotated[int, Field(ge=1, le=1000)]
    where_cost_below_s: PositiveSeconds | None = None


class Experiment(Document):
    """A full factorial of factors over one topology and its flows."""

    id: Identifier
    """Identifier of the experiment."""
    type: ExperimentType
    """The notebook that shows the experiment."""
    title: Text
    """Title in the report."""
    question: Text
    """The question that the experiment answers."""
    place: Text
    """Section, table or figure of the paper that describes it."""
    parameters: Parameters = {}
    """Parameters that add to the study's or override them."""
    factors: Annotated[list[Factor], Field(min_length=1)]
    """The varied factors. Every combination of levels is a point."""
    topology: Topology
    """`nodes` *, `links` *, `monitors`."""
    flows: Annotated[list[dict[str, JsonValue]], Field(min_length=1)]
    """Templates of flows; a missing key takes the parameter of its name, if there is one."""
    host: dict[str, JsonValue] | None = None
    """Template of the settings of all hosts."""
    duration_s: JsonValue = "$duration_s"
    """Length of a run."""
    sampling_interval_s: JsonValue = "$sampling_interval_s"
    """Sampling interval of the series: 0.1 for charts over time, 0.5 to 1 for tables."""
    identical_runs_once: bool = False
    """Whether a point is run once on engines on which nothing in it is random."""
    single_run_above_s: PositiveSeconds | None = None
    """CPU seconds of a run from which on a point has one run, whatever the tier; for published
    numbers whose tolerance is their own run-to-run spread."""
    replicates_at_least: ReplicatesAtLeast | None = None
    """Least number of replicates (`count` *), on engines where every point's run costs less than
    `where_cost_below_s` (s of CPU); tiers with `heeds_replicates_at_least` use it."""

    @model_validator(mode="after")
    def _unique_factors(self) -> Self:
        unique((f.id for f in self.factors), f"factor of experiment {self.id}", "factors")
        points = math.prod(len(factor.levels) for factor in self.factors)
        if points > MOST_POINTS:
            raise InputError(
                f"experiment {self.id}: {points} points, more than {MOST_POINTS}; vary less",
                ("factors",),
            )
        return self

    def factor(self, name: str) -> Factor:
        """Return the factor called `name`; KeyError without one."""
        return {factor.id: factor for factor in self.factors}[name]


class Bibliography(Document):
    """The paper."""

    title: Text
    authors: Annotated[list[Text], Field(min_length=1)]
    year: int | None = None
    venue: Text | None = None
    short: Text | None = None
    """How pages cite the work, such as "RFC 9438"; by default the family names of its authors."""


class OriginalSystem(Document):
    """The paper's simulator or kernel; its family `engine` is the study's primary engine."""

    engine: EngineName
    description: Text
    repetitions: Text | None = None


class Threat(Document):
    """A threat to a study's conclusions; one without causes may be just its text."""

    text: Text
    """The threat."""
    causes: list[StatedCause] = []
    """Why it is so; a text with "because" needs one."""


#: A file may give a text alone.
_Threat = Annotated[
    Threat,
    BeforeValidator(
        lambda value: {"text": value} if isinstance(value, str) else value,
        json_schema_input_type=str | Threat,
    ),
]


class Notes(Document):
    """Prose on the study's page."""

    scope: Text
    easy: Text
    hard: Text
    threats: list[_Threat] = []
    """Each a text, or `text` * with its `causes`."""
    differences: list[Text] = []


class AuthorsAsked(Document):
    """What the paper's authors said when they were asked what it leaves out."""

    date: Date
    """Day on which they were asked, as `2026-11-22`."""
    answer: Text
    """What they answered, or that they did not."""


class Substitution(Document):
    """Values that an engine runs instead of values that it does not support."""

    engine: EngineName
    set: Annotated[dict[Identifier, JsonValue], Field(min_length=1)]
    """Map of parameter to its value on this engine; a level that sets it has priority."""
    reason: Text
    """Why the engine does not support the study's value."""


class Decision(Document):
    """A value of the textbook set-up that its rule does not give."""

    parameter: Annotated[str, LINE]
    """A parameter, or `experiment/parameter` for one experiment; a level that sets it has
    priority."""
    value: JsonValue
    """Its value under the textbook set-up."""
    reason: Text
    """Why this value, from documents and not from results."""

    def value_for(self, experiment: str) -> dict[str, JsonValue]:
        """Return the parameter's value in an experiment; nothing if it is for another one."""
        *named, parameter = self.parameter.split("/")
        return {parameter: self.value} if named in ([], [experiment]) else {}


class Study(Document):
    """One paper."""

    schema_version: Literal[1] = 1
    """Version of this format."""
    id: Identifier
    """Name of the study's folder."""
    title: Text
    """Short title in the report."""
    group: Group = PAPERS
    """Group in the report: `papers`, or `further works`, which the first page lists in one line
    each."""
    bibliography: Bibliography
    """`title` *, `authors` * (list), `year`, `venue`."""
    original_system: OriginalSystem
    """`engine` *: family of the paper's simulator or kernel (`ns3`, `ns2`, `linux`), the study's
    primary engine; `description` *; `repetitions`: the paper's statement on repeated runs."""
    authors_asked: AuthorsAsked | None = None
    """`date` * on which the authors were asked what the paper leaves out, and their `answer` *."""
    notes: Notes
    """Prose on the study's page: `scope` *, `easy` *, `hard` *, `threats` (list), `differences`
    (list)."""
    parameters: Parameters
    """Parameters of all experiments."""
    substitutions: list[Substitution] = []
    """Values that single engines run instead of values that they do not support."""
    primary_only: bool = False
    """Whether the study runs on its primary engine alone, except in tiers with `every_engine`."""
    setups: Annotated[list[Annotated[Setup, Strict(False)]], Field(min_length=1)] = list(Setup)
    """Set-ups that the study runs under: `defaults`, and `textbook` too unless real hosts were
    measured."""
    textbook: list[Decision] = []
    """Values that are decided by name for the textbook set-up."""
    experiments: Annotated[list[Experiment], Field(min_length=1)]
    """Factorials of points to run."""
    tables: list[Table] = []
    """Published tables, mapped to points."""
    claims: list[Claim] = []
    """Results of the paper, quoted, each with its test."""
    unjudged: list[Unjudged] = []
    """Sentences that are not results: they are listed, but not judged."""
    changes: list[StudyChange] = []
    """Changes made after results were seen."""

    @field_validator("id")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value in RESERVED:
            raise ValueError("is a reserved name of the report or command line; choose another")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique((e.id for e in self.experiments), "experiment", "experiments")
        unique((t.id for t in self.tables), "table", "tables")
        unique((c.id for c in self.claims), "claim", "claims")
        unique((s.id for s in self.unjudged), "claim", "unjudged")
        for claim in self.claims:
            if any(sentence.id == claim.id for sentence in self.unjudged):
                raise InputError(f"duplicate claim: {claim.id!r}", ("unjudged", claim.id))
        unique((s.engine for s in self.substitutions), "substitution", "substitutions")
        unique((d.parameter for d in self.textbook), "decision", "textbook")
        unique(self.setups, "set-up", "setups")
        if Setup.DEFAULTS not in self.setups:
            raise InputError("setups: must have defaults; add it", ("setups",))
        self._check_parameters()
        for claim in self.claims:
            for place, quantity in claim.placed_quantities():
                with within("claims", claim.id, *place, words=f"claim {claim.id}"):
                    self.check_where(quantity.experiment, quantity.where)
        for table in self.tables:
            with within("tables", table.id, words=f"table {table.id}"):
                self._check_table(table)
        firsts = {claim.id for claim in self.claims if claim.is_counted}
        for claim in self.claims:
            if not claim.is_counted and claim.repeats not in firsts:
                raise InputError(
                    f"claim {claim.id}: repeats {claim.repeats!r}, which is no claim of the study "
                    "or itself a repeat; name the claim that states the finding first",
                    ("claims", claim.id, "repeats"),
                )
        self._check_changes()
        return self

    @property
    def sentences(self) -> list[Claim | Unjudged]:
        """All sentences of the paper, claims first."""
        return [*self.claims, *self.unjudged]

    def changes_to(self, kind: Subject, name: str) -> list[Change]:
        """Return the changes to a claim, table, parameter or experiment after results were seen."""
        readings = {sentence.id: sentence.reading for sentence in self.sentences}
        reading = readings.get(name, "") if kind == "claims" else ""
        effects = [change.to(kind, name, reading) for change in self.changes]
        return [change for change in effects if change is not None]

    def check_present_rules(self) -> None:
        """Raise InputError for what only studies of earlier releases may have.

        That is an experiment of two to four replicates, or a threat whose cause is not stated.
        """
        for number, threat in enumerate(self.notes.threats):
            check_stated(threat.text, threat.causes, ("notes", "threats", number, "text"))
        for experiment in self.experiments:
            if experiment.replicates_at_least is not None:
                place = "experiments", experiment.id, "replicates_at_least", "count"
                check_run_count(experiment.replicates_at_least.count, place)

    def substituted(self, engine: str) -> dict[str, JsonValue]:
        """Return the values that an engine runs instead of the study's, by parameter."""
        return next((s.set for s in self.substitutions if s.engine == engine), {})

    def decided(self, experiment: str) -> dict[str, JsonValue]:
        """Return the values that are decided for the textbook set-up of an experiment."""
        values: dict[str, JsonValue] = {}
        for decision in self.textbook:
            values |= decision.value_for(experiment)
        return values

    def experiment(self, name: str) -> Experiment:
        """Return the experiment called `name`; KeyError without one."""
        return {experiment.id: experiment for experiment in self.experiments}[name]

    def _check_parameters(self) -> None:
        for substitution in self.substitutions:
            place: Place = "substitutions", substitution.engine, "set"
            named = f"substitution on {substitution.engine}: parameter"
            check_known(named, substitution.set, self.parameters, place)
        decidable = set(self.parameters)
        for experiment in self.experiments:
            decidable |= {f"{experiment.id}/{name}" for name in parameters_of(self, experiment)}
        for number, decision in enumerate(self.textbook):
            place = "textbook", number, "parameter"
            check_known("textbook: parameter", [decision.parameter], decidable, place)
        for experiment in self.experiments:
            self._check_factors(experiment)

    def _check_factors(self, experiment: Experiment) -> None:
        known = parameters_of(self, experiment)
        for factor in experiment.factors:
            named = f"experiment {experiment.id}, factor {factor.id}: parameter"
            levels = "experiments", experiment.id, "factors", factor.id, "levels"
            for level in factor.levels:
                check_known(named, level.set, known, (*levels, level.key, "set"))

    def _check_changes(self) -> None:
        parameters = set(self.parameters)
        for experiment in self.experiments:
            parameters |= {f"{experiment.id}/{name}" for name in experiment.parameters}
        subjects: dict[Subject, set[str]] = {
            "claims": {sentence.id for sentence in self.sentences},
            "tables": {table.id for table in self.tables},
            "parameters": parameters,
            "experiments": {experiment.id for experiment in self.experiments},
        }
        for kind, known in subjects.items():
            for number, change in enumerate(self.changes):
                for name in getattr(change, kind):
                    place = "changes", number, kind
                    check_known(f"changes: {kind}", [name], known, place)
                    with within(*place, name):
                        self.changes_to(kind, name)

    def _check_table(self, table: Table) -> None:
        factors = self._factors(table.experiment)
        for key in ("row_factor", "column_factor"):
            if factor := getattr(table, key):
                check_known(f"{key}: factor of {table.experiment}", [factor], factors, (key,))
        if table.tolerances and table.column_factor:
            known = {level.key for level in factors[table.column_factor].levels}
            check_known("tolerances: column", table.tolerances, known, ("tolerances",))
        self.check_where(table.experiment, table.where)
        for name, row in (table.rows or {}).items():
            with within("rows", name, words=f"row {name}"):
                self.check_where(row.experiment or table.experiment, row.where)

    def check_where(self, experiment: str, where: Where) -> None:
        """Raise InputError for an unknown experiment, factor or level."""
        self._factors(experiment)
        with within("where"):
            self.check_levels(experiment, where)

    def check_levels(self, experiment: str, where: Where) -> None:
        """Raise InputError for an unknown factor or level of an experiment."""
        factors = self._factors(experiment)
        check_known(f"factor of {experiment}", where, factors, ())
        for name, levels in where.items():
            known = {level.key for level in factors[name].levels}
            check_known(f"level of {name}", levels, known, (name,))

    def _factors(self, experiment: str) -> dict[str, Factor]:
        known = {e.id for e in self.experiments}
        check_known("experiment", [experiment], known, ("experiment",))
        return {factor.id: factor for factor in self.experiment(experiment).factors}


def parameters_of(study: Study, experiment: Experiment) -> dict[str, Parameter]:
    """Return the parameters of the study, overridden by those of the experiment."""
    return {**study.parameters, **experiment.parameters}
