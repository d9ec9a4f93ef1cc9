"""Named readings of what a paper does not print, each judged like the report's results."""

from collections.abc import Iterator
from pathlib import Path

from replication.design.config import Reading, Sensitivity, load_sensitivity, load_study
from replication.explore.machine import Machine, by_replicate, whole_runs
from replication.study.errors import check_known
from replication.study.study import Study
from replication.study.table import write_table
from replication.study.variation import Variation, apply, assumptions
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage

#: The table of a study's folder.
READINGS = "readings.csv"
READING_COLUMNS = (
    *("study", "reading", "claim", "engine", "runs"),
    *("verdict", "reason_code", "observed", "runs_passing"),
)


def judge_readings(root: Path, name: str, folder: Path, machine: Machine) -> None:
    """Run a study's readings at all its points and write the verdicts on its claims."""
    study, settings = load_study(root, name), load_sensitivity(root)
    write_table(folder / READINGS, _rows(study, settings, machine), READING_COLUMNS)


def check_readings(study: Study, settings: Sensitivity) -> None:
    """Raise InputError for a value in a reading that is not an assumption of the study."""
    known = {assumption.key for assumption in assumptions(study)}
    for number, reading in enumerate(settings.of(study.id).readings):
        place = "studies", study.id, "readings", number, "values"
        check_known(f"studies.{study.id}.readings: assumption", reading.values, known, place)


def _rows(study: Study, settings: Sensitivity, machine: Machine) -> Iterator[dict[str, object]]:
    engine = machine.engine
    for reading in settings.of(study.id).readings:
        read = _as_read(study, reading)
        runs = whole_runs(read, engine.name, engine.version, settings.replicates_at_default)
        replicates = by_replicate(runs)
        coverages = Coverage.of_all(read, machine.results(study.id, replicates))
        for claim in study.claims:
            for row in evaluate_claim(claim, coverages):
                yield {
                    "study": study.id,
                    "reading": reading.title,
                    "claim": claim.id,
                    "engine": engine.name,
                    "runs": len(replicates),
                    "verdict": row.verdict,
                    "reason_code": row.reason_code,
                    "observed": row.observed,
                    "runs_passing": row.runs_passing,
                }


def _as_read(study: Study, reading: Reading) -> Study:
    return apply(study, Variation(defaults=reading.values)) if reading.values else study
