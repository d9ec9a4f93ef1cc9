"""The search: beam forward selection, pairs first, backward deletion.

1. Every cause alone, at every level, on the first stage; then, as some causes only show together,
   all pairs of the best causes, and the cheapest of the other pairs.
2. The best of these on the next stage; one more cause at its best levels is added to each
   configuration of the beam, until no description gets shorter.
3. Coupled causes from the starts in the study's file, on the first stage.
4. Neighbouring values of each number among the chosen causes, on the first stage.
5. The best on all that the search may see: causes that do not pay are left out, and configurations
   that came near on an earlier stage are compared.

No step depends on the time of day: the engines' cost models count the budget.
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

from replication.base.position import located
from replication.design.config import Sensitivity, explanations_path, load_sensitivity, load_study
from replication.explore.cause import Coupled, Explanations, check_explanations, level_key
from replication.explore.machine import Machine
from replication.explore.score import PAYS_BITS
from replication.explore.trial import (
    DEFAULTS,
    CellJudge,
    ClaimJudge,
    Configuration,
    StudyPart,
    Trial,
    TrialRunner,
    with_cause,
    without_each,
)
from replication.metrics.cell_map import cells_of

#: Configurations whose results are looked up together.
_TOGETHER = 12
#: Configurations that are extended in each round.
BEAM = 2
#: Share of the budget for pairs of any causes, cheapest first.
CHEAP_PAIRS_SHARE = 0.1
#: Best levels of a cause that are tried together with other causes.
LEVELS_EXTENDED = 2
#: Configurations no further than this from the best fit equally well.
EQUALLY_GOOD_BITS = 7.0
#: Share of the budget for additions to coupled causes.
COUPLED_SHARE = 0.1
#: Configurations that are scored on the next stage, as a multiple of the beam.
_PROMOTED = 3
#: Neighbouring values of a number that are tried on either side of the best.
NEIGHBOURS = 2
#: Largest shares of the budget that are reserved for the last stages, and for coupled causes there.
_MOST_RESERVED, _MOST_COUPLED = 0.5, 0.4


def kinds(trial: Trial) -> set[str]:
    """Return the causes of a trial, whatever their levels and tables."""
    return {cause.partition("@")[0] for cause, _ in trial.pairs}


def _pairs(alone: Sequence[tuple[str, str]]) -> list[Configuration]:
    pairs = itertools.combinations(alone, 2)
    return [with_cause((first,), *second) for first, second in pairs if first[0] != second[0]]


@dataclass
class Search:
    """The search for a study's best explanation.

    `stages` are growing parts of the study without held-out data, the last one all of it; `whole`
    has the held-out data too; `tried` has all trials by configuration and stage.
    """

    runner: TrialRunner
    judge: CellJudge | ClaimJudge
    stages: Sequence[StudyPart]
    whole: StudyPart
    settings: Sensitivity
    tried: dict[tuple[Configuration, str], Trial] = field(default_factory=dict)

    @classmethod
    def begin(cls, root: Path, explanations: Explanations, machine: Machine) -> Self:
        """Return the search that files describe; InputError where they do not fit together."""
        study = load_study(root, explanations.study)
        cells = cells_of(root, study)
        with located(explanations_path(root, study.id)):
            check_explanations(explanations, study, cells)
        # Configurations have one run, so spreads cannot be compared.
        cells = [cell for cell in cells if not cell.is_spread]
        runner = TrialRunner(study, explanations, machine)
        judge = CellJudge(runner, cells) if explanations.score == "cells" else ClaimJudge(runner)
        return cls(runner, judge, *judge.parts(), load_sensitivity(root))

    @property
    def coupled(self) -> Coupled | None:
        """The causes that cancel each other unless all are present."""
        return self.runner.explanations.coupled

    @cached_property
    def _reserve_s(self) -> float:
        """Expected cost of the finalists, the waterfall and the held-out part."""
        first, last = self.stages[0], self.stages[-1]
        each_s = self.runner.cost_s(DEFAULTS, last)
        is_one_part = last.levels == first.levels == self.whole.levels
        if is_one_part and first.variation == last.variation:
            # Only the best without one of its causes may still have to run.
            return each_s
        whole_s = self.runner.cost_s(DEFAULTS, self.whole)
        wanted_s = (self.settings.explanation.finalists + 2) * each_s + 2 * whole_s
        budget_s = self.runner.explanations.cpu_budget_s
        coupled_s = min(self._coupled_s, _MOST_COUPLED * budget_s)
        return min(wanted_s, _MOST_RESERVED * budget_s) + coupled_s

    @property
    def _coupled_s(self) -> float:
        """Expected cost of judging the best with coupled causes."""
        if self.coupled is None:
            return 0.0
        start = tuple(sorted(self.coupled.starts[0].items()))
        last = self.stages[-1]
        each_s = self.runner.cost_s(start, last)
        # The whole study, and the last stage without each of the causes but one.
        return self.runner.cost_s(start, self.whole) + (len(start) - 1) * each_s

    def evaluate(
        self,
        configurations: Sequence[Configuration],
        stage: StudyPart,
        reserve_s: float | None = None,
    ) -> list[Trial]:
        """Return the trials of configurations on a stage, in their order; each is run once.

        With `reserve_s` only as many as the budget allows without this reserve; a configuration
        that makes no scenario has no trial.
        """
        wanted = list(dict.fromkeys(configurations))
        left_s = self.runner.left_s - (reserve_s or 0.0)
        new: list[Configuration] = []
        for configuration in wanted:
            is_tried = (configuration, stage.name) in self.tried
            if is_tried or self.runner.runs(configuration, stage) is None:
                continue
            if reserve_s is not None:
                left_s -= self.runner.cost_s(configuration, stage)
                if left_s < 0:
                    break
            new.append(configuration)
        for start in range(0, len(new), _TOGETHER):
            together = new[start : start + _TOGETHER]
            results = self.runner.results(together, stage)
            for trial in self.judge.judged(together, results, stage):
                self.tried[trial.configuration, stage.name] = trial
            study = self.runner.study.id
            best = self.at_stage(stage)[0].total
            left = f"{self.count} configurations, {self.runner.left_s:.0f} s of CPU left"
            print(f"{study}: {left}, best {best:.1f} bits", file=sys.stderr)
        keys = [(configuration, stage.name) for configuration in wanted]
        return [self.tried[key] for key in keys if key in self.tried]

    def at_stage(self, stage: StudyPart) -> list[Trial]:
        """Return all trials on a stage, best first."""
        return sorted(trial for (_, name), trial in self.tried.items() if name == stage.name)

    @property
    def count(self) -> int:
        """The number of configurations that were tried."""
        return len({configuration for configuration, _ in self.tried})

    def run(self) -> list[Trial]:
        """Return the best on the last stage, with and without coupled causes, best first."""
        runner, reserve_s = self.runner, self._reserve_s
        first, last = self.stages[0], self.stages[-1]
        self.evaluate([DEFAULTS], first)
        causes = runner.explanations.of_kind("set-up")
        single: list[Configuration] = []
        for simulated in causes:
            single += [((simulated.id, key),) for key in simulated.variations]
        # The levels of each cause, best first.
        levels: dict[str, list[str]] = {}
        for trial in sorted(self.evaluate(single, first, reserve_s)):
            ((cause, level),) = trial.configuration
            levels.setdefault(cause, []).append(level)
        coupled = self._couple(levels)
        best = [(cause, keys[0]) for cause, keys in levels.items()]
        self.evaluate(_pairs(best[: self.settings.explanation.paired_causes]), first, reserve_s)
        all_but_s = runner.left_s - CHEAP_PAIRS_SHARE * runner.explanations.cpu_budget_s
        every: list[tuple[str, str]] = []
        for cause, keys in levels.items():
            every += [(cause, key) for key in keys[:LEVELS_EXTENDED]]
        cheap = sorted(_pairs(every), key=lambda pair: (runner.cost_s(pair, first), pair))
        self.evaluate(cheap, first, all_but_s)
        self._grow(levels)
        self._refine()
        count = self.settings.explanation.finalists
        finalists = [*dict.fromkeys([*self._best(self._second, 2), *self._best(first, count)])]
        # The defaults come first: everything is compared with them.
        self.evaluate([DEFAULTS], last)
        # The best without coupled causes comes first, since these may cost all that is left.
        alone = [finalist for finalist in finalists if not self.is_coupled(finalist)]
        self.evaluate([*alone[:1], *coupled], last, reserve_s / 4)
        self.evaluate(finalists[:count], last, reserve_s / 2)
        settled = [self._settle(coupled=False)]
        if coupled:
            settled.append(self._settle(coupled=True))
        return sorted(trial for trial in settled if trial is not None)

    def near(self, best: Trial) -> list[Configuration]:
        """Return configurations that fit as well on an earlier stage, with or without coupling."""
        coupled = self.is_coupled(best.configuration)
        near = list[Configuration]()
        for stage in self.stages[:-1]:
            (on_stage,) = self.evaluate([best.configuration], stage)
            limit = on_stage.total + EQUALLY_GOOD_BITS
            tried = self.at_stage(stage)
            near += [trial.configuration for trial in tried if trial.total <= limit]
        distinct = dict.fromkeys(near)
        return [trial for trial in distinct if self.is_coupled(trial) is coupled]

    def is_coupled(self, configuration: Configuration) -> bool:
        """Return whether a configuration has the main cause of the coupled ones."""
        return self.coupled is not None and self.coupled.cause in dict(configuration)

    def rivals(self, best: Trial) -> list[Trial]:
        """Return trials that fit as well on the last stage without one of the best's causes."""
        limit, needed = best.total + EQUALLY_GOOD_BITS, kinds(best)
        tried = [trial for trial in self.at_stage(self.stages[-1]) if trial.total <= limit]
        return [trial for trial in tried if not needed <= kinds(trial)]

    @property
    def defaults(self) -> Trial:
        """The defaults on the last stage."""
        return self.tried[DEFAULTS, self.stages[-1].name]

    def waterfall(self, best: Trial) -> list[Trial]:
        """Return the best without one of its causes each, in their order."""
        return self.evaluate(without_each(best.configuration), self.stages[-1])

    @property
    def _second(self) -> StudyPart:
        return self.stages[min(1, len(self.stages) - 1)]

    def _best(self, stage: StudyPart, count: int) -> list[Configuration]:
        return [trial.configuration for trial in self.at_stage(stage)[:count]]

    def _grow(self, levels: Mapping[str, list[str]]) -> None:
        """Add causes to the best configurations while that shortens the description."""
        first, reserve_s = self.stages[0], self._reserve_s
        reached = self._promote()
        for _ in range(2, self.settings.explanation.depth + 1):
            children: list[Configuration] = []
            for trial in reached[:BEAM]:
                children += self._children(trial.configuration, levels)
            self.evaluate(children, first, reserve_s)
            before, reached = reached, self._promote()
            if not reached[0] < before[0]:
                break

    def _promote(self) -> list[Trial]:
        """Score the best of the first stage on the second; return all there, best first."""
        kept = self._best(self.stages[0], _PROMOTED * BEAM)
        self.evaluate([DEFAULTS, *kept], self._second, self._reserve_s)
        return self.at_stage(self._second) or self.at_stage(self.stages[0])

    def _children(
        self, parent: Configuration, levels: Mapping[str, list[str]]
    ) -> list[Configuration]:
        """Return a configuration with its causes at other levels, and with one cause more."""
        by_id, chosen = self.runner.explanations.by_id, dict(parent)
        others = {cause: list(by_id[cause].variations) for cause in chosen}
        more = {cause: levels[cause][:LEVELS_EXTENDED] for cause in levels if cause not in chosen}
        children: list[Configuration] = []
        for cause, keys in (others | more).items():
            children += [with_cause(parent, cause, level) for level in keys]
        return children

    def _refine(self) -> None:
        parent = (self._best(self._second, 1) or [DEFAULTS])[0]
        neighbours = []
        for cause, level in parent:
            numbers = self.runner.explanations.by_id[cause].range
            values = numbers.values() if numbers else []
            here = min(range(len(values)), key=lambda n: abs(values[n] - float(level)), default=0)
            close = values[max(here - NEIGHBOURS, 0) : here + NEIGHBOURS + 1]
            neighbours += [with_cause(parent, cause, level_key(value)) for value in close]
        self.evaluate(neighbours, self.stages[0], 0.8 * self._reserve_s)
        self._promote()

    def _couple(self, levels: Mapping[str, list[str]]) -> list[Configuration]:
        """Extend the starts with coupled causes, one change at a time; return the best."""
        if self.coupled is None:
            return []
        first = self.stages[0]
        starts = [tuple(sorted(start.items())) for start in self.coupled.starts]
        most_s = COUPLED_SHARE * self.runner.explanations.cpu_budget_s
        floor_s = max(self.runner.left_s - most_s, self._reserve_s)
        trials = self.evaluate(starts, first, floor_s)
        before: Trial | None = None
        while trials and (best := min(trials)) is not before:
            before, parent = best, best.configuration
            changed = [*without_each(parent), *self._children(parent, levels)]
            coupled = [configuration for configuration in changed if self.is_coupled(configuration)]
            trials = self.evaluate([parent, *coupled], first, floor_s)
        return [before.configuration] if before else []

    def _settle(self, coupled: bool) -> Trial | None:
        """Return the best on the last stage, with or without coupled causes.

        Each of its causes pays for itself, and near configurations are compared as far as the
        budget allows.
        """
        last = self.stages[-1]
        before: Trial | None = None
        best: Trial | None = None
        while (first := self._first(self.at_stage(last), coupled)) and first is not before:
            before = best = first
            while less := self._first(self.waterfall(best), coupled):
                if less.total >= best.total + PAYS_BITS:
                    break
                best = less
            kept_s = 0.0 if coupled else self._coupled_s
            reserve_s = self.runner.cost_s(best.configuration, self.whole) + kept_s
            self.evaluate(self.near(best), last, reserve_s)
        return best

    def _first(self, trials: Sequence[Trial], coupled: bool) -> Trial | None:
        allowed = (trial for trial in trials if self.is_coupled(trial.configuration) is coupled)
        return min(allowed, default=None)
