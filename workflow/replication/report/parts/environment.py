"""The environment of a paper beside that of this report, row by row."""

from __future__ import annotations

from collections import Counter

from replication.engines.catalogue import family_of
from replication.judge.participation import is_supported
from replication.report.parts.ledger import Ledger
from replication.report.parts.source import Source
from replication.study.study import Study


def environment_rows(source: Source, study: Study, ledger: Ledger) -> list[tuple[str, str, str]]:
    """Return the rows of a study's table: what the paper says of an aspect, and what was done."""
    stated, assumed = len(ledger.published), len(ledger.assumed)
    return [
        ("System", study.original_system.description, _engines(source, study)),
        (
            "Parameters",
            f"states {stated} of {stated + assumed}",
            f"assumes the other {assumed}, each with a plausible range (see Parameters)",
        ),
        (
            "Repetitions",
            study.original_system.repetitions or "no variance is printed",
            _replicates(source, study),
        ),
    ]


def _engines(source: Source, study: Study) -> str:
    versions = source.provenance.get("engines") or {}
    names = []
    for name in source.shown_engines(study.id):
        version = str((versions.get(name) or {}).get("version", "")).partition("+")[0]
        names.append(f"{family_of(name)} {version}".strip())
    return "; ".join(names) or "nothing was run"


def _replicates(source: Source, study: Study) -> str:
    counted = Counter(
        (row["experiment"], row["point"], row["engine"])
        for row in source.design(study.id)
        if is_supported(row)
    )
    if not counted:
        return "–"
    low, high = min(counted.values()), max(counted.values())
    runs = f"{low}" if low == high else f"{low} to {high}"
    return f"{runs} with other seeds and start times at each point; intervals from three on"
