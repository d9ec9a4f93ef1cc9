"""The permutation test: how often a search over the same runs does as well on shuffled data.

For numbers, the deviations of the defaults are the noise: their labels are shuffled over the cells
and their signs drawn, which leaves how large they are and takes away what they belong to. For
claims, each claim's verdicts are shuffled over the configurations, which leaves how often each
holds and takes away what holds together. Then the best of all configurations that were tried,
under the best of all readings, is searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from replication.explore.score import (
    MOST_LOG_RATIO,
    FamilyScore,
    Numbers,
    deviations,
    log_values,
)
from replication.explore.search import Search
from replication.explore.trial import DEFAULTS, CellJudge, ClaimJudge, Trial

#: Configurations, best by the readings that tables share, of which exceptions are tried too.
_SEARCHED = 4


def cells_p(search: Search, judge: CellJudge, best: Trial) -> float:
    """Return the chance that deviations without a cause are explained as well as the best."""
    stage = search.stages[0]
    tried, scores = search.at_stage(stage), judge.scores(stage)
    defaults = search.tried[DEFAULTS, stage.name]
    gain = judge.stated_bits(defaults, stage) - best.total
    names = np.array([judge.runner.bits(trial.configuration) for trial in tried])
    start = [trial.configuration for trial in tried].index(DEFAULTS)
    logs, ours, residuals = [], [], []
    for number, score in enumerate(scores):
        printed = np.stack([trial.printed[number] for trial in tried])
        logs.append(log_values(printed, score.slack[:, None]))
        ours.append(log_values(defaults.printed[number][:, 0], score.slack))
        # What is undefined is as far off as counts.
        residual = np.nan_to_num(score.published - ours[-1], nan=MOST_LOG_RATIO)
        residuals.append(np.clip(residual, -MOST_LOG_RATIO, MOST_LOG_RATIO))

    def shuffled(random: np.random.Generator, residual: Numbers) -> Numbers:
        signs = random.choice([-1.0, 1.0], size=len(residual))
        return np.asarray(random.permutation(residual) * signs)

    def as_good(random: np.random.Generator) -> bool:
        false = [
            np.nan_to_num(own) + shuffled(random, residual)
            for own, residual in zip(ours, residuals, strict=True)
        ]
        return _null_gain(start, names, scores, logs, false) >= gain - 1e-9

    return _chance(search, as_good)


def _chance(search: Search, as_good: Callable[[np.random.Generator], bool]) -> float:
    random = np.random.Generator(np.random.PCG64(search.settings.seed))
    count = search.settings.explanation.permutations
    return (1 + sum(as_good(random) for _ in range(count))) / (1 + count)


def _null_gain(
    start: int,
    names: Numbers,
    scores: Sequence[FamilyScore],
    logs: Sequence[Numbers],
    published: Sequence[Numbers],
) -> float:
    """Return the best gain over the defaults, which are trial `start`, at false numbers."""
    totals, errors, stated = names.copy(), [], 0.0
    for score, own, false in zip(scores, logs, published, strict=True):
        errors.append(deviations(own, false[:, None]))
        shared = score.shared_bits(errors[-1])
        totals += shared.min(axis=-1)
        stated += float(shared[start, 0])
    chosen = {start, *np.argsort(totals, kind="stable")[:_SEARCHED].tolist()}
    best = []
    for number in chosen:
        choices = [score.best(own[number]) for score, own in zip(scores, errors, strict=True)]
        best.append(names[number] + sum(choice.data_bits + choice.bits for choice in choices))
    return float(stated - min(best))


def claims_p(search: Search, judge: ClaimJudge, best: Trial) -> float:
    """Return the chance that claims that have nothing to do with one another hold together so."""
    tried, claims = search.at_stage(search.stages[0]), sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[judge.cost_bits(t.verdicts[claim]) for claim in claims] for t in tried])

    def as_good(random: np.random.Generator) -> bool:
        totals = random.permuted(bits, axis=0).sum(axis=1) + names
        return float(totals.min()) <= best.total + 1e-9

    return _chance(search, as_good)
