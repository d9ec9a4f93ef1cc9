"""The commands that start simulators: a batch, the canonical scenarios, one scenario again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from replication.cli.option import DATA, HERE, Data, ImageId, Program, Root, RuntimeName


def simulate(
    batch: Annotated[Path, typer.Option(help="Batch file of the design.")],
    store: Annotated[Path, typer.Option(help="Folder of finished runs.")],
    flows: Annotated[Path, typer.Option(help="Parquet file to write.")],
    series: Annotated[Path, typer.Option(help="Parquet file to write.")],
    usage: Annotated[Path, typer.Option(help="JSON file to write.")],
    runtime: RuntimeName = "native",
    program: Program = None,
    image: ImageId = None,
    root: Root = HERE,
    memory_limit_bytes: Annotated[int, typer.Option()] = 4 * 2**30,
    time_limit_s: Annotated[float, typer.Option()] = 1800.0,
    goal: Annotated[Path | None, typer.Option(help="What the whole run has to do.")] = None,
) -> None:
    """Run the scenarios of a batch that are not yet in the store, and gather their tables."""
    from replication.engines.catalogue import ENGINES
    from replication.run.gather import gather
    from replication.run.launcher import Launch
    from replication.run.process import Limits
    from replication.run.progress import Progress
    from replication.run.simulate import open_job, read_batch, run_job
    from replication.study.parquet import write_parquet
    from replication.study.seal import write_sealed
    from replication.study.table import FLOW_NUMBERS, SERIES_NUMBERS

    engine, scenarios = read_batch(batch)
    limits = Limits(memory_limit_bytes, time_limit_s)
    job = open_job(root, Launch(runtime, engine, program, image), scenarios, store, limits)
    fingerprint = store.name.removeprefix(f"{engine}-").partition("@")[0]
    version = ENGINES[engine].exact_version(job.runtime.written_version(limits), fingerprint)
    progress = Progress.load(goal) if goal else None
    started = time.time()
    finished = run_job(job, progress.tick if progress else lambda: None)
    write_parquet(gather(job, finished, version, "flows.csv", FLOW_NUMBERS), flows)
    write_parquet(gather(job, finished, version, "series.csv", SERIES_NUMBERS), series)
    document = {
        "engine": engine,
        "engine_version": version,
        "started": started,
        "finished": time.time(),
        "runs": [run.usage for run in finished.values()],
    }
    write_sealed(usage, json.dumps(document) + "\n")
    if progress:
        progress.tick(force=True)


def conformance(
    engine: Annotated[str, typer.Option(help="The engine's name.")],
    output: Annotated[Path, typer.Option(help="CSV file to write; two others go beside it.")],
    runtime: RuntimeName = "native",
    program: Program = None,
    image: ImageId = None,
    fingerprint: Annotated[str, typer.Option(help="The engine's, for its version.")] = "unknown",
    root: Root = HERE,
) -> None:
    """Run the canonical scenarios of configs/conformance.yaml on an engine and judge them.

    Example: replicate conformance --engine ns3 --program "$(replicate program ns3)"
    --output /tmp/ns3.csv
    """
    from replication.compare.conformance import run_conformance
    from replication.compare.conformance_model import load_conformance
    from replication.run.launcher import Launch

    launch = Launch(runtime, engine, program, image)
    run_conformance(load_conformance(root), root, launch, fingerprint, output)


def run(
    scenario: Annotated[str, typer.Argument(help="A scenario's id, from the report or a design.")],
    output: Annotated[Path, typer.Option(help="Folder for flows.csv and series.csv.")] = Path(
        "run"
    ),
    engine: Annotated[str, typer.Option()] = "ns3",
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Run one scenario again and write its tables.

    Example: replicate run 0123456789abcdef --output /tmp/look
    """
    from replication.cli.rerun import rerun

    print(rerun(root, data, scenario, engine, output))
