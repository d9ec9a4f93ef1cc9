"""Counts of verdicts, with one definition and one denominator each, for pages, notebooks and CSV.

data/README.md explains them (`counts.csv`); shares are of the tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from replication.study.verdict import Verdict
from replication.verdicts.published_run import CENTRAL
from replication.verdicts.verdict_table import Judged

#: What is counted, with its words on a page.
WHAT = {"printed": "printed numbers", "trace": "statistics of published traces", "claims": "claims"}
#: All studies, each on its primary engine.
ALL_STUDIES = ""
#: The table of all counts.
COUNTS = "counts.csv"
COUNT_COLUMNS = (
    *("study", "engine", "what", "total", "tested"),
    *(word.replace(" ", "_") for word in Verdict),
    *("compared", "outside"),
)


class Share(NamedTuple):
    """A part of a whole."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"


class Tally:
    """How many verdicts are of each kind."""

    outside = Share(0, 0)

    def __init__(self, words: Iterable[str]) -> None:
        found = Counter(words)
        self.by_verdict = {verdict: found[verdict] for verdict in Verdict}
        self.total = found.total()
        self.tested = self.total - self.by_verdict[Verdict.NOT_TESTABLE]

    def share(self, word: str) -> Share:
        """Return how many of those tested are of the verdict `word`."""
        return Share(self.by_verdict[Verdict(word)], self.tested)


class Numbers(Tally):
    """Verdicts on numbers, their tables, and how many lie outside the central 95 % of our runs.

    A trace is a table, and its flows are the table's rows.
    """

    def __init__(self, rows: Iterable[Judged]) -> None:
        rows = list(rows)
        super().__init__(row["verdict"] for row in rows)
        self.tables = len({(row["study"], row["table"]) for row in rows})
        self.rows = len({(row["study"], row["table"], row["row"]) for row in rows})
        #: How many are numbers of one published run; the others have a tolerance.
        self.of_one_run = sum(row["accepted_margin"] is None for row in rows)
        compared = [row["compatible"] for row in rows if row["compatible"] is not None]
        self.outside = Share(compared.count(False), len(compared))
        #: How many chance would put outside if the published runs were runs of ours.
        self.outside_by_chance = (1 - CENTRAL[1] + CENTRAL[0]) * len(compared)


def tallies(cells: Iterable[Judged], claims: Iterable[Judged]) -> dict[str, Tally]:
    """Count rows of the verdict table, of one engine for each study, by what is counted."""
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

    `primary` has the primary engine of each study.
    """
    engines = {row["engine"] for row in (*cells, *claims)} - {""}
    counted = [
        (study, engine, {study: engine}) for study in sorted(primary) for engine in sorted(engines)
    ]
    for study, engine, chosen in [*counted, (ALL_STUDIES, "", primary)]:
        # Rows without an engine belong to every engine.
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
