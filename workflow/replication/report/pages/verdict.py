"""Verdicts as the report shows, counts and answers with them, and the flags of claims."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.report.pages.number import percent
from replication.study.errors import InputError
from replication.study.storage.table import FLAG_COLUMNS, OWN_DATA_COLUMNS, read_rows
from replication.study.verdict import Verdict
from replication.verdicts.self_consistency import FAILS, NONE, OWN_DATA
from replication.verdicts.vacuity import FLAGS
from replication.verdicts.verdict_table import DEFAULT, Judged


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


#: What is said of a claim whose test the paper's own data fail.
OWN_WORDS = "the paper's own data do not meet these words"


@dataclass(frozen=True)
class Flag:
    """What stands beside a claim's verdict on one engine.

    Attributes
    ----------
    vacuous
        Whether what was compared could not differ.
    evidence
        What shows it, or how much of the comparison could not; empty where all could.
    own_data, own_reason
        How the paper's own data fare (holds, fails, none), and what was found of them.
    """

    vacuous: bool = False
    evidence: str = ""
    own_data: str = NONE
    own_reason: str = ""

    @property
    def own_words(self) -> str:
        """What a reader must know of the paper's own data; empty where they pass or are none."""
        return OWN_WORDS if self.own_data == FAILS else ""


#: Beside what has no flags, such as a number.
NO_FLAG = Flag()
#: Study, claim and engine to what stands beside the verdict.
Flags = Mapping[tuple[str, str, str], Flag]


def read_flags(data: Path) -> dict[tuple[str, str, str], Flag]:
    """Return the flags of every claim on every engine.

    Raises
    ------
    InputError
        A table is missing or malformed.
    """
    own = {
        (row["study"], row["claim"]): row["reason"]
        for row in read_rows(data / OWN_DATA, OWN_DATA_COLUMNS)
    }
    return {
        (row["study"], row["claim"], row["engine"]): Flag(
            vacuous=row["vacuous"] == "true",
            evidence=row["evidence"],
            own_data=row["own_data"],
            own_reason=own.get((row["study"], row["claim"]), ""),
        )
        for row in read_rows(data / FLAGS, FLAG_COLUMNS)
    }


def answer(tallies: Iterable[Tally], claims: Tally, deviations: Sequence[float]) -> list[str]:
    """Return a sentence on the numbers and one on the claims; neither where there is none.

    Parameters
    ----------
    tallies
        Verdicts of the numbers, a tally a table.
    claims
        Verdicts of the claims that count in the shares.
    deviations
        Relative deviations of the numbers that were reproduced.
    """
    return [*_of_numbers(list(tallies), deviations), *_of_claims(claims)]


def _of_numbers(tallies: Sequence[Tally], deviations: Sequence[float]) -> list[str]:
    total = sum(tally.total for tally in tallies)
    if not total:
        return []
    inside, open_ = (
        sum(tally.count(word) for tally in tallies)
        for word in (Verdict.REPRODUCED, Verdict.NOT_TESTABLE)
    )
    impossible = sum(tally.count(Verdict.IMPOSSIBLE) for tally in tallies)
    if open_ == total:
        said = f"None of the {total} printed numbers can be tested by what was run"
    else:
        said = f"{inside} of {total - open_} printed numbers are inside their tolerance"
        said += f"; {open_} more cannot be tested" if open_ else ""
    said += f", {impossible} cannot be true as printed" if impossible else ""
    if deviations:
        middle = statistics.median(abs(value) for value in deviations)
        above = sum(value > 0 for value in deviations)
        side = "above" if 2 * above > len(deviations) else "below"
        most = above if side == "above" else sum(value < 0 for value in deviations)
        size = percent(middle).shown.lstrip("+")
        said += f"; half of ours are more than {size} off, {most} of {len(deviations)} {side}"
    return [f"{said}."]


def _of_claims(claims: Tally) -> list[str]:
    if not claims.total:
        return []
    parts = []
    for word, said in (
        (Verdict.REPRODUCED, "holds"),
        (Verdict.DIRECTION_ONLY, "in direction only"),
        (Verdict.NOT_REPRODUCED, "does not hold"),
        (Verdict.IMPOSSIBLE, "cannot be true as printed"),
        (Verdict.NOT_TESTABLE, "cannot be tested"),
    ):
        if count := claims.count(word):
            parts.append(f"{count} {_plural(said, count)}")
    if count := claims.vacuous.count:
        parts.append(f"{count} {'is' if count == 1 else 'are'} vacuous")
    of = f"Of {claims.total} claims" if claims.total > 1 else "Of the one claim"
    return [f"{of}, {', '.join(parts)}."]


def _plural(said: str, count: int) -> str:
    """Return the words for so many: one holds, two hold."""
    if count == 1:
        return said
    return said.replace("does not", "do not").replace("holds", "hold")
