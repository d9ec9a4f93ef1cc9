"""Verdicts as the report counts and shows them: five words, each with a symbol and a colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from replication.study.errors import InputError


@dataclass(frozen=True)
class Verdict:
    """One verdict; `slug` names its symbol and its colour in templates and style sheets."""

    word: str
    slug: str
    meaning: str


VERDICTS = (
    Verdict("reproduced", "reproduced", "inside the tolerance that was set before the run"),
    Verdict("direction only", "direction", "sign or order holds, the size does not"),
    Verdict("not reproduced", "failed", "outside the tolerance, or the other way round"),
    Verdict("not testable", "untestable", "the paper, or what was run, gives too little to decide"),
    Verdict(
        "impossible",
        "impossible",
        "the published value breaks a physical bound of the paper's own set-up",
    ),
)
_BY_WORD = {verdict.word: verdict for verdict in VERDICTS}


def verdict(word: str) -> Verdict:
    """Return the verdict for its word; InputError for any other word."""
    try:
        return _BY_WORD[word]
    except KeyError:
        known = ", ".join(_BY_WORD)
        raise InputError(f"verdict {word!r} is unknown; there are {known}") from None


@dataclass(frozen=True)
class VerdictShare:
    """How many of a tally have one verdict."""

    verdict: Verdict
    count: int


@dataclass(frozen=True)
class Tally:
    """Verdicts counted."""

    shares: tuple[VerdictShare, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> Tally:
        """Count verdict words."""
        counted = Counter(verdict(word).word for word in words)
        return cls(tuple(VerdictShare(v, counted[v.word]) for v in VERDICTS))

    @property
    def total(self) -> int:
        """Return how many were counted."""
        return sum(share.count for share in self.shares)

    def count(self, word: str) -> int:
        """Return how many have the verdict `word`."""
        return next(share.count for share in self.shares if share.verdict.word == word)

    def sentence(self) -> str:
        """Return the counts in words, leaving out verdicts that nothing has."""
        parts = [f"{s.count} {s.verdict.word}" for s in self.shares if s.count]
        return ", ".join(parts) or "none"
