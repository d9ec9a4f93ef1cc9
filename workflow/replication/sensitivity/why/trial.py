"""Trials: set-ups with their scores on a rung, by numbers or by claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from replication.judge.claim import evaluate_claim
from replication.measure.results import Results
from replication.sensitivity.why.bench import Bench
from replication.sensitivity.why.part import StudyPart
from replication.sensitivity.why.reader import Numbers, Reader
from replication.sensitivity.why.score import Choice, FamilyScore
from replication.sensitivity.why.set_up import SetUp
from replication.study.sensitivity_settings import ExplanationSearch
from replication.study.verdict import Verdict

#: Set-ups whose results are looked up together.
_TOGETHER = 12


@dataclass(frozen=True)
class Trial:
    """A set-up with its best readings on a rung.

    Attributes
    ----------
    set_up, rung
        What was run.
    data_bits
        What numbers or claims take.
    bits
        What names the atoms, readings included.
    readings
        By family; none where claims are scored.
    verdicts
        By claim; none where numbers are scored.
    printed
        Of each family what would be printed: a row a cell, a column a reading.
    """

    set_up: SetUp
    rung: str
    data_bits: float
    bits: float
    readings: tuple[Choice, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    printed: tuple[Numbers, ...] = ()

    @property
    def total(self) -> float:
        """All bits: the less, the better."""
        return self.data_bits + self.bits

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Its atoms and levels, readings included."""
        return (*self.set_up, *(pair for choice in self.readings for pair in choice.pairs))


class Judge(Protocol):
    """Scores the results of set-ups."""

    def judged(self, set_ups: Sequence[SetUp], results: Results, rung: StudyPart) -> list[Trial]:
        """Return a trial of each set-up, in their order."""


@dataclass(frozen=True)
class CellJudge:
    """Scores set-ups by the study's numbers, each under its best reading."""

    bench: Bench
    reader: Reader
    settings: ExplanationSearch

    def scores(self, rung: StudyPart) -> list[FamilyScore]:
        """Return the score of each family with cells on a rung."""
        found = self.bench.space.explanations
        families = self.reader.families
        return [FamilyScore(found, self.reader, f, rung.cells, self.settings) for f in families]

    def stated_bits(self, trial: Trial, rung: StudyPart) -> float:
        """Return all bits of a set-up with every number read as the study says."""
        scored = zip(self.scores(rung), trial.printed, strict=True)
        read = [float(s.shared_bits(self.errors(s, p))[0]) for s, p in scored if s.places]
        return self.bench.space.bits(trial.set_up) + sum(read)

    def errors(self, score: FamilyScore, printed: Numbers) -> Numbers:
        """Return deviations of a family's cells: ..., cells, readings."""
        return self.reader.errors(printed, score.places, self.settings.winsorised_log_ratio)

    def judged(self, set_ups: Sequence[SetUp], results: Results, rung: StudyPart) -> list[Trial]:
        """Return a trial of each set-up, in their order."""
        scores = self.scores(rung)
        arrays = self.reader.printed(results, len(set_ups), rung.cells)
        return [
            self.trial(set_up, rung.name, scores, tuple(array[number] for array in arrays))
            for number, set_up in enumerate(set_ups)
        ]

    def trial(
        self, set_up: SetUp, rung: str, scores: Sequence[FamilyScore], printed: tuple[Numbers, ...]
    ) -> Trial:
        """Return the trial of a set-up from what would be printed."""
        chosen = tuple(
            score.best(self.errors(score, array))
            for score, array in zip(scores, printed, strict=True)
            if score.places
        )
        return Trial(
            set_up,
            rung,
            sum(choice.data_bits for choice in chosen),
            self.bench.space.bits(set_up) + sum(choice.bits for choice in chosen),
            chosen,
            printed=printed,
        )


@dataclass(frozen=True)
class ClaimJudge:
    """Scores set-ups by the verdicts on the study's claims."""

    bench: Bench
    settings: ExplanationSearch

    def cost_bits(self, verdict: str) -> float:
        """Return what a verdict takes to tell."""
        bits = self.settings.claim_bits
        worse = {
            Verdict.REPRODUCED: 0.0,
            Verdict.DIRECTION_ONLY: bits.direction_only,
        }
        return worse.get(Verdict(verdict), bits.not_reproduced)

    def judged(self, set_ups: Sequence[SetUp], results: Results, rung: StudyPart) -> list[Trial]:
        """Return a trial of each set-up, in their order."""
        trials = []
        for number, set_up in enumerate(set_ups):
            verdicts = self.verdicts(results.alone(number), rung)
            data_bits = sum(self.cost_bits(verdict) for verdict in verdicts.values())
            bits = self.bench.space.bits(set_up)
            trials.append(Trial(set_up, rung.name, data_bits, bits, verdicts=verdicts))
        return trials

    def verdicts(self, results: Results, rung: StudyPart) -> dict[str, str]:
        """Return the verdict on each claim of a rung."""
        study = self.bench.space.study
        found = {}
        for claim in study.claims:
            if claim.id in rung.claims:
                rows, _ = evaluate_claim(study, claim, results)
                found[claim.id] = str(rows[0]["verdict"])
        return found


@dataclass
class Trials:
    """All trials of a study's search, each run once.

    Attributes
    ----------
    bench, judge
        What runs and what scores.
    tried
        By set-up and rung.
    """

    bench: Bench
    judge: Judge
    tried: dict[tuple[SetUp, str], Trial] = field(default_factory=dict)

    def of(
        self, set_ups: Sequence[SetUp], rung: StudyPart, reserve_s: float | None = None
    ) -> list[Trial]:
        """Return the trials of set-ups on a rung, in their order.

        With `reserve_s` as many as can be afforded before no more than that is left; a set-up that
        makes no scenario has no trial.
        """
        wanted = list(dict.fromkeys(set_ups))
        new = [s for s in wanted if (s, rung.name) not in self.tried]
        if reserve_s is None:
            new = [s for s in new if self.bench.runs(s, rung) is not None]
        else:
            new = self.bench.affordable(new, rung, reserve_s)
        for start in range(0, len(new), _TOGETHER):
            together = new[start : start + _TOGETHER]
            results = self.bench.results(together, rung)
            for trial in self.judge.judged(together, results, rung):
                self.tried[trial.set_up, rung.name] = trial
        return [self.tried[s, rung.name] for s in wanted if (s, rung.name) in self.tried]

    def on(self, rung: StudyPart) -> list[Trial]:
        """Return all trials on a rung, best first."""
        found = [trial for (_, name), trial in self.tried.items() if name == rung.name]
        return sorted(found, key=rank)

    @property
    def set_ups(self) -> int:
        """How many set-ups were tried."""
        return len({set_up for set_up, _ in self.tried})


def rank(trial: Trial) -> tuple[float, int, SetUp]:
    """Return what trials are sorted by: bits, then the fewer atoms, then their names."""
    return round(trial.total, 6), len(trial.set_up), trial.set_up


def best_levels(trials: Sequence[Trial]) -> dict[str, list[tuple[float, str]]]:
    """Return of each atom its levels with their scores alone, best first."""
    found: dict[str, list[tuple[float, str]]] = {}
    for trial in sorted(trials, key=rank):
        if len(trial.set_up) == 1:
            atom, level = trial.set_up[0]
            found.setdefault(atom, []).append((trial.total, level))
    return found


def stacked(trials: Sequence[Trial], family: int) -> Numbers:
    """Return what would be printed of a family: trials, cells, readings."""
    return np.stack([trial.printed[family] for trial in trials])
