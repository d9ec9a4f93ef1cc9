"""Links from numbers and claims to the pages of the points that they rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from replication.judge.participation import is_supported
from replication.measure.cell_map import map_cells
from replication.report.charts.data import level_label
from replication.report.charts.name import file_of, name_of
from replication.report.parts.number import parse
from replication.report.parts.source import Row
from replication.study.claim_model import Claim, Quantity, covers
from replication.study.published import PublishedNumber
from replication.study.study import Study

FOLDER = "runs"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class PointLink:
    """A point of an experiment and its page; `file` is relative to the report's folder."""

    experiment: str
    point: str
    levels: dict[str, str]
    label: str
    file: str


@dataclass(frozen=True)
class PointLinks:
    """The points of a study that an engine ran, in the order of the design."""

    study: Study
    links: list[PointLink]

    @classmethod
    def of(cls, study: Study, design: Iterable[Row]) -> PointLinks:
        """Gather the points of a design; those that every engine refused have no page."""
        links: list[PointLink] = []
        ran = {(r["experiment"], r["point"]): r["levels"] for r in design if is_supported(r)}
        for (experiment, point), text in ran.items():
            name = file_of(name_of(study.id, experiment, point))
            levels: dict[str, str] = json.loads(text)
            factors = study.experiment(experiment).factors
            label = ", ".join(level_label(f, levels[f.id]) for f in factors if f.id in levels)
            links.append(PointLink(experiment, point, levels, label, f"{FOLDER}/{name}.html"))
        return cls(study, links)

    def find(self, experiment: str, point: str) -> PointLink | None:
        """Return the link of a point; None if no engine ran it."""
        found = (
            link for link in self.links if (link.experiment, link.point) == (experiment, point)
        )
        return next(found, None)

    def under(self, quantity: Quantity) -> list[PointLink]:
        """Return the points that a quantity is taken over."""
        return [
            link
            for link in self.links
            if link.experiment == quantity.experiment and covers(quantity.where, link.levels)
        ]

    def under_claim(self, claim: Claim) -> list[PointLink]:
        """Return the points that a claim rests on."""
        there = {link.file for quantity in claim.quantities() for link in self.under(quantity)}
        return [link for link in self.links if link.file in there]

    def under_cells(self, cells: Iterable[Row]) -> dict[Key, list[PointLink]]:
        """Return the points that each published number rests on, by table, row and column."""
        rows = {(row["table"], row["row"], row["column"]): row for row in cells}
        numbers = [
            PublishedNumber(*key, row["unit"], parse(row["published"]) or 0.0)
            for key, row in rows.items()
        ]
        return {cell.key: self.under(cell.quantity) for cell in map_cells(self.study, numbers)}


def cell_id(table: str, row: str, column: str) -> str:
    """Return the HTML id of a number's row; the charts' script makes the same."""
    return f"cell={name_of(table, row, column)}"
