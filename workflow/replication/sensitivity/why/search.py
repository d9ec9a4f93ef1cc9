"""The search: beam forward selection, pairs ahead, a sampler for numbers, backward deletion.

1. Every atom alone, at every level, on the first rung; then, as causes may only show together, all
   pairs of the best atoms, and of the others those that cost least.
2. The best of these on the next rung; from each of the beam on, one atom more at its best levels,
   until no longer description gets shorter.
3. Numbers of the atoms that were chosen: TPE (Bergstra and others 2011; Optuna), on the first rung.
4. The best on all that may be seen, where atoms that do not pay are left out again.

Nothing here looks at a clock: the budget is counted by the engines' cost models.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replication.judge.causes.atom import level_key
from replication.sensitivity.why.part import StudyPart
from replication.sensitivity.why.set_up import (
    DEFAULTS,
    SetUp,
    Space,
    in_words,
    with_atom,
    without_atom,
)
from replication.sensitivity.why.trial import Trial, Trials, best_levels, rank
from replication.study.sensitivity_settings import ExplanationSearch

#: Set-ups that are scored on the next rung, for each one of the beam.
_PROMOTED = 3
#: Share of the budget that the sampler may take.
_MOST_SAMPLED = 0.15


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    best, defaults
        On the last rung.
    waterfall
        The best without one of its atoms each, on the last rung, in the order of the atoms.
    """

    best: Trial
    defaults: Trial
    waterfall: tuple[Trial, ...]


@dataclass
class Search:
    """The search for a study's best explanation.

    Attributes
    ----------
    space, trials
        Its set-ups, and those tried.
    rungs
        Growing parts of what may be seen.
    settings, seed
        How far it looks.
    reserve_s
        What the last stage, and judging what was not seen, will cost.
    """

    space: Space
    trials: Trials
    rungs: Sequence[StudyPart]
    settings: ExplanationSearch
    seed: int
    reserve_s: float

    def run(self) -> Found:
        """Return what the search finds."""
        first, last = self.rungs[0], self.rungs[-1]
        self.trials.of([DEFAULTS], first)
        self._tell("the documented defaults", first)
        singles = self.trials.of(self.space.singles(), first, self.reserve_s)
        self._tell("each atom alone", first)
        self.trials.of(self._pairs(singles), first, self.reserve_s)
        self._tell("pairs of the best", first)
        cheap_s = self.settings.cheap_pairs_share * self.trials.bench.budget_s
        self.trials.of(self._cheap_pairs(singles), first, self.trials.bench.left_s - cheap_s)
        self._tell("the cheapest of all other pairs", first)
        self._grow(best_levels(singles))
        self._sample()
        self._tell("numbers of the chosen atoms", first)
        finalists = self._best(first, self.settings.finalists)
        finalists = list(dict.fromkeys([*self._best(self._second, 2), *finalists]))
        kept = finalists[: self.settings.finalists]
        # The defaults come first, so that there always is something to compare with.
        self.trials.of([DEFAULTS], last)
        self.trials.of(kept, last, self.reserve_s / 2)
        best = self._backward()
        self._tell("all that may be seen", last)
        defaults = self.trials.tried[DEFAULTS, last.name]
        return Found(best, defaults, tuple(self._without(best)))

    @property
    def _sampling_s(self) -> float:
        """What the sampler should cost."""
        runs = self.trials.bench.runs(DEFAULTS, self.rungs[0]) or []
        wanted_s = self.settings.trials * sum(run.cost_s for run in runs)
        return min(wanted_s, _MOST_SAMPLED * self.trials.bench.budget_s)

    @property
    def _second(self) -> StudyPart:
        return self.rungs[min(1, len(self.rungs) - 1)]

    def _best(self, rung: StudyPart, count: int) -> list[SetUp]:
        return [trial.set_up for trial in self.trials.on(rung)[:count]]

    def _pairs(self, singles: Sequence[Trial]) -> list[SetUp]:
        """Return all pairs of the best atoms, each at its best level alone."""
        levels = best_levels(singles)
        chosen = list(levels)[: self.settings.paired_atoms]
        return [
            with_atom(((one, levels[one][0][1]),), two, levels[two][0][1])
            for one, two in itertools.combinations(chosen, 2)
        ]

    def _cheap_pairs(self, singles: Sequence[Trial]) -> list[SetUp]:
        """Return the pairs of all atoms at their best levels alone, the cheapest first."""
        first, bench = self.rungs[0], self.trials.bench
        alone = [
            (atom, level)
            for atom, scored in best_levels(singles).items()
            for _, level in scored[: self.settings.levels_extended]
        ]
        pairs = {
            with_atom((one,), *two)
            for one, two in itertools.combinations(alone, 2)
            if one[0] != two[0]
        }
        return sorted(pairs, key=lambda pair: (bench.cost_s(pair, first), pair))

    def _grow(self, levels: dict[str, list[tuple[float, str]]]) -> None:
        """Add atoms to the best set-ups while that shortens the description."""
        first = self.rungs[0]
        reached = self._promote()
        for depth in range(2, self.settings.depth + 1):
            beam = reached[: self.settings.beam]
            children: list[SetUp] = []
            for trial in beam:
                children += self._others(trial.set_up)
                children += self._children(trial.set_up, levels)
            self.trials.of(children, first, self.reserve_s + self._sampling_s)
            before, reached = reached, self._promote()
            self._tell(f"{depth} atoms or more", first)
            if rank(reached[0]) >= rank(before[0]):
                break

    def _promote(self) -> list[Trial]:
        """Score the best of the first rung on the second; return all there, best first."""
        kept = self._best(self.rungs[0], _PROMOTED * self.settings.beam)
        self.trials.of([DEFAULTS, *kept], self._second, self.reserve_s)
        return self.trials.on(self._second) or self.trials.on(self.rungs[0])

    def _children(self, parent: SetUp, levels: dict[str, list[tuple[float, str]]]) -> list[SetUp]:
        """Return the set-up with one atom more, at the levels that were best alone."""
        return [
            with_atom(parent, atom, level)
            for atom, scored in levels.items()
            if atom not in dict(parent)
            for _, level in scored[: self.settings.levels_extended]
        ]

    def _others(self, parent: SetUp) -> list[SetUp]:
        """Return the set-up with each of its atoms at each of its other levels."""
        by_id = self.space.explanations.by_id
        return [
            with_atom(parent, atom, level) for atom, _ in parent for level in by_id[atom].settings
        ]

    def _sample(self) -> None:
        """Try further values of the numbers of the best set-up."""
        rung, by_id = self.rungs[0], self.space.explanations.by_id
        parent = self._best(self._second, 1)[0] if self.trials.on(self._second) else DEFAULTS
        ranges = {atom: by_id[atom].range for atom, _ in parent}
        numbers = {atom: found.values() for atom, found in ranges.items() if found is not None}
        if not numbers or not self.settings.trials:
            return
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=4)
        study = optuna.create_study(sampler=sampler)
        space: dict[str, optuna.distributions.BaseDistribution] = {
            atom: optuna.distributions.IntDistribution(0, len(values) - 1)
            for atom, values in numbers.items()
        }
        study.enqueue_trial(
            {atom: _nearest(values, float(dict(parent)[atom])) for atom, values in numbers.items()}
        )
        for _ in range(self.settings.trials):
            asked = study.ask(space)
            set_up = parent
            for atom, place in asked.params.items():
                set_up = with_atom(set_up, atom, level_key(numbers[atom][place]))
            tried = self.trials.of([set_up], rung, self.reserve_s)
            if not tried:
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
                continue
            study.tell(asked, tried[0].total)
        # The best of them compete where the beam did.
        self._promote()

    def _backward(self) -> Trial:
        """Return the best on the last rung, with no atom that does not pay for itself."""
        last = self.rungs[-1]
        best = self.trials.on(last)[0]
        while True:
            less = [without_atom(best.set_up, atom) for atom, _ in best.set_up]
            tried = sorted(self.trials.of(less, last), key=rank)
            if not tried or tried[0].total > best.total:
                return best
            best = tried[0]

    def _without(self, best: Trial) -> Iterable[Trial]:
        last = self.rungs[-1]
        for atom, _ in best.set_up:
            yield from self.trials.of([without_atom(best.set_up, atom)], last)

    def _tell(self, what: str, rung: StudyPart) -> None:
        bench, tried = self.trials.bench, self.trials.on(rung)
        defaults = self.trials.tried.get((DEFAULTS, rung.name))
        if not tried or defaults is None:
            return
        best = tried[0]
        print(
            f"{self.space.study.id}: {what}: {self.trials.set_ups} set-ups, {rung.name}: "
            f"{best.total:.1f} bits (defaults {defaults.total:.1f}) by {in_words(best.pairs)}; "
            f"{bench.spent_s:.0f} of {bench.budget_s:.0f} s of CPU by the cost model",
            file=sys.stderr,
            flush=True,
        )


def _nearest(values: Sequence[float], wanted: float) -> int:
    return min(range(len(values)), key=lambda place: abs(values[place] - wanted))
