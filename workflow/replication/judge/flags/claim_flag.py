"""Flags of claims: whether a verdict is vacuous, and how the paper's own data fare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from replication.judge.flags.idleness import run_pressure
from replication.judge.flags.own_data import OWN_DATA
from replication.judge.flags.pair import frames_on
from replication.judge.flags.vacuity import vacuity, vacuity_of_parts
from replication.judge.verdict_table import Judged
from replication.measure.results import Results
from replication.study.storage.table import (
    FLAG_COLUMNS,
    OWN_DATA_COLUMNS,
    VACUITY_COLUMNS,
    Row,
    read_rows,
    write_table,
)
from replication.study.study import Study
from replication.study.verdict import DECIDED

#: The flags of all studies, and what of them the runs of one decide.
FLAGS = "claim_flags.csv"
VACUITY = "vacuity.csv"


def vacuity_rows(
    study: Study, results: Results, judged: Sequence[Judged]
) -> Iterator[Mapping[str, object]]:
    """Yield whether each claim's verdict is vacuous on each engine: the rows of vacuity.csv.

    Parameters
    ----------
    study, results
        The study and what was run for it.
    judged
        The verdicts on its claims: where there is none, none is vacuous.
    """
    decided = {(row["claim"], row["engine"]) for row in judged if row["verdict"] in DECIDED}
    pressure = run_pressure(results)
    for engine in results.engines:
        frames = frames_on(results, pressure, engine)
        for claim in study.claims:
            tests = claim.tests() if (claim.id, engine) in decided else []
            parts = [vacuity(study, test, frames) for test in tests]
            found = vacuity_of_parts(parts) if parts else None
            yield {
                "study": study.id,
                "claim": claim.id,
                "engine": engine,
                "vacuous": found is not None and found.vacuous,
                "evidence": found.evidence if found else "",
            }


def merge_flags(evaluations: Sequence[Path], out_dir: Path) -> None:
    """Write claim_flags.csv: the studies' flags, in the order given.

    Parameters
    ----------
    evaluations
        Folders that `judge.evaluate.evaluate_study` and `judge.flags.own_data.write_own_data`
        wrote.
    out_dir
        Where it goes.
    """
    rows = (row for folder in evaluations for row in read_flags(folder))
    write_table(out_dir / FLAGS, rows, FLAG_COLUMNS)


def read_flags(evaluation: Path) -> list[Row]:
    """Return the flags of one study, in the columns of claim_flags.csv.

    Raises
    ------
    InputError
        A table is missing or malformed.
    """
    rows = read_rows(evaluation / OWN_DATA, OWN_DATA_COLUMNS)
    own = {row["claim"]: row["own_data"] for row in rows}
    return [
        {**row, "own_data": own[row["claim"]]}
        for row in read_rows(evaluation / VACUITY, VACUITY_COLUMNS)
    ]
