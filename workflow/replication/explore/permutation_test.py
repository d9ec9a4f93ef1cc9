"""The permutation test: how often a search over the same runs does as well on shuffled data.

For numbers, the deviations of the defaults are the noise: their labels are shuffled over the cells
and their signs drawn, which leaves how large they are and takes away what they belong to. For
claims, each claim's verdicts are shuffled over the configurations, which leaves how often each
holds and takes away what holds together. Then the best of all configurations that were tried,
under the best of all readings, is searched again. Joint feasibility asks the same trials which
claims never hold together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from replication.explore.score import (
    MOST_LOG_RATIO,
    FamilyScore,
    Numbers,
    deviations,
    log_values,
)
from replication.explore.search import CellJudge, ClaimJudge, Trial, Trials
from replication.explore.trial_runner import DEFAULTS, StudyPart
from replication.study.verdict import Verdict

#: Configurations, best by the readings that tables share, of which exceptions are tried too.
_SEARCHED = 4
#: Pairs of claims that should hold together in fewer configurations may be apart by chance.
_LEAST_EXPECTED = 3.0


def cells_p(trials: Trials, judge: CellJudge, stage: StudyPart, best: Trial, seed: int) -> float:
    """Return the chance that deviations without a cause are explained as well as the best.

    Parameters
    ----------
    trials, judge, stage
        What was tried on the stage, and what scores it.
    best
        The trial whose gain over the defaults is judged.
    seed
        Of the shuffles.
    """
    tried = trials.at_stage(stage)
    defaults = trials.tried[DEFAULTS, stage.name]
    gain = judge.stated_bits(defaults, stage) - best.total
    scores = [score for score in judge.scores(stage) if score.places]
    families = [n for n, s in enumerate(judge.scores(stage)) if s.places]
    names = np.array([judge.runner.bits(trial.configuration) for trial in tried])
    logs, ours, residuals = [], [], []
    for number, score in zip(families, scores, strict=True):
        published, slack = judge.reader.published(score.places)
        logs.append(log_values(np.stack([t.printed[number] for t in tried]), slack[:, None]))
        ours.append(log_values(defaults.printed[number][:, 0], slack))
        # What is undefined is as far off as counts.
        residual = np.nan_to_num(published - ours[-1], nan=MOST_LOG_RATIO)
        residuals.append(np.clip(residual, -MOST_LOG_RATIO, MOST_LOG_RATIO))
    random = np.random.Generator(np.random.PCG64(seed))
    exceeded = 0
    for _ in range(judge.settings.permutations):
        false = [
            np.nan_to_num(own) + _shuffled(random, residual)
            for own, residual in zip(ours, residuals, strict=True)
        ]
        found = _null_gain(tried, names, scores, logs, false)
        exceeded += found >= gain - 1e-9
    return (1 + exceeded) / (1 + judge.settings.permutations)


def _shuffled(random: np.random.Generator, residuals: Numbers) -> Numbers:
    signs = random.choice([-1.0, 1.0], size=len(residuals))
    return np.asarray(random.permutation(residuals) * signs)


def _null_gain(
    tried: Sequence[Trial],
    names: Numbers,
    scores: Sequence[FamilyScore],
    logs: Sequence[Numbers],
    published: Sequence[Numbers],
) -> float:
    """Return the best gain over the defaults at false numbers."""
    totals, errors, stated = names.copy(), [], 0.0
    start = next(n for n, trial in enumerate(tried) if trial.configuration == DEFAULTS)
    for score, own, false in zip(scores, logs, published, strict=True):
        errors.append(deviations(own, false[:, None]))
        shared = score.shared_bits(errors[-1])
        totals += shared.min(axis=-1)
        stated += float(shared[start, 0])
    chosen = {start, *np.argsort(totals, kind="stable")[:_SEARCHED].tolist()}
    best = []
    for number in sorted(chosen):
        choices = [score.best(own[number]) for score, own in zip(scores, errors, strict=True)]
        best.append(names[number] + sum(choice.data_bits + choice.bits for choice in choices))
    return float(stated - min(best))


def claims_p(trials: Trials, judge: ClaimJudge, stage: StudyPart, best: Trial, seed: int) -> float:
    """Return the chance that claims that have nothing to do with one another hold together so."""
    tried = trials.at_stage(stage)
    claims = sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[judge.cost_bits(t.verdicts[claim]) for claim in claims] for t in tried])
    random = np.random.Generator(np.random.PCG64(seed))
    exceeded = 0
    for _ in range(judge.settings.permutations):
        false = random.permuted(bits, axis=0)
        exceeded += float((false.sum(axis=1) + names).min()) <= best.total + 1e-9
    return (1 + exceeded) / (1 + judge.settings.permutations)


def never_together(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Return the pairs of claims that no configuration has both of, the most surprising first.

    Each with the configurations in which one and the other hold, of how many, and in how many both
    should if they had nothing to do with one another.
    """
    claims = sorted(trials[0].verdicts) if trials else []
    holds = {
        claim: {n for n, t in enumerate(trials) if t.verdicts[claim] == Verdict.REPRODUCED}
        for claim in claims
    }
    found: list[dict[str, Any]] = []
    for one, other in itertools.combinations(claims, 2):
        expected = len(holds[one]) * len(holds[other]) / len(trials)
        if not holds[one] & holds[other] and expected >= _LEAST_EXPECTED:
            found.append(
                {
                    "one": one,
                    "other": other,
                    "holds_one": len(holds[one]),
                    "holds_other": len(holds[other]),
                    "set_ups": len(trials),
                    "expected": expected,
                }
            )
    return sorted(found, key=lambda pair: (-pair["expected"], pair["one"], pair["other"]))
