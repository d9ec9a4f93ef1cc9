"""Provenance: what ran, from which inputs, on what, and for how long."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

from replication.judge.registration import read_history
from replication.plan.design import Batch
from replication.plan.origin import digests
from replication.plan.pipeline import Pipeline
from replication.run.process import network_is_isolated
from replication.study.files import sha256_of
from replication.study.seal import read_sealed, write_sealed

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


def write_provenance(pipeline: Pipeline, path: Path, tables: list[Path]) -> None:
    """Gather and write provenance.json; `tables` are the results that it tells of."""
    document = _document(pipeline) | {"tables": digests(pipeline.paths.data, tables)}
    write_sealed(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _document(pipeline: Pipeline) -> dict[str, Any]:
    root = pipeline.root
    config = pipeline.config
    studies = {
        name: {
            "study_sha256": sha256_of(root / "configs" / "studies" / f"{name}.yaml"),
            "published_sha256": sha256_of(root / "data" / "published" / f"{name}.csv"),
            "points": len({(r.experiment, r.point) for r in pipeline.plan.runs[name]}),
            "scenarios": len({r.scenario_id for r in pipeline.plan.runs[name]}),
        }
        for name in pipeline.studies
    }
    return {
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "config": config.model_dump(mode="json"),
        "config_sha256": sha256_of(root / "configs" / "config.yaml"),
        "tier": pipeline.plan.tier.model_dump(mode="json"),
        "tier_sha256": sha256_of(root / "configs" / "tiers" / f"{config.tier}.yaml"),
        "studies": studies,
        # What was set before the results, and every change since; see `judge.registration`.
        "registered": {n: read_history(pipeline.paths.data, n) for n in pipeline.studies},
        "engines": {
            name: {"version": version, "fingerprint": pipeline.fingerprint(name)}
            | _package(pipeline, name)
            for name, version in _versions(pipeline).items()
        },
        "images": {name: image.id for name, image in pipeline.images.items()},
        "commit": _commit(root),
        "platform": {
            "system": platform.platform(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "simulator_network_isolated": network_is_isolated(),
        },
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "stages": _stages(pipeline.paths.data / "benchmarks"),
        "simulate": simulate_totals(pipeline),
    }


def _package(pipeline: Pipeline, engine: str) -> dict[str, Any]:
    """Return Debian's package that decided the results of an engine, if one did."""
    found = pipeline.package(engine)
    return {"package": found.as_dict()} if found else {}


def _versions(pipeline: Pipeline) -> dict[str, str]:
    """Return each engine's exact version, as its runs have it."""
    versions = {name: pipeline.config.engine(name).version for name in pipeline.engines}
    for batch in pipeline.batches.values():
        document = json.loads(read_sealed(_usage_path(pipeline, batch)))
        versions[batch.engine] = document["engine_version"]
    return versions


def _commit(root: Path) -> str | None:
    """Return the commit and whether the tree differs from it, or None outside a checkout."""
    try:
        head, state = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head} with changes" if state else head


def _stages(folder: Path) -> dict[str, dict[str, float]]:
    """Add up the benchmark files of each rule: jobs, wall and CPU seconds."""
    stages: dict[str, dict[str, float]] = {}
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        head, *rows = (line.split("\t") for line in path.read_text().splitlines())
        stage = stages.setdefault(rule, {"jobs": 0, "wall_s": 0.0, "cpu_s": 0.0})
        for row in rows:
            values = dict(zip(head, row, strict=True))
            stage["jobs"] += 1
            stage["wall_s"] = round(stage["wall_s"] + float(values["s"]), 2)
            with_cpu = values.get("cpu_time", "NA")
            stage["cpu_s"] = round(
                stage["cpu_s"] + (0.0 if with_cpu in ("NA", "-") else float(with_cpu)), 2
            )
    return stages


def simulate_totals(pipeline: Pipeline) -> dict[str, Any]:
    """Return the simulate stage's totals and its efficiency.

    Efficiency is simulator CPU time over (cores x wall time of the stage), the wall time being
    the union of the batches' own intervals, so that a resumed run counts only working time.
    """
    intervals: list[tuple[float, float]] = []
    runtimes: Counter[str] = Counter()
    cpu_s = 0.0
    predicted_s = 0.0
    scenarios = 0
    peak = 0
    for batch in pipeline.batches.values():
        document = json.loads(read_sealed(_usage_path(pipeline, batch)))
        fresh = [run for run in document["runs"] if not run["reused"]]
        if fresh:
            intervals.append((document["started"], document["finished"]))
        cpu_s += sum(run["cpu_s"] for run in fresh)
        peak = max([peak, *(run["peak_memory_bytes"] for run in document["runs"])])
        scenarios += len(document["runs"])
        # Finished runs of before there were containers do not say.
        runtimes.update(run.get("runtime", "native") for run in document["runs"])
        predicted_s += batch.cost_s
    wall_s = _union_s(intervals)
    cores = os.cpu_count() or 1
    return {
        "scenarios": scenarios,
        "runtimes": dict(runtimes),
        "batches": len(pipeline.batches),
        "simulator_cpu_s": round(cpu_s, 2),
        "predicted_cpu_s": round(predicted_s, 2),
        "wall_s": round(wall_s, 2),
        "efficiency": round(cpu_s / (cores * wall_s), 3) if wall_s else None,
        "peak_memory_bytes": peak,
    }


def _usage_path(pipeline: Pipeline, batch: Batch) -> Path:
    return pipeline.paths.data / "batches" / f"{batch.id}.usage.json"


def _union_s(intervals: list[tuple[float, float]]) -> float:
    total = 0.0
    end = float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
