"""The engines' page: what ran, whether the engines agree, and where and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from replication.compare.agreement import TABLES, EngineDifference, load_differences
from replication.engines.catalogue import ENGINES, family_of, package_warning
from replication.judge.verdict_table import Headline, Judged, Participation
from replication.measure.metric_model import metric_label
from replication.report.pages import number as numbers
from replication.report.pages.number import Number
from replication.report.pages.source import Source, of_study
from replication.report.pages.verdict import NO_FLAG, Badge, Flag, badge
from replication.study.storage.table import CONFORMANCE_COLUMNS, Row, read_rows
from replication.study.study import CONFORMANCE, Study

#: What an engine shows in a canonical scenario.
HOLDS = Badge("holds", "reproduced", "inside the tolerance that was set before any run")
NAMED = Badge("known deviation", "direction", "outside it, and the cause is named")
DEVIATES = Badge("deviates", "failed", "outside it, for a cause that is not known yet")
REFUSED = Badge("refused", "untestable", "the engine lacks what the check needs, and says so")
OUTCOMES = (HOLDS, NAMED, DEVIATES, REFUSED)


@dataclass(frozen=True)
class EngineView:
    """One engine: its exact version, whose papers ran it, and its part in each study.

    `warning` says that Debian's package of it is not the one that the lock names, `installed`
    which installed simulator it ran on, if the user named one.
    """

    name: str
    family: str
    version: str
    warning: str
    installed: str
    ran: bool
    original_of: list[Study]
    parts: list[tuple[Study, Participation]]


@dataclass(frozen=True)
class EnginesPage:
    """Everything on the engines' page."""

    engines: list[EngineView]
    missing: list[EngineView]
    headlines: list[tuple[Study, Headline]]
    agreement: AgreementView | None
    conformance: list[tuple[Row, Badge]]


def engines_page(source: Source) -> EnginesPage:
    """Gather the engines' page."""
    views = [_engine(source, name) for name in dict.fromkeys((*source.engines, *ENGINES))]
    return EnginesPage(
        engines=[view for view in views if view.ran],
        missing=[view for view in views if not view.ran],
        headlines=[(study, source.headlines[name]) for name, study in source.studies.items()],
        agreement=agreement_view(source),
        conformance=_conformance(source.root),
    )


def _conformance(root: Path) -> list[tuple[Row, Badge]]:
    """Return the rows of the committed table, each with its verdict; none where there is none."""
    path = root / CONFORMANCE
    rows = read_rows(path, CONFORMANCE_COLUMNS) if path.is_file() else []
    return [(row, _outcome(row)) for row in rows]


def _outcome(row: Row) -> Badge:
    if row["holds"] == "refused":
        return REFUSED
    if row["holds"] == "true":
        return HOLDS
    return NAMED if row["note"] else DEVIATES


def _engine(source: Source, name: str) -> EngineView:
    ran = source.provenance.get("engines", {}).get(name, {})
    known = ENGINES[name].version if name in ENGINES else ""
    return EngineView(
        name=name,
        family=family_of(name),
        version=str(ran.get("version", known)),
        warning=package_warning(ran.get("package") or {}),
        installed=_installed(ran.get("installed")),
        ran=name in source.engines,
        original_of=[s for s in source.studies.values() if s.original_system.engine == name],
        parts=[
            (study, source.parts[id][name])
            for id, study in source.studies.items()
            if name in source.parts[id]
        ],
    )


#: Whether engines agree on an item: a word and what it means.
AGREE, DIFFER, SINGLE = "agree", "differ", "single"
MEANINGS = {
    DIFFER: "engines differ",
    AGREE: "engines agree",
    SINGLE: "one engine decides it, or none",
}


@dataclass(frozen=True)
class MatrixRow:
    """A study, or all of them where `study` is None, on each pair of engines."""

    study: Study | None
    pairs: list[list[Row]]


@dataclass(frozen=True)
class EngineOutcome:
    """An item on one engine; `value` is a claim's statistic or a cell's mean."""

    verdict: Badge
    value: Number
    interval: str
    flag: Flag = NO_FLAG


@dataclass(frozen=True)
class ComparedItem:
    """A claim or a cell on every engine that ran its study."""

    study: Study
    label: str
    title: str
    unit: str
    published: Number | None
    outcomes: dict[str, EngineOutcome]
    agreement: str
    #: Of a cell, the largest relative difference of two engines' means.
    difference: Number


@dataclass(frozen=True)
class CauseView:
    """A known difference of two engines; `seen` and `unseen` are the metrics it would show in."""

    title: str
    left: str
    right: str
    seen: list[str]
    unseen: list[str]
    sources: list[str]


@dataclass(frozen=True)
class Disagreement:
    """What two engines decide differently, what they measured there, and what could be why."""

    study: Study
    label: str
    left: str
    right: str
    items: list[tuple[str, Badge, Badge]]
    sides: list[tuple[str, list[Row]]]
    #: Metrics that differ beyond the replicates, and whether there were replicates to tell.
    beyond: list[str]
    replicated: bool
    causes: list[CauseView]


@dataclass(frozen=True)
class AgreementView:
    """Everything that the page says of agreement."""

    engines: list[str]
    pairs: list[tuple[str, str]]
    matrix: list[MatrixRow]
    #: What an engine refuses of a whole study, and why, each once.
    left_out: list[tuple[Study, str]]
    claims: list[ComparedItem]
    cells: list[ComparedItem]
    disagreements: list[Disagreement]


def agreement_view(source: Source) -> AgreementView | None:
    """Gather what the page says of agreement; None where there is nothing to compare.

    Raises
    ------
    InputError
        Several engines ran, but the tables of their agreement are missing or malformed.
    """
    if len(source.engines) < 2:
        return None
    return _Gathering(source).view()


class _Gathering:
    def __init__(self, source: Source) -> None:
        self.source = source
        tables = {name: read_rows(source.data / name, TABLES[name]) for name in TABLES}
        self.rates = tables["agreement.csv"]
        self.pairs = tables["agreement_pairs.csv"]
        self.contrasts = tables["agreement_contrasts.csv"]

    @cached_property
    def known(self) -> dict[str, EngineDifference]:
        differences = load_differences(self.source.root).differences
        return {difference.id: difference for difference in differences}

    def view(self) -> AgreementView:
        found = list(dict.fromkeys((row["left"], row["right"]) for row in self.rates))
        studies: list[Study | None] = [*self.source.studies.values()]
        return AgreementView(
            engines=self.source.engines,
            pairs=found,
            matrix=[
                MatrixRow(study, [self._rates(study.id if study else "", pair) for pair in found])
                for study in (*studies, *([None] if len(studies) > 1 else []))
            ],
            left_out=self._left_out(),
            claims=[item for study in self.source.studies.values() for item in self._claims(study)],
            cells=[item for study in self.source.studies.values() for item in self._cells(study)],
            disagreements=self._disagreements(),
        )

    def _left_out(self) -> list[tuple[Study, str]]:
        found = dict.fromkeys(
            (row["study"], row["reason"]) for row in self.rates if row["study"] and row["reason"]
        )
        return [(self.source.studies[study], reason) for study, reason in found]

    def _rates(self, study: str, pair: tuple[str, str]) -> list[Row]:
        return [
            row
            for row in self.rates
            if (row["study"], row["left"], row["right"]) == (study, *pair) and row["items"] != "0"
        ]

    def _claims(self, study: Study) -> Iterable[ComparedItem]:
        rows = of_study(self.source.claims, study.id)
        return self._items(study, rows, ("claim",), self._claim_outcome)

    def _claim_outcome(self, row: Judged) -> EngineOutcome:
        return EngineOutcome(
            badge(row["verdict"]),
            numbers.number(row["observed"]),
            numbers.interval(row["low"], row["high"]),
            self.source.flag(row),
        )

    def _cells(self, study: Study) -> Iterable[ComparedItem]:
        rows = of_study(self.source.cells, study.id)
        return self._items(study, rows, ("table", "row", "column"), _cell_outcome)

    def _items(
        self,
        study: Study,
        rows: Sequence[Judged],
        key: tuple[str, ...],
        outcome: Callable[[Judged], EngineOutcome],
    ) -> Iterable[ComparedItem]:
        by_key: dict[tuple[str, ...], dict[str, Judged]] = {}
        for row in rows:
            if row["engine"] in self.source.shown_engines(study.id):
                by_key.setdefault(tuple(row[name] for name in key), {})[row["engine"]] = row
        pairs: dict[tuple[str, ...], list[Row]] = {}
        for row in of_study(self.pairs, study.id):
            pairs.setdefault(tuple(row[name] for name in key), []).append(row)
        for names, found in by_key.items():
            first = next(iter(found.values()))
            yield ComparedItem(
                study=study,
                label=self._label(names, first),
                title=first.get("quote", ""),
                unit=numbers.display_unit(first.get("unit", "1")),
                published=_published(first),
                outcomes={engine: outcome(row) for engine, row in found.items()},
                agreement=_agreement(pairs.get(names, [])),
                difference=_largest(pairs.get(names, [])),
            )

    def _column(self, row: Row) -> str:
        return f"{self.source.table_name(row)}, {row['column'].replace('_', ' ')}"

    def _label(self, names: tuple[str, ...], row: Judged) -> str:
        if len(names) == 1:
            return names[0]
        return ", ".join([self.source.table_name(row), row["row_label"], row["column_label"]])

    def _disagreements(self) -> list[Disagreement]:
        groups: dict[tuple[str, str, str, str], list[Row]] = {}
        for row in self.pairs:
            if row["agree"] == "false":
                group = row["claim"] or f"{row['table']}: {row['column']}"
                key = row["study"], group, row["left"], row["right"]
                groups.setdefault(key, []).append(row)
        return [self._disagreement(key, rows) for key, rows in groups.items()]

    def _disagreement(self, key: tuple[str, str, str, str], rows: list[Row]) -> Disagreement:
        study, group, left, right = key
        measured = [row for row in self.contrasts if _of_group(row, key)]
        named = rows[0]["causes"].split("; ")
        claim = bool(rows[0]["claim"])
        return Disagreement(
            study=self.source.studies[study],
            label=f"Claim {group}" if claim else self._column(rows[0]),
            left=left,
            right=right,
            items=[
                (
                    "" if claim else row["row"].replace("_", " "),
                    badge(row["left_verdict"]),
                    badge(row["right_verdict"]),
                )
                for row in rows
            ],
            sides=[
                (side, [row for row in measured if row["side"] == side])
                for side in dict.fromkeys(row["side"] for row in measured)
            ],
            beyond=[metric_label(name) for name in _beyond(measured)],
            replicated=any(row["differs"] for row in measured),
            causes=[
                _cause(self.known[name], left, right, measured)
                for name in named
                if name in self.known
            ],
        )


def _of_group(row: Row, key: tuple[str, str, str, str]) -> bool:
    return (row["study"], row["group"], row["left"], row["right"]) == key


def _published(row: Judged) -> Number | None:
    if "published" not in row:
        return None
    return numbers.published(row["published"], row["published_half_ulp"], row["unit"])


def _cell_outcome(row: Judged) -> EngineOutcome:
    return EngineOutcome(
        badge(row["verdict"]),
        numbers.number(row["reproduced_mean"], row["unit"]),
        numbers.interval(row["reproduced_low"], row["reproduced_high"], row["unit"]),
    )


def _agreement(pairs: Sequence[Row]) -> str:
    found = {row["agree"] for row in pairs}
    if "false" in found:
        return DIFFER
    return AGREE if "true" in found else SINGLE


def _largest(pairs: Sequence[Row]) -> Number:
    sized = [row["difference"] for row in pairs if numbers.parse(row["difference"]) is not None]
    return numbers.percent(max(sized, key=lambda raw: abs(float(raw)), default=""))


def _beyond(measured: Sequence[Row]) -> list[str]:
    """Return the metrics that differ beyond the replicates on some side, each once."""
    return list(dict.fromkeys(row["metric"] for row in measured if row["differs"] == "true"))


def _cause(
    difference: EngineDifference, left: str, right: str, measured: Sequence[Row]
) -> CauseView:
    differs = _beyond(measured)
    words = difference.parts(left, right) or ("", "")
    return CauseView(
        title=difference.title,
        left=words[0],
        right=words[1],
        seen=[metric_label(metric) for metric in difference.shows_in if metric in differs],
        unseen=[metric_label(metric) for metric in difference.shows_in if metric not in differs],
        sources=list(difference.sources),
    )


def _installed(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    same = "gives the wheel’s bytes" if found["as_pinned"] else "gives results of its own"
    return f"an installed build ({found['build']}) that {same} in the canonical scenarios"
