"""The result of a search as data: `explain_study` writes it as JSON and tables, pages read it."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self, get_type_hints

from replication.base.table import read_rows, typed

#: Parts of the numbers or claims: what the search scored, what it never saw, and what it never
#: scored but saw, since a searched row prints the same number.
SEEN, HELD_OUT, REPEATED = "seen", "held_out", "repeated"


@dataclass(frozen=True)
class ExplainedCell:
    """A published number under the best explanation: a row of explained_cells.csv."""

    study: str
    table: str
    row: str
    column: str
    engine: str
    unit: str
    published: float
    #: Our mean as the paper would print it; NaN if it is undefined.
    reproduced_mean: float
    matches: bool
    #: Whether the search scored it.
    used_in_search: bool
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, row and column."""
        return self.table, self.row, self.column

    @property
    def deviation(self) -> float:
        """The relative deviation; NaN if the published number is zero."""
        return self.reproduced_mean / self.published - 1 if self.published else math.nan

    @classmethod
    def read(cls, path: Path) -> list[Self]:
        """Read the table; InputError if it is missing, damaged or of another version."""
        rows = read_rows(path, EXPLANATIONS["explained_cells"])
        for row in rows:
            row["reproduced_mean"] = row["reproduced_mean"] or "nan"
        return typed(path, list[cls], rows)  # type: ignore[valid-type]


@dataclass(frozen=True)
class Part:
    """Matches and errors of a part of the numbers or claims, at the defaults and explained.

    The error of numbers is the median of the relative ones. That of claims is the mean: 0 if a
    claim is reproduced, half in direction only, 1 if not. It is None if nothing is defined.
    """

    cells: int
    before: int
    after: int
    error_before: float | None
    error_after: float | None


class Totals(NamedTuple):
    """How many numbers or claims there are, and match at the defaults and explained."""

    cells: int
    before: int
    after: int


@dataclass(frozen=True)
class UsedCause:
    """A cause of an explanation; an exception for a table is `cause@table`."""

    cause: str
    level: str
    #: By which the description grows without it.
    bits: float
    #: Searched numbers or claims that match without it.
    matches: int
    title: str
    reason: str
    source: str
    plausibility: str
    evidence: str
    outside_ledger: str
    #: Day, whether that was before or after results were seen, and who suggested it.
    added: str
    results_seen: str
    suggested_by: str


@dataclass(frozen=True)
class EquallyGood:
    """A configuration that fits as well without one of the causes: its causes and levels."""

    causes: list[tuple[str, str]]
    worse_by_bits: float


@dataclass(frozen=True)
class BrokenClaim:
    """A claim that the paper's numbers hold and the explanation does not."""

    claim: str
    quote: str
    statistic: str
    #: The level at which both differ most; empty if there is none.
    at: str
    measured: str
    published: str


@dataclass(frozen=True)
class Impossible:
    """Printed numbers that break a bound, as the study reads them and under the explanation."""

    before: list[str]
    after: list[str]


@dataclass(frozen=True, kw_only=True)
class OnData:
    """What of a finding rests on its numbers or claims."""

    #: How much shorter it is than the defaults, and the probability of that by chance.
    gain_bits: float
    null_p: float
    seen: Part
    held_out: Part
    repeated: Part
    #: Verdicts by claim, at the defaults and explained.
    claims_before: dict[str, str]
    claims_after: dict[str, str]
    impossible: Impossible
    broken: list[BrokenClaim]

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """What the search scored, never saw, and saw without scoring it."""
        return self.seen, self.held_out, self.repeated

    @property
    def totals(self) -> Totals:
        """The matches over all parts."""
        parts = self.parts
        return Totals(
            cells=sum(part.cells for part in parts),
            before=sum(part.before for part in parts),
            after=sum(part.after for part in parts),
        )


@dataclass(frozen=True, kw_only=True)
class Finding(OnData):
    """The best of a search, judged."""

    #: "best", or "alternative" if coupled causes give a second one.
    explanation: str = ""
    result: str = ""
    #: Why it is no explanation.
    reasons: list[str]
    #: That name its causes.
    bits: float
    causes: list[UsedCause]
    #: What the coupled causes change together; empty without them.
    coupled: str
    #: Causes against the paper's text or its authors' data.
    contradicts: list[str]
    suggested_by: list[str]
    equally_good: list[EquallyGood]
    #: Configurations near on an earlier stage that the budget did not suffice to compare.
    not_compared: int


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What was searched for a study."""

    study: str
    engine: str
    score: Literal["cells", "claims"]
    permutations: int
    configurations_tried: int
    causes_tried: list[str]
    causes_untried: list[str]
    #: Why a cause cannot be tested, by its id.
    untestable: dict[str, str]
    #: Expected, by the cost model.
    cpu_minutes: float
    budget_minutes: float


@dataclass(frozen=True, kw_only=True)
class Explanation(Finding, Searched):
    """explanation.json: what was searched, the best finding, and the others."""

    others: list[Finding]
    input_hashes: dict[str, str]


@dataclass(frozen=True)
class ExplanationRow:
    """A finding in short: a row of explanations.csv.

    Matches of numbers are None where claims are explained.
    """

    study: str
    explanation: str
    result: str
    bits: float
    null_p: float
    configurations_tried: int
    cells: int
    matches_before: int | None
    matches_after: int | None
    held_out: int
    held_out_matches_before: int
    held_out_matches: int
    held_out_error_before: float | None
    held_out_error_after: float | None
    claims_before: int
    claims_after: int
    contradicts: str
    suggested_by: str
    cpu_minutes: float


@dataclass(frozen=True)
class CauseRow:
    """A cause of a finding: a row of explanation_causes.csv."""

    study: str
    explanation: str
    cause: str
    value: str
    bits: float
    plausibility: str
    evidence: str


#: The tables of a study's folder, which are merged under the same names.
EXPLANATIONS = {
    "explanations": tuple(get_type_hints(ExplanationRow)),
    "explanation_causes": tuple(get_type_hints(CauseRow)),
    "explained_cells": tuple(get_type_hints(ExplainedCell)),
}
