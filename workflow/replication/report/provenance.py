"""Provenance of results: inputs, versions, platform and times."""

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.config import load_tier, study_files
from replication.simulate.environment import core
from replication.simulate.process import network_is_isolated
from replication.study.files import read_json, sha256_of, write_text
from replication.study.published import published_path
from replication.study.table import DESIGN_COLUMNS, read_rows

_PACKAGES = (
    *("snakemake", "pandas", "altair", "papermill", "nbconvert", "pyarrow", "pydantic", "scipy"),
)


def write_provenance(root: Path, data: Path, settings: Mapping[str, Any], path: Path) -> None:
    """Write provenance.json; `settings` are those of `design.pipeline.Pipeline`."""
    config = settings["config"]
    tier = load_tier(root, config["tier"])
    designs = {
        name: read_rows(data / "design" / f"{name}.csv", DESIGN_COLUMNS)
        for name in settings["studies"]
    }
    batches = dict.fromkeys(row["batch"] for rows in designs.values() for row in rows)
    usage = [read_json(data / f"batches/{batch}.usage.json") for batch in batches if batch]
    versions = {used["engine"]: used["engine_version"] for used in usage}
    runs = [run for used in usage for run in used["runs"]]
    document = {
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
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "stages": _stages_of(data / "benchmarks"),
        # CPU time of the designs' runs, including those of earlier calls.
        "simulate": {
            "scenarios": len(runs),
            "simulator_cpu_s": round(sum(run["cpu_s"] for run in runs), 2),
        },
    }
    write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def commit_of(root: Path) -> str | None:
    """Return the commit and whether files differ; None if the project is no repository itself."""
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
    # The folder may have a different owner; git only reads its state.
    command = ["git", "-C", str(root), "-c", "safe.directory=*", "--no-optional-locks", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=core())
    return done.stdout.strip()


def _stages_of(folder: Path) -> dict[str, dict[str, float]]:
    """Return jobs, wall and CPU seconds of each rule, from its benchmark files."""
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
