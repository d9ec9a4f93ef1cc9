"""The null: how often a search over the same runs scores as well where there is nothing to find.

For numbers, the deviations of the defaults are the noise: their labels are shuffled over the cells
and their signs drawn, which leaves how large they are and takes away what they belong to. For
claims, each claim's verdicts are shuffled over the set-ups, which leaves how often each holds and
takes away what holds together. Then the best of all set-ups that were tried, under the best of all
readings, is searched again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from replication.sensitivity.why.part import StudyPart
from replication.sensitivity.why.reader import Numbers, deviations, log_values
from replication.sensitivity.why.score import FamilyScore
from replication.sensitivity.why.set_up import DEFAULTS
from replication.sensitivity.why.trial import CellJudge, ClaimJudge, Trial, Trials, stacked

#: Set-ups, best by the readings that tables share, of which exceptions are tried too.
_SEARCHED = 4


def null_p_cells(
    trials: Trials, judge: CellJudge, rung: StudyPart, best: Trial, seed: int
) -> float:
    """Return the chance that deviations without a cause are explained as well as the best.

    Parameters
    ----------
    trials, judge, rung
        What was tried on the rung, and what scores it.
    best
        The trial whose gain over the defaults is judged.
    seed
        Of the shuffles.
    """
    tried = trials.on(rung)
    defaults = trials.tried[DEFAULTS, rung.name]
    gain = judge.stated_bits(defaults, rung) - best.total
    scores = [score for score in judge.scores(rung) if score.places]
    families = [n for n, s in enumerate(judge.scores(rung)) if s.places]
    names = np.array([judge.bench.space.bits(trial.set_up) for trial in tried])
    logs, ours, residuals = [], [], []
    for number, score in zip(families, scores, strict=True):
        published, slack = judge.reader.published(score.places)
        logs.append(log_values(stacked(tried, number), slack[:, None]))
        ours.append(log_values(defaults.printed[number][:, 0], slack))
        cap = judge.settings.winsorised_log_ratio
        # What is undefined is as far off as counts.
        residuals.append(np.clip(np.nan_to_num(published - ours[-1], nan=cap), -cap, cap))
    random = np.random.Generator(np.random.PCG64(seed))
    exceeded = 0
    for _ in range(judge.settings.permutations):
        false = [
            np.nan_to_num(own) + _shuffled(random, residual)
            for own, residual in zip(ours, residuals, strict=True)
        ]
        found = _null_gain(judge, tried, names, scores, logs, false)
        exceeded += found >= gain - 1e-9
    return (1 + exceeded) / (1 + judge.settings.permutations)


def _shuffled(random: np.random.Generator, residuals: Numbers) -> Numbers:
    signs = random.choice([-1.0, 1.0], size=len(residuals))
    return np.asarray(random.permutation(residuals) * signs)


def _null_gain(
    judge: CellJudge,
    tried: Sequence[Trial],
    names: Numbers,
    scores: Sequence[FamilyScore],
    logs: Sequence[Numbers],
    published: Sequence[Numbers],
) -> float:
    """Return the best gain over the defaults at false numbers."""
    cap = judge.settings.winsorised_log_ratio
    totals, errors, stated = names.copy(), [], 0.0
    start = next(n for n, trial in enumerate(tried) if trial.set_up == DEFAULTS)
    for score, own, false in zip(scores, logs, published, strict=True):
        errors.append(deviations(own, false[:, None], cap))
        shared = score.shared_bits(errors[-1])
        totals += shared.min(axis=-1)
        stated += float(shared[start, 0])
    chosen = {start, *np.argsort(totals, kind="stable")[:_SEARCHED].tolist()}
    best = []
    for number in sorted(chosen):
        choices = [score.best(own[number]) for score, own in zip(scores, errors, strict=True)]
        best.append(names[number] + sum(choice.data_bits + choice.bits for choice in choices))
    return float(stated - min(best))


def null_p_claims(
    trials: Trials, judge: ClaimJudge, rung: StudyPart, best: Trial, seed: int
) -> float:
    """Return the chance that claims that have nothing to do with one another hold together so."""
    tried = trials.on(rung)
    claims = sorted(best.verdicts)
    names = np.array([trial.bits for trial in tried])
    bits = np.array([[judge.cost_bits(t.verdicts[claim]) for claim in claims] for t in tried])
    random = np.random.Generator(np.random.PCG64(seed))
    exceeded = 0
    for _ in range(judge.settings.permutations):
        false = random.permuted(bits, axis=0)
        exceeded += float((false.sum(axis=1) + names).min()) <= best.total + 1e-9
    return (1 + exceeded) / (1 + judge.settings.permutations)
