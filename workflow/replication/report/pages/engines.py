"""The page on engines: what ran, whether engines agree, and where and why they differ."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from replication.base.table import (
    CONFORMANCE,
    CONFORMANCE_COLUMNS,
    DIFFERENCE_COLUMNS,
    DIFFERENCES,
    Row,
    grouped,
    read_rows,
)
from replication.compare.agreement import TABLES, EngineDifference, load_differences
from replication.compare.flow_differences import KEY, METRICS, Shown, outdated
from replication.engines.catalogue import ENGINES, package_warning
from replication.metrics.metric_model import metric_label
from replication.metrics.results import Results
from replication.report.pages.shown import Badge
from replication.report.pages.source import Source, read_if_there
from replication.study.study import Study
from replication.verdicts.summary import agreement
from replication.verdicts.verdict_table import EngineCoverage, PrimaryEngine

#: Outcomes of a check in a canonical scenario.
HOLDS = Badge("within tolerance", "reproduced", "the tolerance was set before any run")
NAMED = Badge("outside, cause named", "direction", "outside the tolerance for a known reason")
DEVIATES = Badge("outside, cause unknown", "failed", "outside the tolerance for an unknown reason")
REFUSED = Badge("refused", "untestable", "the engine lacks what the check needs")


@dataclass(frozen=True)
class Check:
    """A check in a canonical scenario: what is expected, and each engine's row with its outcome."""

    expected: Row
    engines: dict[str, tuple[Row, Badge]]


@dataclass(frozen=True)
class FlowDifference:
    """Where a known difference shows most in a quantity of the same flows, and in how many cases.

    `values` are by engine.
    """

    cause: EngineDifference
    shown: Shown
    cases: int
    row: Row
    values: dict[str, str]


@dataclass(frozen=True)
class EngineView:
    """An engine: its version, the studies that used it first, and what it ran of each study."""

    name: str
    family: str
    version: str
    warning: str
    installed: Mapping[str, Any] | None
    original_of: list[Study]
    parts: list[tuple[Study, EngineCoverage]]


@dataclass(frozen=True)
class PossibleCause:
    """A known difference that concerns the runs of a disagreement.

    `shows_in` are its metrics that differ here, in words.
    """

    difference: EngineDifference
    shows_in: list[str]


@dataclass(frozen=True)
class Disagreement:
    """A claim or column on which two engines disagree, and possible causes.

    `measured` names what both measured. `beyond` are the metrics that differ by more than
    run-to-run variation, if that is known. Of the known differences that concern the runs,
    `causes` would affect a metric that differs; the number `silent` would not.
    """

    label: str
    left: str
    right: str
    rows: list[Row]
    measured: list[str]
    beyond: list[str]
    replicated: bool
    causes: list[PossibleCause]
    silent: int


@dataclass(frozen=True)
class Measured:
    """What two engines measured on one side of a comparison, a row for each metric."""

    left: str
    right: str
    side: str
    rows: list[Row]


@dataclass(frozen=True)
class StudyDisagreements:
    """Where engines disagree on a study, and what they measured there."""

    study: Study
    items: list[Disagreement]
    measured: list[Measured]


@dataclass(frozen=True)
class AgreementView:
    """How often two engines agree, and where they do not.

    `left_out` are the studies that an engine refuses entirely, and why.
    """

    agreed: int
    compared: int
    left_out: list[tuple[Study, str]]
    disagreements: list[StudyDisagreements]


@dataclass(frozen=True)
class EnginesView:
    """The page on engines; `missing` did not run, `outdated` were measured in earlier versions."""

    engines: list[EngineView]
    missing: list[EngineView]
    primary_engines: list[tuple[Study, PrimaryEngine]]
    agreement: AgreementView | None
    conformance: list[Check]
    outcomes: list[tuple[Badge, int]]
    flows: list[FlowDifference]
    outdated: list[str]
    differences: list[EngineDifference]
    downloads: list[str]


def engines_page(source: Source) -> EnginesView:
    """Return what the page shows."""
    known = load_differences(source.root).by_id
    measured = read_if_there(source.root / DIFFERENCES, DIFFERENCE_COLUMNS)
    missing = [name for name in ENGINES if name not in source.engines]
    primary = source.primary_engines
    listed = _on_engines(known.values(), source.engines)
    checks = _conformance(source.root)
    return EnginesView(
        engines=[_engine(source, name) for name in source.engines],
        missing=[_engine(source, name) for name in missing],
        primary_engines=[(study, primary[name]) for name, study in source.studies.items()],
        agreement=_agreement(source, known),
        conformance=checks,
        outcomes=_outcomes(checks),
        flows=list(_flow_differences(measured, {each.id: each for each in listed})),
        outdated=[old.engine for old in outdated(source.root, measured)],
        differences=listed,
        downloads=[name for name in TABLES if (source.data / name).is_file()],
    )


def _conformance(root: Path) -> list[Check]:
    """Return the checks of the committed table; none if it is missing."""
    rows = read_if_there(root / CONFORMANCE, CONFORMANCE_COLUMNS)
    checks = []
    for same in grouped(rows, "check", "quantity", "expected", "low", "high", "source").values():
        checks.append(Check(same[0], {row["engine"]: (row, _outcome(row)) for row in same}))
    return checks


def _outcome(row: Row) -> Badge:
    known = {"refused": REFUSED, "true": HOLDS}
    return known.get(row["holds"], NAMED if row["note"] else DEVIATES)


def _outcomes(checks: Iterable[Check]) -> list[tuple[Badge, int]]:
    """Return how often each outcome occurs."""
    counts = Counter[str]()
    for check in checks:
        counts.update(outcome.word for _, outcome in check.engines.values())
    return [(badge, counts[badge.word]) for badge in (HOLDS, NAMED, DEVIATES, REFUSED)]


def _flow_differences(
    rows: Sequence[Row], listed: Mapping[str, EngineDifference]
) -> Iterator[FlowDifference]:
    """Yield where each listed difference shows most, for each quantity."""
    cases = defaultdict[tuple[str, str], list[list[Row]]](list)
    for same in grouped(rows, *KEY).values():
        causes = set[str]()
        for row in same:
            causes.update(cause for cause in row["entry"].split("; ") if cause)
        for cause in causes.intersection(listed):
            cases[cause, same[0]["metric"]].append(same)
    for (cause, metric), differing in sorted(cases.items()):
        largest = max(differing, key=_difference)
        yield FlowDifference(
            cause=listed[cause],
            shown=METRICS[metric],
            cases=len(differing),
            row=largest[0],
            values={row["engine"]: row["value"] for row in largest},
        )


def _difference(same: Iterable[Row]) -> float:
    """Return the largest difference of the same flows on any two engines."""
    return max(float(row["difference"]) for row in same)


def differences_of(root: Path, results: Results) -> list[EngineDifference]:
    """Return the known differences that concern any run of a study on an engine they name.

    Each names only the engines that ran.
    """
    ran = results.design[results.design["supported"]][["engine", "scenario"]].drop_duplicates()
    runs = [(str(row.engine), results.scenarios[str(row.scenario)]) for row in ran.itertuples()]
    concerning = []
    for known in load_differences(root).differences:
        if any(engine in known.engines and known.concerns.holds(run) for engine, run in runs):
            concerning.append(known)
    return _on_engines(concerning, {engine for engine, _ in runs})


def _on_engines(
    differences: Iterable[EngineDifference], engines: Container[str]
) -> list[EngineDifference]:
    """Return what each difference says of these engines; not those that say nothing of them."""
    shown = []
    for difference in differences:
        texts = {name: text for name, text in difference.engines.items() if name in engines}
        if texts:
            shown.append(difference.model_copy(update={"engines": texts}))
    return shown


def _engine(source: Source, name: str) -> EngineView:
    ran = source.provenance.get("engines", {}).get(name, {})
    studies = source.studies
    parts = [(study, source.parts[id].get(name)) for id, study in studies.items()]
    return EngineView(
        name=name,
        family=ENGINES[name].title,
        version=str(ran.get("version", ENGINES[name].version)),
        warning=package_warning(ran.get("package") or {}),
        installed=ran.get("installed"),
        original_of=[s for s in studies.values() if s.original_system.engine == name],
        parts=[(study, part) for study, part in parts if part],
    )


def _agreement(source: Source, known: Mapping[str, EngineDifference]) -> AgreementView | None:
    """Return how often engines agree and where they do not; None if only one engine ran."""
    if len(source.engines) < 2:
        return None
    tables = {name: read_rows(source.data / name, TABLES[name]) for name in TABLES}
    pairs, contrasts = tables["agreement_pairs.csv"], tables["agreement_contrasts.csv"]
    left_out = []
    for study, parts in source.parts.items():
        refusing = [(name, part) for name, part in parts.items() if not part.ran]
        left_out += [(source.studies[study], f"{n} {part.why_not()}") for n, part in refusing]
    agreed, compared = agreement(pairs)
    return AgreementView(
        agreed=agreed,
        compared=compared,
        left_out=left_out,
        disagreements=list(_disagreements(source, pairs, contrasts, known)),
    )


def _disagreements(
    source: Source,
    pairs: Sequence[Row],
    contrasts: Sequence[Row],
    known: Mapping[str, EngineDifference],
) -> Iterator[StudyDisagreements]:
    """Yield the disagreements on each study, with what the engines measured there once."""
    by_item = grouped(contrasts, "study", "group", "left", "right")
    disagreeing = [row for row in pairs if row["agree"] == "false"]
    apart = [row | {"group": _group(row)} for row in disagreeing]
    for (study,), of_study in grouped(apart, "study").items():
        items = list[Disagreement]()
        measured = dict[tuple[str, ...], Measured]()
        for key, rows in grouped(of_study, "study", "group", "left", "right").items():
            _, _, left, right = key
            contrast = by_item.get(key, [])
            items.append(_disagreement(source, rows, contrast, known))
            for (side,), same in grouped(contrast, "side").items():
                # Claims and columns on the same runs share what was measured.
                metrics = [row["metric"] for row in same]
                means = [row["left_mean"] for row in same]
                place = (left, right, side, *metrics, *means)
                measured[place] = Measured(left, right, side, same)
        yield StudyDisagreements(source.studies[study], items, list(measured.values()))


def _disagreement(
    source: Source,
    rows: list[Row],
    measured: Sequence[Row],
    known: Mapping[str, EngineDifference],
) -> Disagreement:
    """Return a disagreement of two engines and its possible causes."""
    beyond = dict.fromkeys(row["metric"] for row in measured if row["differs"] == "true")
    causes = []
    for name in rows[0]["causes"].split("; "):
        if name in known:
            causes.append(_possible(known[name], beyond))
    showing = [cause for cause in causes if cause.shows_in]
    return Disagreement(
        label=_label(source, rows[0]),
        left=rows[0]["left"],
        right=rows[0]["right"],
        rows=rows,
        measured=list(dict.fromkeys(row["side"] for row in measured)),
        beyond=[metric_label(name) for name in beyond],
        replicated=any(row["differs"] for row in measured),
        causes=showing,
        silent=len(causes) - len(showing),
    )


def _group(row: Row) -> str:
    """Return what is examined together: a claim, or the cells of a column."""
    return row["claim"] or f"{row['table']}: {row['column']}"


def _label(source: Source, row: Row) -> str:
    """Return what two engines disagree on, in words."""
    study, claim = row["study"], row["claim"]
    if claim:
        quotes = {known.id: known.quote for known in source.studies[study].claims}
        return f"claim {claim}: “{shorten(quotes[claim], 90)}”"
    return f"{source.table_name(study, row['table'])}, {row['column'].replace('_', ' ')}"


def _possible(cause: EngineDifference, beyond: Container[str]) -> PossibleCause:
    differing = [metric_label(name) for name in cause.shows_in if name in beyond]
    return PossibleCause(cause, differing)
