"""Provenance of results: inputs, versions, platform and times."""

import datetime
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from replication.base.environment import core
from replication.base.files import read_json, sha256_of, write_text
from replication.base.table import Row, flat, read_design
from replication.design.config import load_tier, study_files
from replication.simulate.process import network_is_isolated
from replication.study.published import published_path

_PACKAGES = (
    "snakemake",
    "pandas",
    "altair",
    "papermill",
    "nbconvert",
    "pyarrow",
    "pydantic",
    "scipy",
)
#: How many differing files are named.
_NAMED = 5


def write_provenance(root: Path, data: Path, settings: Mapping[str, Any], path: Path) -> None:
    """Write provenance.json; `settings` are those of `design.pipeline.Pipeline`."""
    config = settings["config"]
    tier = load_tier(root, config["tier"])
    designs = {name: read_design(data, name) for name in settings["studies"]}
    batches = dict.fromkeys(row["batch"] for row in flat(designs.values()))
    usage = [read_json(data / f"batches/{batch}.usage.json") for batch in batches if batch]
    runs = flat(used["runs"] for used in usage)
    versions = {used["engine"]: used["engine_version"] for used in usage}
    engines = {}
    for name, engine in settings["engines"].items():
        engines[name] = engine | {"version": versions.get(name, engine["version"])}
    document = {
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "config": config,
        "config_sha256": sha256_of(root / "configs" / "config.yaml"),
        "tier": tier.model_dump(mode="json"),
        "tier_sha256": sha256_of(root / "configs" / "tiers" / f"{tier.id}.yaml"),
        "studies": {name: _study(root, name, rows) for name, rows in designs.items()},
        "engines": engines,
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


def _study(root: Path, name: str, design: Sequence[Row]) -> dict[str, Any]:
    """Return the hashes of a study's files, and the size of its design."""
    return {
        "study_sha256": sha256_of(*study_files(root, name)),
        "published_sha256": sha256_of(published_path(root, name)),
        "points": len({(row["experiment"], row["point"]) for row in design}),
        "scenarios": len({row["scenario"] for row in design}),
    }


def commit_of(root: Path) -> str | None:
    """Return the commit and which files differ; None if the project is no repository itself.

    Contents are compared here, since git's settings can hide a file: what it ignores, and what it
    must assume unchanged. Also, `git status` runs programs that the repository names.
    """
    try:
        if not Path(_git(root, "rev-parse", "--show-toplevel").rstrip("\n")).samefile(root):
            return None
        head = _git(root, "rev-parse", "HEAD").strip()
        entries = _git(root, "ls-tree", "-r", "-z", "--full-tree", head).split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        return None
    committed, changed = set(), []
    for entry in entries:
        # Mode, type, hash, tab, name.
        described, name = entry.split("\t", 1)
        _, kind, blob = described.split()
        committed.add(name)
        if kind == "blob" and _blob(root / name, blob) != blob:
            changed.append(name)
    inputs = sorted(path.relative_to(root).as_posix() for path in _inputs(root))
    unknown = [name for name in inputs if name not in committed]
    return head + _named("changed", changed) + _named("not committed", unknown)


def _git(root: Path, *words: str) -> str:
    # The folder may have a different owner; git only reads its objects, and fetches none.
    command = ["git", "-C", str(root), "-c", "safe.directory=*", *words]
    environment = core() | {"GIT_NO_LAZY_FETCH": "1"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    return os.fsdecode(done.stdout)


def _blob(path: Path, like: str) -> str:
    """Return git's hash of a file or link, SHA-1 or SHA-256 as `like`; empty if it is missing."""
    try:
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return ""
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content).hexdigest()


def _inputs(root: Path) -> Iterator[Path]:
    """Yield the files of all studies and of the configuration."""
    for folder in ("configs", "data/published"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".yaml", ".csv") and path.is_file():
                yield path


def _named(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listed = os.fsencode(", ".join(names[:_NAMED])).decode(errors="replace")
    return f", {what}: {listed}{more}"


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
