"""Provenance: what ran, from which inputs, on what, and for how long."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.config import load_tier, study_files
from replication.simulate.environment import core
from replication.simulate.process import network_is_isolated
from replication.study.files import read_json, sha256_of, write_text
from replication.study.published import published_path
from replication.study.storage.table import DESIGN_COLUMNS, Row, read_rows

PACKAGES = (
    "snakemake",
    "pandas",
    "altair",
    "papermill",
    "nbconvert",
    "pyarrow",
    "pydantic",
    "scipy",
)


def write_provenance(root: Path, data: Path, settings: Mapping[str, Any], path: Path) -> None:
    """Gather and write provenance.json; `settings` are those of `design.pipeline.Pipeline`."""
    document = _document(root, data, settings)
    write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _document(root: Path, data: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    config = settings["config"]
    tier = load_tier(root, config["tier"])
    designs = _designs(data, settings["studies"])
    versions = {used["engine"]: used["engine_version"] for used in _usage(data, designs)}
    return {
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "config": config,
        "config_sha256": sha256_of(root / "configs" / "config.yaml"),
        "tier": tier.model_dump(mode="json"),
        "tier_sha256": sha256_of(root / "configs" / "tiers" / f"{tier.id}.yaml"),
        "studies": {
            name: {
                "study_sha256": sha256_of(*study_files(root, name)),
                "published_sha256": sha256_of(published_path(root, name)),
                "points": len({(row["experiment"], row["point"]) for row in rows}),
                "scenarios": len({row["scenario"] for row in rows}),
            }
            for name, rows in designs.items()
        },
        "engines": {
            name: engine | {"version": versions.get(name, engine["version"])}
            for name, engine in settings["engines"].items()
        },
        "images": settings["images"],
        "commit": commit_of(root),
        "platform": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "simulator_network_isolated": network_is_isolated(),
        },
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "stages": stages_of(data / "benchmarks"),
        "simulate": simulate_totals(data, settings["studies"]),
    }


def _designs(data: Path, studies: Iterable[str]) -> dict[str, list[Row]]:
    return {name: read_rows(data / "design" / f"{name}.csv", DESIGN_COLUMNS) for name in studies}


def _usage(data: Path, designs: Mapping[str, Iterable[Row]]) -> list[dict[str, Any]]:
    """Return what each batch of the designs used."""
    batches = dict.fromkeys(row["batch"] for rows in designs.values() for row in rows)
    paths = [data / "batches" / f"{batch}.usage.json" for batch in batches if batch]
    return [read_json(path) for path in paths]


def commit_of(root: Path) -> str | None:
    """Return the commit of the project's own repository, with what differs from it, or None.

    A repository that merely contains the project's folder, or that git's variables name, is none.
    """
    try:
        if not Path(_git(root, "rev-parse", "--show-toplevel")).samefile(root):
            return None
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
        studies = ("configs", "data/published")
        untracked = _git(root, "ls-files", "--others", "--exclude-standard", "--", *studies)
    except (OSError, subprocess.CalledProcessError):
        return None
    added = f", untracked: {', '.join(untracked.splitlines())}" if untracked else ""
    return f"{head}{' with changes' if changed else ''}{added}"


def _git(root: Path, *words: str) -> str:
    # A folder of another owner is as good as any: nothing but its state is read.
    command = ["git", "-C", str(root), "-c", "safe.directory=*", "--no-optional-locks", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=core())
    return done.stdout.strip()


def stages_of(folder: Path) -> dict[str, dict[str, float]]:
    """Add up the benchmark files of each rule: jobs, wall and CPU seconds."""
    stages: dict[str, dict[str, float]] = {}
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        table = pd.read_csv(path, sep="\t", na_values="-")
        stage = stages.setdefault(rule, {"jobs": 0, "wall_s": 0.0, "cpu_s": 0.0})
        stage["jobs"] += len(table)
        for name, column in (("wall_s", "s"), ("cpu_s", "cpu_time")):
            if column in table:
                stage[name] = round(stage[name] + float(table[column].sum()), 2)
    return stages


def simulate_totals(data: Path, studies: Iterable[str]) -> dict[str, Any]:
    """Return the totals of the simulate stage of the studies' designs, and its efficiency.

    Efficiency is simulator CPU time over (cores x wall time of the stage), the wall time being
    the union of the batches' own intervals, so that a resumed run counts only working time.
    """
    usage = _usage(data, _designs(data, studies))
    runs = [run for document in usage for run in document["runs"]]
    fresh = [run for run in runs if not run["reused"]]
    intervals = [
        (document["started"], document["finished"])
        for document in usage
        if not all(run["reused"] for run in document["runs"])
    ]
    cpu_s = sum(run["cpu_s"] for run in fresh)
    wall_s = covered_s(intervals)
    cores = os.cpu_count() or 1
    return {
        "scenarios": len(runs),
        # Runs that finished before there were containers do not say.
        "runtimes": dict(Counter(run.get("runtime", "native") for run in runs)),
        "batches": len(usage),
        "simulator_cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 2),
        "efficiency": round(cpu_s / (cores * wall_s), 3) if wall_s else None,
        "peak_memory_bytes": max((run["peak_memory_bytes"] for run in runs), default=0),
    }


def covered_s(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the seconds in which at least one of the intervals ran."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
