"""The report's own pages: their names, which no study may have, and what each is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReportPage:
    """A page of the report that is no study's.

    Attributes
    ----------
    name
        Of its HTML file.
    title
        In the menu; empty where the menu does not have it.
    made_of
        The file of results without which there is no such page; empty where it needs none of its
        own.
    """

    name: str
    title: str = ""
    made_of: str = ""


MAPS_PAGE = ReportPage("maps", "Where it holds", "maps.csv")
#: All of them, in the order of the menu.
REPORT_PAGES = (
    ReportPage("index"),
    ReportPage("changes"),
    ReportPage("engines", "Engines"),
    MAPS_PAGE,
)
#: The files of results that some of them are made of.
MADE_OF = tuple(page.made_of for page in REPORT_PAGES if page.made_of)
#: What the engines show in canonical scenarios, written by tests/engines/conformance.py.
CONFORMANCE = Path("data/conformance.csv")
