"""Adds what the harness counted to the figures of reliability, and writes them as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from replication.report.parts.reliability import (
    PARTS,
    Load,
    Reliability,
    Trials,
    megabytes,
    read_reliability,
)
from replication.study.files import write_text

EntryT = TypeVar("EntryT", Trials, Load)


def add_entries(path: Path, trials: Sequence[Trials] = (), loads: Sequence[Load] = ()) -> None:
    """Put entries into the file at `path`, in place of those of the same id."""
    known = read_reliability(path) or Reliability()
    merged = Reliability(
        trials=_merged([*known.trials, *trials]), loads=_merged([*known.loads, *loads])
    )
    write_text(path, merged.model_dump_json(indent=2) + "\n")


def _merged(entries: Sequence[EntryT]) -> list[EntryT]:
    latest = {entry.id: entry for entry in entries}
    return [latest[name] for name in sorted(latest)]


def markdown(figures: Reliability) -> str:
    """Return the figures as a page of tables."""
    lines = ["# What was tried, and how it ended", ""]
    lines += [
        "Written by `python -m bench reliability` from what the harness counted; not typed.",
        "",
    ]
    head = ("what", "tried", "right", "refused", "wrong", "note")
    for part, title in PARTS.items():
        rows = [(t.title, t.tried, t.right, t.refused, t.wrong, t.note) for t in figures.of(part)]
        lines += _table(title, head, rows)
    loads = [
        (
            *(entry.title, f"{entry.wall_s:.0f} s", f"{entry.cpu_s:.0f} s"),
            *(megabytes(entry.peak_memory_bytes), megabytes(entry.compared_memory_bytes)),
            "yes" if entry.held else "no",
        )
        for entry in figures.loads
    ]
    lines += _table("Load", ("what", "wall", "CPU", "peak", "peak of one hour", "held"), loads)
    return "\n".join(lines)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    if not rows:
        return []
    lines = [f"## {title}", "", _row(head), _row(["---"] * len(head))]
    return [*lines, *map(_row, rows), ""]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
