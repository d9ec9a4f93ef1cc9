"""Trials: configurations that were run on a stage of the search, and how they are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from replication.explore.score import Choice, FamilyScore, Numbers, Reader
from replication.explore.trial_runner import Configuration, StudyPart, TrialRunner
from replication.metrics.results import Results
from replication.study.verdict import Verdict
from replication.verdicts.claim import evaluate_claim

#: Bits of a claim's verdict, where claims are what is explained; `NOT_REPRODUCED_BITS` of others.
VERDICT_BITS = {Verdict.REPRODUCED: 0.0, Verdict.DIRECTION_ONLY: 2.0}
NOT_REPRODUCED_BITS = 4.0
#: Configurations whose results are looked up together.
_TOGETHER = 12


@dataclass(frozen=True)
class Trial:
    """A configuration with its best readings on a stage.

    `data_bits` are what numbers or claims take, `bits` what names the causes, readings included.
    Where numbers are scored, it has of each family the reading and what would be printed (a row a
    cell, a column a reading); else the verdicts by claim.
    """

    configuration: Configuration
    stage: str
    data_bits: float
    bits: float
    readings: tuple[Choice, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)
    printed: tuple[Numbers, ...] = ()

    @property
    def total(self) -> float:
        """All bits: the less, the better."""
        return self.data_bits + self.bits

    @property
    def rank(self) -> tuple[float, int, Configuration]:
        """What trials are sorted by: bits, then the fewer causes, then their names."""
        return round(self.total, 6), len(self.configuration), self.configuration

    @cached_property
    def pairs(self) -> Configuration:
        """Its causes and levels, readings included."""
        return (*self.configuration, *(pair for choice in self.readings for pair in choice.pairs))


@dataclass(frozen=True)
class CellJudge:
    """Scores configurations by the study's numbers, each under its best reading."""

    runner: TrialRunner
    reader: Reader

    def scores(self, stage: StudyPart) -> list[FamilyScore]:
        """Return the score of each family on a stage."""
        return [FamilyScore(self.reader, f, stage.cells) for f in self.reader.families]

    def stated_bits(self, trial: Trial, stage: StudyPart) -> float:
        """Return all bits of a configuration with every number read as the study says."""
        scored = zip(self.scores(stage), trial.printed, strict=True)
        read = [float(score.shared_bits(score.errors(own))[0]) for score, own in scored]
        return self.runner.bits(trial.configuration) + sum(read)

    def judged(
        self, configurations: Sequence[Configuration], results: Results, stage: StudyPart
    ) -> list[Trial]:
        """Return a trial of each configuration, in their order."""
        scores, trials = self.scores(stage), []
        arrays = self.reader.printed(results, len(configurations), stage.cells)
        for number, one in enumerate(configurations):
            printed = tuple(array[number] for array in arrays)
            chosen = tuple(
                score.best(score.errors(own), score.inside(own))
                for score, own in zip(scores, printed, strict=True)
            )
            data_bits = sum(choice.data_bits for choice in chosen)
            bits = self.runner.bits(one) + sum(choice.bits for choice in chosen)
            trials.append(Trial(one, stage.name, data_bits, bits, chosen, printed=printed))
        return trials


@dataclass(frozen=True)
class ClaimJudge:
    """Scores configurations by the verdicts on the study's claims."""

    runner: TrialRunner

    def cost_bits(self, verdict: str) -> float:
        """Return what a verdict takes to tell."""
        return VERDICT_BITS.get(Verdict(verdict), NOT_REPRODUCED_BITS)

    def judged(
        self, configurations: Sequence[Configuration], results: Results, stage: StudyPart
    ) -> list[Trial]:
        """Return a trial of each configuration, in their order."""
        trials = []
        for number, one in enumerate(configurations):
            verdicts = self.verdicts(results.alone(number), stage)
            data_bits = sum(map(self.cost_bits, verdicts.values()))
            trials.append(
                Trial(one, stage.name, data_bits, self.runner.bits(one), verdicts=verdicts)
            )
        return trials

    def verdicts(self, results: Results, stage: StudyPart) -> dict[str, str]:
        """Return the verdict on each claim of a stage."""
        study = self.runner.study
        return {
            claim.id: str(evaluate_claim(study, claim, results)[0]["verdict"])
            for claim in study.claims
            if claim.id in stage.claims
        }


@dataclass
class Trials:
    """All trials of a study's search, by configuration and stage; each is run once."""

    runner: TrialRunner
    judge: CellJudge | ClaimJudge
    tried: dict[tuple[Configuration, str], Trial] = field(default_factory=dict)

    def evaluate(
        self,
        configurations: Sequence[Configuration],
        stage: StudyPart,
        reserve_s: float | None = None,
    ) -> list[Trial]:
        """Return the trials of configurations on a stage, in their order.

        With `reserve_s` as many as can be afforded before no more than that is left; a
        configuration that makes no scenario has no trial.
        """
        wanted = list(dict.fromkeys(configurations))
        new = [one for one in wanted if (one, stage.name) not in self.tried]
        if reserve_s is None:
            new = [one for one in new if self.runner.runs(one, stage) is not None]
        else:
            new = self.runner.affordable(new, stage, reserve_s)
        for start in range(0, len(new), _TOGETHER):
            together = new[start : start + _TOGETHER]
            results = self.runner.results(together, stage)
            for trial in self.judge.judged(together, results, stage):
                self.tried[trial.configuration, stage.name] = trial
        return [self.tried[one, stage.name] for one in wanted if (one, stage.name) in self.tried]

    def at_stage(self, stage: StudyPart) -> list[Trial]:
        """Return all trials on a stage, best first."""
        found = [trial for (_, name), trial in self.tried.items() if name == stage.name]
        return sorted(found, key=lambda trial: trial.rank)

    @property
    def count(self) -> int:
        """How many configurations were tried."""
        return len({configuration for configuration, _ in self.tried})
