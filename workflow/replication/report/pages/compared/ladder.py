"""The version ladder in the report: what changes with the version of ns-3 alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from replication.compare.ladder import NOT_RUN, Summary, is_flip, key_of, read_ladder, summarise
from replication.engines.ns3_release import Change, between, read_changes
from replication.engines.ns3_version import NS3_VERSION
from replication.report.charts.ladder import ladder_figures
from replication.report.drawing.figure import Figure
from replication.report.parts.source import Source
from replication.study.storage.table import Row


@dataclass(frozen=True)
class Step:
    """Two neighbouring versions: how many values differ, and what the release notes say."""

    older: str
    newer: str
    compared: int
    changed: int
    documented: list[Change]


@dataclass(frozen=True)
class LadderView:
    """The section; without `current` the results are of other code, and only that is said."""

    current: bool
    default: str
    summaries: list[Summary]
    #: What changes, and the same item by the default version.
    flips: list[tuple[Row, Row]]
    refused: list[tuple[str, str, int]]
    steps: list[Step]
    figures: list[Figure]


def ladder_view(source: Source) -> LadderView | None:
    """Return what the section shows; None where no ladder was run."""
    found = read_ladder(source.root, source.data)
    if found is None:
        return None
    rows, current = found
    if not current:
        return LadderView(False, NS3_VERSION, [], [], [], [], [])
    return LadderView(
        current=True,
        default=NS3_VERSION,
        summaries=summarise(rows),
        flips=_flips(rows),
        refused=_refused(rows),
        steps=list(_steps(rows, read_changes(source.root))),
        figures=ladder_figures(rows),
    )


def _flips(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Return verdicts that differ where both versions could run the item."""
    default = {key_of(row): row for row in rows if row["version"] == NS3_VERSION}
    return [(row, default[key_of(row)]) for row in rows if is_flip(row)]


def _refused(rows: list[Row]) -> list[tuple[str, str, int]]:
    """Return version, study and number of items that could not be run there."""
    missing = [(row["version"], row["study"]) for row in rows if row["change"] == NOT_RUN]
    return [(*key, missing.count(key)) for key in dict.fromkeys(missing)]


def _steps(rows: list[Row], changes: list[Change]) -> Iterator[Step]:
    means: dict[str, dict[tuple[str, ...], str]] = {}
    for row in rows:
        means.setdefault(row["version"], {})[key_of(row)] = row["mean"]
    for older, newer in itertools.pairwise(means):
        both = [key for key, mean in means[older].items() if mean and means[newer][key]]
        yield Step(
            older=older,
            newer=newer,
            compared=len(both),
            changed=sum(means[older][key] != means[newer][key] for key in both),
            documented=between(changes, older, newer),
        )
