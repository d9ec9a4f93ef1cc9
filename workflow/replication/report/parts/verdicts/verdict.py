"""Verdicts as the report shows and counts them, each with a symbol and a colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from replication.judge.headline import DEFAULT
from replication.judge.verdict_table import Judged
from replication.study.errors import InputError
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class Badge:
    """A word of a verdict or of another judgement; `slug` names its symbol and its colour."""

    word: str
    slug: str
    meaning: str


BADGES = (
    Badge(Verdict.REPRODUCED, "reproduced", "inside the tolerance that was set before the run"),
    Badge(Verdict.DIRECTION_ONLY, "direction", "sign or order holds, the size does not"),
    Badge(Verdict.NOT_REPRODUCED, "failed", "outside the tolerance, or the other way round"),
    Badge(
        Verdict.NOT_TESTABLE,
        "untestable",
        "the paper, or what was run, gives too little to decide",
    ),
    Badge(
        Verdict.IMPOSSIBLE,
        "impossible",
        "the published value breaks a physical bound of the paper's own set-up",
    ),
)
#: Counted in the place of its verdict where a flag says so.
VACUOUS = Badge(
    "vacuous", "vacuous", "what was compared could not differ: the verdict says nothing"
)
_BY_WORD = {badge.word: badge for badge in BADGES}


def badge(word: str) -> Badge:
    """Return the badge of a verdict; InputError for any other word."""
    try:
        return _BY_WORD[word]
    except KeyError:
        known = ", ".join(_BY_WORD)
        raise InputError(f"verdict {word!r} is unknown; there are {known}") from None


@dataclass(frozen=True)
class VerdictShare:
    """How many of a tally have one verdict."""

    verdict: Badge
    count: int


@dataclass(frozen=True)
class Tally:
    """Verdicts counted; those that are vacuous stand apart, under no verdict."""

    shares: tuple[VerdictShare, ...]
    vacuous: VerdictShare = VerdictShare(VACUOUS, 0)

    @classmethod
    def of(cls, words: Iterable[str], vacuous: int = 0) -> Tally:
        """Count verdict words, beside which there are so many vacuous verdicts."""
        counted = Counter(badge(word).word for word in words)
        shares = tuple(VerdictShare(v, counted[v.word]) for v in BADGES)
        return cls(shares, VerdictShare(VACUOUS, vacuous))

    @property
    def all_shares(self) -> tuple[VerdictShare, ...]:
        """Return the verdicts' shares and that of the vacuous ones."""
        return (*self.shares, self.vacuous)

    @property
    def total(self) -> int:
        """Return how many were counted."""
        return sum(share.count for share in self.all_shares)

    def count(self, word: str) -> int:
        """Return how many have the verdict `word`."""
        return next(share.count for share in self.shares if share.verdict.word == word)

    def sentence(self) -> str:
        """Return the counts in words, leaving out verdicts that nothing has."""
        parts = [f"{s.count} {s.verdict.word}" for s in self.all_shares if s.count]
        return ", ".join(parts) or "none"


@dataclass(frozen=True)
class OtherEngine:
    """What another engine says of an item that the study's own headline engine cannot test."""

    engine: str
    verdict: Badge


def beside(rows: Iterable[Judged], headline: str) -> OtherEngine | None:
    """Return the default engine's verdict if it has one and that of the headline has none."""
    found = {row["engine"]: badge(row["verdict"]) for row in rows}
    undecided = badge(Verdict.NOT_TESTABLE)
    other = found.get(DEFAULT, undecided)
    if found.get(headline) != undecided or other == undecided:
        return None
    return OtherEngine(DEFAULT, other)
