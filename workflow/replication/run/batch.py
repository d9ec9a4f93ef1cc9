"""A batch: its scenarios run, their tables gathered, and what it used written down."""

from __future__ import annotations

import json
import time
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.run.gather import gather
from replication.run.progress import Progress
from replication.run.simulate import Job, run_job
from replication.study.files import write_text


def run_batch(
    job: Job,
    fingerprint: str,
    usage: Path,
    tables: tuple[Path, Path] | None,
    progress: Progress | None,
) -> None:
    """Run what of a batch is not yet in the store.

    Parameters
    ----------
    job, fingerprint
        The batch, and the fingerprint of its engine.
    usage
        The JSON file to write, of what each run used.
    tables
        The Parquet files to write, of flows and series, if they are wanted.
    progress
        Says where the whole run stands.

    Raises
    ------
    RunError
        A run failed; the message names its scenario.
    """
    version = ENGINES[job.engine].exact_version(
        job.runtime.written_version(job.limits), fingerprint
    )
    started = time.time()
    finished = run_job(job, progress.tick if progress else lambda: None)
    if tables:
        read = {name: run.tables for name, run in finished.items()}
        gather(job.store, read, job.engine, version, tables)
    document = {
        "engine": job.engine,
        "engine_version": version,
        "started": started,
        "finished": time.time(),
        "runs": [run.usage for run in finished.values()],
    }
    write_text(usage, json.dumps(document) + "\n")
    if progress:
        progress.tick(force=True)
