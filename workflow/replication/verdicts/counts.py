"""Counts of verdicts: one definition and one denominator each, for pages, notebooks and CSV.

Three things are counted, each on one engine:

- ``printed``: numbers that a paper prints,
- ``trace``: statistics of the traces that a paper's authors published,
- ``claims``: claims that are results of a paper's own and repeat no other (column ``counted``).

``total`` is how many there are, ``tested`` how many of them are not `not testable`. A share is
always of those that could be tested. ``compared`` are the numbers of one published run that were
held against enough independent runs of ours, ``outside`` those of them outside the central 95 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.published_run import CENTRAL
from replication.verdicts.verdict_table import Judged

#: What is counted, and its words on a page.
WHAT = {"printed": "printed numbers", "trace": "statistics of published traces", "claims": "claims"}
#: Stands for all studies, each on the engine whose verdicts are its headline.
ALL_STUDIES = ""
#: The table of all counts.
COUNTS = "counts.csv"
COUNT_COLUMNS = (
    *("study", "engine", "what", "total", "tested"),
    *(word.replace(" ", "_") for word in Verdict),
    *("compared", "outside"),
)


class Share(NamedTuple):
    """A part of a whole; no part is larger than its whole."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"

    @property
    def percent(self) -> str:
        """Return the share in whole percent; empty of nothing."""
        return f"{100 * self.part / self.whole:.0f} %" if self.whole else ""


class Tally:
    """How many of some verdicts are of each word."""

    outside = Share(0, 0)

    def __init__(self, words: Iterable[str]) -> None:
        found = Counter(words)
        if unknown := found.keys() - set(Verdict):
            raise InputError(f"verdict {min(unknown)!r} is unknown; there are {', '.join(Verdict)}")
        self.by_verdict = {verdict: found[verdict] for verdict in Verdict}

    @property
    def total(self) -> int:
        """Return how many there are."""
        return sum(self.by_verdict.values())

    @property
    def tested(self) -> int:
        """Return how many could be tested."""
        return self.total - self.by_verdict[Verdict.NOT_TESTABLE]

    def count(self, word: str) -> int:
        """Return how many have the verdict `word`."""
        return self.by_verdict[Verdict(word)]

    def share(self, word: str) -> Share:
        """Return how many of those that could be tested have the verdict `word`."""
        return Share(self.count(word), self.tested)


class Numbers(Tally):
    """Verdicts on numbers, where these are from, and how many lie outside the central 95 %.

    A trace is a table, and its flows are the table's rows.
    """

    def __init__(self, rows: Iterable[Judged]) -> None:
        rows = list(rows)
        super().__init__(row["verdict"] for row in rows)
        self.studies, self.tables, self.rows = (
            len({tuple(row[name] for name in names) for row in rows})
            for names in (["study"], ["study", "table"], ["study", "table", "row"])
        )
        #: How many are of one published run; the others have a tolerance.
        self.of_one_run = sum(row["accepted_margin"] is None for row in rows)
        compared = [row["compatible"] for row in rows if row["compatible"] is not None]
        self.outside = Share(compared.count(False), len(compared))
        #: How many would be outside if the published runs were further runs of ours.
        self.outside_by_chance = (1 - CENTRAL[1] + CENTRAL[0]) * len(compared)


def tallies(cells: Iterable[Judged], claims: Iterable[Judged]) -> dict[str, Tally]:
    """Return the counts of rows of the verdict table, of one engine a study, by what is counted."""
    cells = list(cells)
    return {
        "printed": Numbers(row for row in cells if row["kind"] == "printed"),
        "trace": Numbers(row for row in cells if row["kind"] == "trace"),
        "claims": Tally(row["verdict"] for row in claims if row["counted"]),
    }


def count_rows(
    cells: Sequence[Judged], claims: Sequence[Judged], primary: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of counts.csv: each study on each engine, then all on their primary engines.

    `primary` is of each study the engine whose verdicts are its headline.
    """
    engines = {row["engine"] for row in (*cells, *claims)} - {""}
    counted = [
        (study, engine, {study: engine}) for study in sorted(primary) for engine in sorted(engines)
    ]
    for study, engine, chosen in [*counted, (ALL_STUDIES, "", primary)]:
        # What is of no engine is of each.
        own_cells, own_claims = (
            [r for r in rows if r["study"] in chosen and r["engine"] in ("", chosen[r["study"]])]
            for rows in (cells, claims)
        )
        for what, tally in tallies(own_cells, own_claims).items():
            if tally.total:
                yield {
                    **{"study": study, "engine": engine, "what": what},
                    **{"total": tally.total, "tested": tally.tested},
                    **{word.replace(" ", "_"): n for word, n in tally.by_verdict.items()},
                    **{"compared": tally.outside.whole, "outside": tally.outside.part},
                }
