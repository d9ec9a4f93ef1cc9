"""Claims that an explanation breaks: the paper's own numbers hold them, and our runs do not."""

import math
from collections.abc import Iterator, Mapping, Sequence

from replication.explore.explained import BrokenClaim
from replication.metrics.cell_map import MappedCell
from replication.study.claim_model import (
    Claim,
    PublishedRun,
    RatioTest,
    SimpleTest,
)
from replication.study.study import Study
from replication.verdicts.comparison import LookUp, mean_statistic
from replication.verdicts.self_consistency import printed_numbers
from replication.verdicts.wording import wording


def broken_claims(
    study: Study, cells: Sequence[MappedCell], read: Sequence[Claim], measured: LookUp
) -> list[BrokenClaim]:
    """Return a row for each test that the printed numbers pass and the `measured` ones fail.

    `read` are the claims as the explanation reads their quantities; the printed numbers are taken
    as the study reads them. A ratio over several levels is given where the two differ most.
    """
    printed = printed_numbers(study, cells)
    stated = {claim.id: claim for claim in study.claims if claim.is_counted}
    rows = []
    for claim in read:
        if claim.id not in stated:
            continue
        pairs = zip(stated[claim.id].tests(), claim.tests(), strict=True)
        for as_stated, as_read in pairs:
            published = _statistic(study, as_stated, printed)
            value = _statistic(study, as_read, measured)
            if not _holds(as_stated, published) or math.isnan(value) or _holds(as_read, value):
                continue
            where = _widest_gap(study, as_stated, as_read, printed, measured)
            at, value, published = where or ("", value, published)
            words = wording(study, as_stated)
            rows.append(
                BrokenClaim(
                    claim=claim.id,
                    quote=stated[claim.id].quote,
                    statistic=words.statistic,
                    at=at,
                    measured=words.value(value),
                    published=words.value(published),
                )
            )
    return rows


def _holds(test: SimpleTest, value: float) -> bool:
    """Return whether a value meets a test's condition; one published run is no condition."""
    if isinstance(test.expect, PublishedRun) or math.isnan(value):
        return False
    return test.expect.holds(value)


def _statistic(study: Study, test: SimpleTest, look_up: LookUp) -> float:
    """Return the mean of a test's statistic; NaN if it cannot be computed."""
    value = mean_statistic(study, test, look_up)
    return math.nan if value is None else value


def _widest_gap(
    study: Study, as_stated: SimpleTest, as_read: SimpleTest, printed: LookUp, measured: LookUp
) -> tuple[str, float, float] | None:
    """Return the level at which the measured and the printed ratio differ most, and the two."""
    if not isinstance(as_stated, RatioTest) or not isinstance(as_read, RatioTest):
        return None
    gaps = []
    for factor, level in _shared_levels(as_stated):
        narrowed = {factor: [level]}
        published = _statistic(study, _at(as_stated, narrowed), printed)
        value = _statistic(study, _at(as_read, narrowed), measured)
        if published > 0 and value > 0:
            varied = study.experiment(as_stated.left.experiment).factor(factor)
            (label,) = (option.label for option in varied.levels if option.key == level)
            gap = abs(math.log(value / published))
            gaps.append((gap, f"{varied.label} {label}", value, published))
    return max(gaps)[1:] if gaps else None


def _shared_levels(test: RatioTest) -> Iterator[tuple[str, str]]:
    """Yield factor and level of the lists that both sides of a ratio give alike."""
    for factor, levels in test.left.where.items():
        if len(levels) > 1 and test.right.where.get(factor) == levels:
            for level in levels:
                yield factor, level


def _at(test: RatioTest, narrowed: Mapping[str, list[str]]) -> RatioTest:
    """Return a ratio at single levels."""
    left = test.left.model_copy(update={"where": {**test.left.where, **narrowed}})
    right = test.right.model_copy(update={"where": {**test.right.where, **narrowed}})
    return test.model_copy(update={"left": left, "right": right})
