"""Stated causes in words, each with what it rests on, and the table of interventions."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from replication.base.table import INTERVENTION_COLUMNS, INTERVENTIONS, Row
from replication.compare.flow_differences import outdated
from replication.report.pages.source import read_if_there
from replication.study.intervention import load_interventions
from replication.study.stated_cause import StatedCause

UNKNOWN = "We do not know; perhaps"
#: Of a cause whose experiment has no row yet.
NOT_RUN = "Not tested yet"


class ShownCause(NamedTuple):
    """A cause in words; `intervention` and `note` link its experiment, if there is one."""

    words: str
    intervention: str = ""
    note: str = ""


def read_interventions(root: Path) -> list[Row]:
    """Return the rows of the committed table of interventions; none without it."""
    return read_if_there(root / INTERVENTIONS, INTERVENTION_COLUMNS)


class Causes:
    """Puts stated causes into words by the results of their experiments."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def _sentences(self) -> dict[str, str]:
        return {tested.id: tested.sentence for tested in load_interventions(self.root)}

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return {row["intervention"]: row for row in read_interventions(self.root)}

    def shown(self, causes: Iterable[StatedCause]) -> list[ShownCause]:
        """Return causes in words."""
        return [self._shown(cause) for cause in causes]

    def _shown(self, cause: StatedCause) -> ShownCause:
        if cause.source:
            return ShownCause(f"Source: {cause.source}.")
        if cause.intervention is None:
            return ShownCause(f"{UNKNOWN} {cause.untested}.")
        name = cause.intervention
        sentence = self._sentences.get(name)
        row = self._rows.get(name)
        if sentence is None:
            # Named by a release's study, and removed since.
            return ShownCause("We do not know.")
        if row is None:
            return ShownCause(f"{NOT_RUN}: {sentence}")
        if row["holds"] == "true":
            return ShownCause(sentence, name, "tested")
        return ShownCause(f"{UNKNOWN}: {sentence}", name, "its experiment does not confirm it")


class Interventions(NamedTuple):
    """The rows of the table of interventions, and engines that are older in it."""

    rows: list[Row]
    outdated: list[str]

    @property
    def confirming(self) -> int:
        """How many experiments confirm their cause."""
        return sum(row["holds"] == "true" for row in self.rows)


def interventions_view(root: Path) -> Interventions:
    """Return the table of interventions as the method page shows it."""
    rows = read_interventions(root)
    return Interventions(rows, [old.engine for old in outdated(root, rows)])
