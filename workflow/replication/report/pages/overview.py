"""The first page: the answer in a sentence, verdicts per study, surprises, what ran."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass
from typing import Any

from replication.engines.debian import package_warning
from replication.plan.origin import RELEASED
from replication.report.parts import number as numbers
from replication.report.parts.number import Number
from replication.report.parts.source import Row, Source, of_study
from replication.report.parts.verdict import Tally
from replication.study.study import Study

#: How many of the largest deviations the first page names, in all and of one study.
LARGEST = 8
LARGEST_OF_STUDY = 3


@dataclass(frozen=True)
class TallyRow:
    """Verdicts of one study on one engine."""

    study: Study
    engine: str
    #: Whether its verdicts stand for the study, and whether the paper ran its family.
    stands: bool
    original: bool
    #: What a reader must know if another engine than the paper's own stands; else empty.
    mark: str
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
class AuditFinding:
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
    findings: list[AuditFinding]
    deviations: list[Deviation]


def overview(source: Source) -> Overview:
    """Gather the first page."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    cell_tally = Tally.of(row["verdict"] for row in cells)
    claim_tally = Tally.of(row["verdict"] for row in claims)
    return Overview(
        answer=_answer(len(source.studies), cell_tally, claim_tally),
        rows=_rows(source),
        cells=cell_tally,
        claims=claim_tally,
        findings=_findings(source),
        deviations=_deviations(source, cells),
    )


def _answer(studies: int, cells: Tally, claims: Tally) -> list[str]:
    """Return the answer: a sentence on the numbers and one on the claims."""
    where = f"in {studies} studies" if studies > 1 else "in the study"
    sentences = []
    if cells.total:
        tested = cells.total - cells.count("not testable")
        sentences.append(
            f"Of {cells.total} published numbers {where}, {tested} could be tested: "
            f"{_share_of(cells.count('reproduced'), tested)} inside the tolerance set before the "
            f"run, {cells.count('not reproduced')} outside{_impossible(cells)}."
        )
    if claims.total:
        tested = claims.total - claims.count("not testable")
        sentences.append(
            f"Of {claims.total} claims{'' if cells.total else f' {where}'}, {tested} could be "
            f"tested: {_share_of(claims.count('reproduced'), tested)} reproduced, "
            f"{claims.count('direction only')} in direction only, "
            f"{claims.count('not reproduced')} not reproduced{_impossible(claims)}."
        )
    return sentences or ["Nothing has been evaluated yet."]


def _share_of(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)" if total else str(count)


def _impossible(tally: Tally) -> str:
    count = tally.count("impossible")
    return f", {count} impossible as printed" if count else ""


def _rows(source: Source) -> list[TallyRow]:
    """Return the tallies of each study by engine, that of its headline first."""
    rows = []
    for name, study in source.studies.items():
        cells, claims = of_study(source.cells, name), of_study(source.claims, name)
        chosen = source.headlines[name]
        for engine in source.shown_engines(name) or [""]:
            stands = engine == chosen.engine
            rows.append(
                TallyRow(
                    study=study,
                    engine=engine,
                    stands=stands,
                    original=engine == chosen.original,
                    mark=chosen.mark if stands else "",
                    cells=Tally.of(r["verdict"] for r in cells if r["engine"] in ("", engine)),
                    claims=Tally.of(r["verdict"] for r in claims if r["engine"] in ("", engine)),
                )
            )
    return rows


def _findings(source: Source) -> list[AuditFinding]:
    """Return the audit's findings, one line for each study and kind, impossible ones first."""
    found = source.findings
    counted = Counter((row["study"], row["check"], row["finding"]) for row in found)
    first: dict[tuple[str, str, str], Row] = {}
    for row in found:
        first.setdefault((row["study"], row["check"], row["finding"]), row)
    return [
        AuditFinding(source.studies[key[0]], key[1], count, first[key])
        for key, count in sorted(counted.most_common(), key=lambda pair: pair[0][2] != "impossible")
    ]


def _deviations(source: Source, cells: list[Row]) -> list[Deviation]:
    sized = [
        (value, row)
        for row in cells
        if row["verdict"] != "not testable"
        and (value := numbers.parse(row["relative_deviation"])) is not None
    ]
    sized.sort(key=lambda pair: -abs(pair[0]))
    named: Counter[str] = Counter()
    largest = []
    for _, row in sized:
        named[row["study"]] += 1
        if named[row["study"]] <= LARGEST_OF_STUDY:
            largest.append(row)
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
        for row in largest[:LARGEST]
    ]


@dataclass(frozen=True)
class StageTime:
    """A stage of the workflow and what it took."""

    name: str
    jobs: str
    wall: str
    cpu: str


@dataclass(frozen=True)
class RunSummary:
    """What was run, from provenance.json."""

    tier: str
    tier_title: str
    quick: bool
    #: Whether the results are the released ones, and not those of a run of one's own.
    released: bool
    written: str
    studies: list[str]
    engines: list[tuple[str, str]]
    runtime: str
    facts: list[tuple[str, str]]
    stages: list[StageTime]

    @property
    def whose(self) -> str:
        """Return whose results these are, of when, and of what: for the foot of every page."""
        engines = [f"{name} {version.partition('+')[0]}" for name, version in self.engines]
        parts = [
            "Released results" if self.released else "Results of an own run",
            f" of {self.written}" if self.written else "",
            f": tier {self.tier}",
            f"; studies {', '.join(self.studies)}" if self.studies else "",
            f"; engines {', '.join(engines)}" if engines else "",
        ]
        return f"{''.join(parts)}."


def ran(provenance: dict[str, Any]) -> RunSummary:
    """Return what provenance.json says was run; what it does not say is left out."""
    tier = _mapping(provenance, "tier")
    config = _mapping(provenance, "config")
    engines = {k: v for k, v in _mapping(provenance, "engines").items() if isinstance(v, dict)}
    name = str(tier.get("id") or config.get("tier") or "unknown")
    return RunSummary(
        tier=name,
        tier_title=str(tier.get("title", "")),
        quick=name == "quick" or tier.get("levels") == "quick",
        released=provenance.get(RELEASED) is True,
        written=_when(str(provenance.get("written", ""))),
        studies=sorted(_mapping(provenance, "studies")),
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
    for engine in _mapping(provenance, "engines").values():
        if isinstance(engine, dict) and (warning := package_warning(engine.get("package") or {})):
            facts.append(("Not as locked", warning))
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


def _stages(stages: dict[str, Any]) -> list[StageTime]:
    rows = []
    for name, stage in stages.items():
        if not isinstance(stage, dict):
            continue
        rows.append(
            StageTime(
                name.replace("_", " "),
                numbers.count(float(stage.get("jobs", 0))),
                numbers.duration(float(stage.get("wall_s", 0))),
                numbers.duration(float(stage.get("cpu_s", 0))),
            )
        )
    return rows
