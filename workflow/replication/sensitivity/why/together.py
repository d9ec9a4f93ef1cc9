"""Claims together: which hold with one another in anything tried, and which pairs never do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from replication.sensitivity.why.trial import Trial
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class NeverTogether:
    """Two claims of which no set-up has both, though each holds in several.

    Attributes
    ----------
    one, other
        The claims.
    holds_one, holds_other
        In how many set-ups each holds.
    set_ups
        Of how many.
    expected
        In how many both should hold if they had nothing to do with one another.
    """

    one: str
    other: str
    holds_one: int
    holds_other: int
    set_ups: int
    expected: float


def never_together(trials: Sequence[Trial], least_expected: float) -> list[NeverTogether]:
    """Return the pairs of claims that no set-up has both of, the most surprising first.

    Parameters
    ----------
    trials
        All that were tried on one rung.
    least_expected
        Pairs that should hold together in fewer set-ups than this may be apart by chance.
    """
    claims = sorted(trials[0].verdicts) if trials else []
    holds = {
        claim: {n for n, t in enumerate(trials) if t.verdicts[claim] == Verdict.REPRODUCED}
        for claim in claims
    }
    found = []
    for one, other in itertools.combinations(claims, 2):
        expected = len(holds[one]) * len(holds[other]) / len(trials)
        if not holds[one] & holds[other] and expected >= least_expected:
            counts = len(holds[one]), len(holds[other]), len(trials)
            found.append(NeverTogether(one, other, *counts, expected))
    return sorted(found, key=lambda pair: (-pair.expected, pair.one, pair.other))
