"""The report's own pages: their names, which no study may have, and what each is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportPage:
    """A page of the report that is no study's.

    Attributes
    ----------
    name
        Its module in `report.writers`, and its HTML file.
    title
        In the menu; empty where the menu does not have it.
    made_of
        The file of results without which there is no such page; empty where it needs none.
    """

    name: str
    title: str = ""
    made_of: str = ""


ENGINES = ReportPage("engines", "Engines")
MAPS = ReportPage("maps", "Where it holds", "maps.csv")
BENCH = ReportPage("bench", "Speed", "bench.json")
RELIABILITY = ReportPage("reliability", "Reliability", "reliability.json")
#: All of them, in the order of the menu.
REPORT_PAGES = (
    *(ReportPage("index"), ReportPage("changes")),
    *(ENGINES, MAPS, BENCH, RELIABILITY),
)
