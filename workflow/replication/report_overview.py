"""The first page: the answer in a sentence, verdicts per study, surprises, what ran."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass
from typing import Any

from replication import report_number as numbers
from replication.report_number import Number
from replication.report_source import Row, Source, of_study
from replication.report_verdict import Tally
from replication.study import Study

#: How many of the largest deviations the first page names.
LARGEST = 8


@dataclass(frozen=True)
class TallyRow:
    """Verdicts of one study on one engine."""

    study: Study
    engine: str
    cells: Tally
    claims: Tally


@dataclass(frozen=True)
class Deviation:
    """A cell far from its published value."""

    study: Study
    table: str
    row: str
    column: str
    unit: str
    published: Number
    reproduced: Number
    deviation: Number


@dataclass(frozen=True)
class Finding:
    """What the audit found by one check of one study."""

    study: Study
    check: str
    count: int
    example: Row


@dataclass(frozen=True)
class Overview:
    """Everything on the first page."""

    answer: list[str]
    rows: list[TallyRow]
    cells: Tally
    claims: Tally
    inside: int
    findings: list[Finding]
    deviations: list[Deviation]


def overview(source: Source) -> Overview:
    """Gather the first page."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    cell_tally = Tally.of(row["verdict"] for row in cells)
    claim_tally = Tally.of(row["verdict"] for row in claims)
    inside = sum(row["inside"].lower() in ("true", "1") for row in cells)
    return Overview(
        answer=_answer(source, cell_tally, claim_tally, inside),
        rows=_rows(source),
        cells=cell_tally,
        claims=claim_tally,
        inside=inside,
        findings=_findings(source),
        deviations=_deviations(source, cells),
    )


def _answer(source: Source, cells: Tally, claims: Tally, inside: int) -> list[str]:
    """Return the answer: a sentence on the numbers and one on the claims."""
    count = len(source.studies)
    studies = f"the {count} studies" if count > 1 else "the study"
    sentences = []
    if cells.total:
        impossible = cells.count("impossible")
        tail = f", and {impossible} {_are(impossible)} impossible as printed" if impossible else ""
        sentences.append(
            f"Of {cells.total} published numbers in {studies}, {inside} "
            f"({100 * inside / cells.total:.0f} %) {_lie(inside)} inside the tolerance set before "
            f"the run{tail}."
        )
    if claims.total:
        kept, half = claims.count("reproduced"), claims.count("direction only")
        lost, open_ = claims.count("not reproduced"), claims.count("not testable")
        impossible = claims.count("impossible")
        tail = f"; {impossible} {_are(impossible)} impossible" if impossible else ""
        where = "" if cells.total else f" in {studies}"
        sentences.append(
            f"Of {claims.total} claims{where}, {kept} {_are(kept)} reproduced, {half} in "
            f"direction only, {lost} {_are(lost)} not; {open_} cannot be tested{tail}."
        )
    return sentences or ["Nothing has been evaluated yet."]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _lie(count: int) -> str:
    return "lies" if count == 1 else "lie"


def _rows(source: Source) -> list[TallyRow]:
    rows = []
    for name, study in source.studies.items():
        cells, claims = of_study(source.cells, name), of_study(source.claims, name)
        engines = sorted({row["engine"] for row in (*cells, *claims) if row["engine"]})
        for engine in engines or [""]:
            rows.append(
                TallyRow(
                    study=study,
                    engine=engine,
                    cells=Tally.of(r["verdict"] for r in cells if r["engine"] in ("", engine)),
                    claims=Tally.of(r["verdict"] for r in claims if r["engine"] in ("", engine)),
                )
            )
    return rows


def _findings(source: Source) -> list[Finding]:
    """Return the audit's findings, one line for each study and kind, impossible ones first."""
    found = source.findings
    counted = Counter((row["study"], row["check"], row["finding"]) for row in found)
    first: dict[tuple[str, str, str], Row] = {}
    for row in found:
        first.setdefault((row["study"], row["check"], row["finding"]), row)
    return [
        Finding(source.studies[key[0]], key[1], count, first[key])
        for key, count in sorted(counted.most_common(), key=lambda pair: pair[0][2] != "impossible")
    ]


def _deviations(source: Source, cells: list[Row]) -> list[Deviation]:
    sized = [(value, row) for row in cells if (value := numbers.parse(row["relative_deviation"]))]
    sized.sort(key=lambda pair: -abs(pair[0]))
    return [
        Deviation(
            study=source.studies[row["study"]],
            table=row["table"],
            row=row["row"].replace("_", " "),
            column=row["column"].replace("_", " "),
            unit=numbers.display_unit(row["unit"]),
            published=numbers.published(row["published"], row["published_half_ulp"], row["unit"]),
            reproduced=numbers.number(row["reproduced_mean"], row["unit"]),
            deviation=numbers.percent(row["relative_deviation"]),
        )
        for _, row in sized[:LARGEST]
    ]


@dataclass(frozen=True)
class Stage:
    """A stage of the workflow and what it took."""

    name: str
    jobs: str
    wall: str
    cpu: str


@dataclass(frozen=True)
class Ran:
    """What was run, from provenance.json."""

    tier: str
    tier_title: str
    quick: bool
    written: str
    engines: list[tuple[str, str]]
    runtime: str
    facts: list[tuple[str, str]]
    stages: list[Stage]


def ran(provenance: dict[str, Any]) -> Ran:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier = _mapping(provenance, "tier")
    config = _mapping(provenance, "config")
    engines = {k: v for k, v in _mapping(provenance, "engines").items() if isinstance(v, dict)}
    name = str(tier.get("id") or config.get("tier") or "unknown")
    return Ran(
        tier=name,
        tier_title=str(tier.get("title", "")),
        quick=name == "quick" or tier.get("levels") == "quick",
        written=_when(str(provenance.get("written", ""))),
        engines=[(k, str(v.get("version", "unknown version"))) for k, v in engines.items()],
        runtime=str(config.get("runtime", "")),
        facts=_facts(provenance),
        stages=_stages(_mapping(provenance, "stages")),
    )


def _mapping(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _when(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _facts(provenance: dict[str, Any]) -> list[tuple[str, str]]:
    simulate, platform = _mapping(provenance, "simulate"), _mapping(provenance, "platform")
    facts: list[tuple[str, str]] = []
    for label, document, key, show in (
        ("Scenarios", simulate, "scenarios", numbers.count),
        ("Simulator CPU time", simulate, "simulator_cpu_s", numbers.duration),
        ("Wall time of the simulations", simulate, "wall_s", numbers.duration),
        ("Efficiency", simulate, "efficiency", _share),
        ("Peak memory of a run", simulate, "peak_memory_bytes", _memory),
        ("Cores", platform, "cores", numbers.count),
    ):
        value = document.get(key)
        if isinstance(value, int | float):
            facts.append((label, show(value)))
    for label, document, key in (
        ("Commit", provenance, "commit"),
        ("System", platform, "system"),
        ("Python", platform, "python"),
    ):
        if document.get(key):
            facts.append((label, str(document[key])))
    return facts


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _memory(value: float) -> str:
    return f"{value / 2**20:,.0f} MiB"


def _stages(stages: dict[str, Any]) -> list[Stage]:
    rows = []
    for name, stage in stages.items():
        if not isinstance(stage, dict):
            continue
        rows.append(
            Stage(
                name.replace("_", " "),
                numbers.count(float(stage.get("jobs", 0))),
                numbers.duration(float(stage.get("wall_s", 0))),
                numbers.duration(float(stage.get("cpu_s", 0))),
            )
        )
    return rows
