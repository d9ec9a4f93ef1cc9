"""Links from numbers and claims to the pages of the points that they rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from replication.judge.participation import is_supported
from replication.judge.verdict_table import Judged
from replication.report.drawing.data import level_label
from replication.report.drawing.figure import file_of, name_of
from replication.study.storage.table import Row
from replication.study.study import Study

FOLDER = "runs"


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
        return cls(links)

    def find(self, experiment: str, point: str) -> PointLink | None:
        """Return the link of a point; None if no engine ran it."""
        found = (
            link for link in self.links if (link.experiment, link.point) == (experiment, point)
        )
        return next(found, None)

    def under(self, rows: Iterable[Judged]) -> list[PointLink]:
        """Return the points that a number or claim rests on, given its row on each engine."""
        wanted = {(point["experiment"], point["point"]) for row in rows for point in row["points"]}
        return [link for link in self.links if (link.experiment, link.point) in wanted]


def cell_id(table: str, row: str, column: str) -> str:
    """Return the HTML id of a number's row; the charts' script makes the same."""
    return f"cell={name_of(table, row, column)}"
