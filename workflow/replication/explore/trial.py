"""Trials: configurations that are run on a part of a study, and their scores.

A configuration is a set of causes that are simulated, each at one of its levels.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from replication.base.errors import InputError
from replication.base.table import flat
from replication.design.design import Run
from replication.explore.cause import Explanations, Interpretation, combined, refusal
from replication.explore.machine import Costs, Machine, by_replicate, whole_runs
from replication.explore.score import Choice, Combination, Family, FamilyScore, Numbers
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import Claim, Quantity, covers
from replication.study.study import Experiment, Study
from replication.study.variation import Variation, apply
from replication.study.verdict import Verdict
from replication.verdicts.bound import propagation_s
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

#: Cause and level, in the order of the causes' ids.
Configuration = tuple[tuple[str, str], ...]
#: The documented defaults.
DEFAULTS: Configuration = ()
#: Bits of a claim's verdict where claims are explained.
VERDICT_BITS: dict[str, float] = dict.fromkeys(Verdict, 4.0)
VERDICT_BITS |= {Verdict.REPRODUCED: 0.0, Verdict.DIRECTION_ONLY: 2.0}


def with_cause(configuration: Configuration, cause: str, level: str) -> Configuration:
    """Return a configuration with a cause at another level, or one cause more."""
    return tuple(sorted({**dict(configuration), cause: level}.items()))


def without_each(configuration: Configuration) -> list[Configuration]:
    """Return a configuration without each of its causes, in their order."""
    return [tuple(p for p in configuration if p != pair) for pair in configuration]


@dataclass(frozen=True)
class StudyPart:
    """A part of a study: a stage of a search, or all that can be judged.

    `levels` maps experiment to factor to the levels that are run (all levels of a factor that is
    left out). `variation` holds for this part alone.
    """

    name: str
    cells: Sequence[MappedCell] = ()
    claims: Sequence[Claim] = ()
    levels: Mapping[str, Mapping[str, Collection[str]]] = field(default_factory=dict)
    variation: Variation | None = None

    def study(self, study: Study) -> Study:
        """Return the study with the experiments and levels that are run, as they are run."""
        if self.variation is not None:
            study = apply(study, self.variation)

        kept = [part for part in study.experiments if part.id in self.levels]
        experiments = [self._experiment(experiment) for experiment in kept]
        return study.model_copy(update={"experiments": experiments})

    def _experiment(self, experiment: Experiment) -> Experiment:
        """Return an experiment with the levels that are run."""
        keys, factors = self.levels[experiment.id], []
        for factor in experiment.factors:
            wanted = keys.get(factor.id, [level.key for level in factor.levels])
            levels = [level for level in factor.levels if level.key in wanted]
            factors.append(factor.model_copy(update={"levels": levels}))
        return experiment.model_copy(update={"factors": factors})


def serves(run: Run, quantities: Iterable[Quantity]) -> bool:
    """Return whether one of the quantities is read from a run."""
    wheres = [wanted.where for wanted in quantities if wanted.experiment == run.experiment]
    return any(covers(where, run.levels) for where in wheres)


@dataclass
class TrialRunner:
    """Runs configurations of one study on one engine; other parameters keep their defaults."""

    study: Study
    explanations: Explanations
    machine: Machine
    costs: Costs = field(default_factory=Costs)
    _designed: dict[tuple[Configuration, str], list[Run] | None] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """The remaining budget."""
        return self.explanations.cpu_budget_s - self.costs.spent_s

    def bits(self, configuration: Configuration) -> float:
        """Return the bits that name the configuration's causes and levels."""
        named, by_id = self.explanations.cause_bits, self.explanations.by_id
        bits = [named + by_id[cause].level_bits(level) for cause, level in configuration]
        return sum(bits, 0.0)

    def on(self, configuration: Configuration) -> Study:
        """Return the study with the configuration; InputError where they do not fit together."""
        changed = self.study
        for cause, level in configuration:
            changed = apply(changed, self.explanations.by_id[cause].variation(level))
        return changed

    def cost_s(self, configuration: Configuration, part: StudyPart) -> float:
        """Return the cost of a configuration on a part, without runs that were made already."""
        return self.costs.further_s(self.runs(configuration, part) or [])

    def runs(self, configuration: Configuration, part: StudyPart) -> list[Run] | None:
        """Return a configuration's runs; None where they make no scenario or are refused."""
        key = configuration, part.name
        if key in self._designed:
            return self._designed[key]
        runs: list[Run] | None = None
        with suppress(InputError):
            runs = self._needed(configuration, part)
        if runs and configuration != DEFAULTS:
            # Points that the engine refuses at the defaults too do not count.
            defaults = self.runs(DEFAULTS, part) or []
            usual = {(run.experiment, run.point) for run in defaults if run.refusal}
            refused = {(run.experiment, run.point) for run in runs if self.machine.refusal(run)}
            runs = runs if refused <= usual else None
        self._designed[key] = runs
        return runs

    def _needed(self, configuration: Configuration, part: StudyPart, count: int = 1) -> list[Run]:
        study = part.study(self.on(configuration))
        engine = self.machine.engine
        runs = whole_runs(study, engine.name, engine.version, count)
        scored = [cell.quantity for cell in part.cells]
        return [run for run in runs if not scored or serves(run, scored)]

    def results(
        self, configurations: Sequence[Configuration], part: StudyPart, replicates: int = 1
    ) -> Results:
        """Return the results of configurations, or of replicates of one; run what is missing."""
        points = [self.runs(configuration, part) or [] for configuration in configurations]
        if replicates > 1:
            points = by_replicate(self._needed(configurations[0], part, replicates))
        self.costs.count(flat(points))
        return self.machine.results(self.study.id, points)


@dataclass(frozen=True)
class Trial:
    """A configuration with its best interpretations on a stage of the search.

    `data_bits` encode numbers or claims, `bits` name the causes, interpretations included. Where
    numbers are scored, `readings` and `printed` have the interpretation of each family and what
    would be printed (a row a cell, a column an interpretation); else `verdicts` has those by claim.
    """

    configuration: Configuration
    data_bits: float
    bits: float
    readings: tuple[Choice, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)
    printed: tuple[Numbers, ...] = ()

    @property
    def total(self) -> float:
        """All bits: the fewer, the better."""
        return self.data_bits + self.bits

    def __lt__(self, other: Trial) -> bool:
        """By bits, then by the number of causes, then by their names."""
        ranks = [(round(t.total, 6), len(t.configuration), t.configuration) for t in (self, other)]
        return ranks[0] < ranks[1]

    @cached_property
    def pairs(self) -> Configuration:
        """Its causes and levels, interpretations included."""
        return (*self.configuration, *flat(choice.pairs for choice in self.readings))


class CellJudge:
    """Scores configurations by the study's numbers, each under its best interpretation."""

    def __init__(self, runner: TrialRunner, cells: Sequence[MappedCell]) -> None:
        self.runner, self.cells = runner, cells
        self._readings: dict[tuple[str, str], Interpretation] = {}
        for cause in runner.explanations.of_kind("reading"):
            for level in cause.levels or []:
                if level.reading is not None:
                    self._readings[cause.id, level.key] = level.reading
        self.families = self._families()

    def parts(self) -> tuple[list[StudyPart], StudyPart]:
        """Return the stages of the search, the last with all but held-out cells, and the whole."""
        explanations = self.runner.explanations
        comparable = [cell for cell in self.cells if not cell.not_comparable]
        held_out = explanations.held_out.rows
        seen = [cell for cell in comparable if cell.row not in held_out.get(cell.table, [])]
        stages = []
        for number, stage in enumerate(explanations.stages):
            cells = [cell for cell in seen if cell.row in stage.rows.get(cell.table, [])]
            stages.append(replace(self._part(f"stage {number}", cells), variation=stage.set))
        return [*stages, self._part("all seen", seen)], self._part("whole", comparable)

    def _part(self, name: str, cells: Sequence[MappedCell]) -> StudyPart:
        levels: dict[str, dict[str, set[str]]] = {}
        for wanted in (cell.quantity for cell in cells):
            keys = levels.setdefault(wanted.experiment, {})
            for factor in self.runner.study.experiment(wanted.experiment).factors:
                every = [level.key for level in factor.levels]
                keys.setdefault(factor.id, set()).update(wanted.where.get(factor.id, every))
        return StudyPart(name, cells=cells, levels=levels)

    def _families(self) -> list[Family]:
        by_column = {table.id: table.columns is not None for table in self.runner.study.tables}
        causes = self.runner.explanations.of_kind("reading")
        groups: defaultdict[tuple[str, tuple[str, ...]], list[MappedCell]] = defaultdict(list)
        for cell in self.cells:
            if not cell.not_comparable:
                read_by = [cause for cause in causes if cause.concerns(cell.column)]
                column = cell.column if by_column[cell.table] else ""
                groups[column, tuple(cause.id for cause in read_by)].append(cell)
        families = []
        for (column, ids), cells in groups.items():
            families.append(Family(cells, self._combinations(ids, cells[0]), column))
        return families

    def _combinations(self, causes: Sequence[str], cell: MappedCell) -> list[Combination]:
        """Return the interpretations that can apply together; the first is the study's."""
        options = [[None, *(pair for pair in self._readings if pair[0] == c)] for c in causes]
        combinations = []
        for product in itertools.product(*options):
            pairs = tuple(pair for pair in product if pair is not None)
            if self._are_compatible(pairs) and not refusal(cell, self.reading(pairs)):
                combinations.append(pairs)
        return combinations

    def _are_compatible(self, pairs: Combination) -> bool:
        """Return whether no two interpretations set the same key; factors multiply."""
        keys: list[str] = []
        for pair in pairs:
            keys += self._readings[pair].model_dump(exclude_defaults=True, exclude={"factor"})
        return len(keys) == len(set(keys))

    def reading(self, combination: Combination) -> Interpretation:
        """Return the interpretation that causes make together."""
        return combined(self._readings[pair] for pair in combination)

    def printed(self, results: Results, count: int, scores: Sequence[FamilyScore]) -> list[Numbers]:
        """Return what would be printed: for each family by configuration, cell, interpretation.

        `results` have a replicate for each of `count` configurations, and all cells of `scores`.
        """
        arrays = []
        for score in scores:
            combinations = score.family.combinations
            array = np.full((count, len(score.cells), len(combinations)), np.nan)
            for column, combination in enumerate(combinations):
                reading = self.reading(combination)
                for row, cell in enumerate(score.cells):
                    if not refusal(cell, reading):
                        array[:, row, column] = self._values(results, count, cell, reading)
            arrays.append(array)
        return arrays

    def _values(
        self, results: Results, count: int, cell: MappedCell, reading: Interpretation
    ) -> Numbers:
        """Return what would be printed in a cell for each configuration."""
        wanted = reading.of(cell).quantity
        # Without levels, so that one cached table serves all cells of a column.
        frame = quantity(results, wanted.model_copy(update={"where": {}}))
        mask = np.ones(len(frame), dtype=bool)
        for factor, keys in wanted.where.items():
            mask &= np.isin(frame[factor].to_numpy(dtype=str), keys)
        numbers = frame["replicate"].to_numpy(dtype=int)[mask]
        sums = np.bincount(numbers, frame["value"].to_numpy(dtype=float)[mask], count)
        with np.errstate(invalid="ignore"):
            means = sums / np.bincount(numbers, minlength=count)
        less_s = propagation_s(self.runner.study, wanted) if reading.less_propagation else 0.0
        return np.array([reading.printed(float(value), less_s) for value in means])

    def scores(self, stage: StudyPart) -> list[FamilyScore]:
        """Return the score of each family on a stage."""
        explanations = self.runner.explanations
        return [FamilyScore(explanations, family, stage.cells) for family in self.families]

    def stated_bits(self, trial: Trial, stage: StudyPart) -> float:
        """Return all bits of a configuration with every number read as the study states."""
        scored = zip(self.scores(stage), trial.printed, strict=True)
        read = [float(score.shared_bits(score.errors(printed))[0]) for score, printed in scored]
        return self.runner.bits(trial.configuration) + sum(read)

    def judged(
        self, configurations: Sequence[Configuration], results: Results, stage: StudyPart
    ) -> list[Trial]:
        """Return a trial of each configuration, in their order."""
        scores, trials = self.scores(stage), []
        arrays = self.printed(results, len(configurations), scores)
        for number, configuration in enumerate(configurations):
            printed = tuple(array[number] for array in arrays)
            chosen = []
            for score, values in zip(scores, printed, strict=True):
                chosen.append(score.best(score.errors(values), score.inside(values)))
            data_bits = sum(choice.data_bits for choice in chosen)
            bits = self.runner.bits(configuration) + sum(choice.bits for choice in chosen)
            trials.append(Trial(configuration, data_bits, bits, tuple(chosen), printed=printed))
        return trials


@dataclass(frozen=True)
class ClaimJudge:
    """Scores configurations by the verdicts on the study's claims."""

    runner: TrialRunner

    def parts(self) -> tuple[list[StudyPart], StudyPart]:
        """Return the stages of the search, without held-out claims, and the last with them.

        Claims without a test and repeats of another claim are in none of them: a searched repeat of
        a held-out claim would show the search what is held out.
        """
        stages, explanations = [], self.runner.explanations
        scored = [
            claim for claim in self.runner.study.claims if claim.is_counted and claim.quantities()
        ]
        for number, stage in enumerate(explanations.stages):
            claims = []
            for claim in scored:
                if all(wanted.experiment in stage.levels for wanted in claim.quantities()):
                    claims.append(claim)
            seen = [claim for claim in claims if claim.id not in explanations.held_out.claims]
            name = f"stage {number}"
            stages.append(StudyPart(name, (), seen, stage.levels, stage.set))
        return stages, replace(stages[-1], name="whole", claims=claims)

    def judged(
        self, configurations: Sequence[Configuration], results: Results, stage: StudyPart
    ) -> list[Trial]:
        """Return a trial of each configuration, in their order."""
        trials = []
        for number, configuration in enumerate(configurations):
            single = results.single_replicate(number)
            by_claim = verdicts(self.runner.study, stage.claims, single)
            data_bits = sum(VERDICT_BITS[verdict] for verdict in by_claim.values())
            bits = self.runner.bits(configuration)
            trials.append(Trial(configuration, data_bits, bits, verdicts=by_claim))
        return trials


def verdicts(study: Study, claims: Iterable[Claim], results: Results) -> dict[str, str]:
    """Return the verdict on each of the claims on the one engine of results."""
    engines = Coverage.of_all(study, results)
    return {claim.id: str(evaluate_claim(claim, engines)[0].verdict) for claim in claims}
