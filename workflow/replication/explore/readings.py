"""Named readings of what a paper does not print, each judged like the report's results."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from replication.base.errors import check_known
from replication.base.table import flat, write_table
from replication.design.config import Reading, Sensitivity, load_sensitivity, load_study
from replication.explore.machine import Machine, by_replicate, whole_runs
from replication.explore.named_variation import judge_claims
from replication.study.study import Study
from replication.study.variation import Variation, apply, assumptions

#: The table of a study's folder.
READINGS = "readings.csv"


@dataclass(frozen=True)
class ReadingRow:
    """The verdict on a claim under a reading: a row of readings.csv."""

    study: str
    reading: str
    claim: str
    engine: str
    #: Of each point.
    runs: int
    verdict: str
    reason_code: str
    observed: float
    runs_passing: str


READING_COLUMNS = tuple(get_type_hints(ReadingRow))


def judge_readings(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Run a study's readings at all its points and write the verdicts on its claims."""
    study = load_study(root, name)
    settings = load_sensitivity(root)
    count = settings.replicates_at_default
    readings = settings.of(study.id).readings
    rows = flat(_rows(study, reading, count, machine) for reading in readings)
    write_table(folder / READINGS, map(vars, rows), READING_COLUMNS)


def check_readings(study: Study, settings: Sensitivity) -> None:
    """Raise InputError for a value in a reading that is not an assumption of the study."""
    known = {assumption.key for assumption in assumptions(study)}
    for number, reading in enumerate(settings.of(study.id).readings):
        place = "studies", study.id, "readings", number, "values"
        check_known(f"studies.{study.id}.readings: assumption", reading.values, known, place)


def _rows(study: Study, reading: Reading, count: int, machine: Machine) -> Iterator[ReadingRow]:
    """Yield the verdicts on a study's claims under a reading, by `count` runs of each point."""
    engine = machine.engine
    if reading.values:
        study = apply(study, Variation(defaults=reading.values))
    runs = whole_runs(study, engine.name, engine.version, count)
    for row in judge_claims(study, runs, machine):
        yield ReadingRow(
            study=study.id,
            reading=reading.title,
            claim=row.claim,
            engine=engine.name,
            runs=len(by_replicate(runs)),
            verdict=row.verdict,
            reason_code=row.reason_code,
            observed=row.observed,
            runs_passing=row.runs_passing,
        )
