"""The steps of the workflow, which its rules call: `replicate step --help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.cli.explore import app as explore_app
from replication.cli.option import (
    DATA,
    HERE,
    MEMORY_LIMIT_BYTES,
    TIME_LIMIT_S,
    Data,
    Fingerprint,
    ImageId,
    Launcher,
    MemoryLimit,
    Program,
    Root,
    StoreFolder,
    TimeLimit,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The steps of the workflow, one for each rule; `make report` runs them in their order.",
)
app.add_typer(explore_app, name="explore")


@app.command()
def design(
    study: str,
    tier: Annotated[str, typer.Option(help="quick, paper or deep.")],
    engines: Annotated[str, typer.Option(help="Engines, each with what its batches are named by.")],
    ns3: Annotated[str, typer.Option("--ns3-version", help="Version of engine ns3.")],
    batch_cost_s: Annotated[float, typer.Option(help="CPU seconds of a job.")],
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Write the design and the scenarios of one study.

    Example: replicate step design saxena --tier quick --engines ns3=any --ns3-version 3.44.post0
    --batch-cost-s 20
    """
    from replication.plan.config import load_study, load_tier
    from replication.plan.design import batch_runs, design_study, write_design

    named = dict(word.split("=", 1) for word in engines.split(","))
    runs = design_study(load_study(root, study), load_tier(root, tier), list(named), ns3)
    write_design(runs, batch_runs(runs, named, batch_cost_s), study, data / "design")


@app.command()
def simulate(
    store: StoreFolder,
    usage: Annotated[Path, typer.Option(help="JSON file to write.")],
    batch: Annotated[str, typer.Option(help="Batch of the design, or a file that holds one.")],
    design: Annotated[Path | None, typer.Option(help="Design of the study.")] = None,
    flows: Annotated[Path | None, typer.Option(help="Parquet file to write.")] = None,
    series: Annotated[Path | None, typer.Option(help="Parquet file to write.")] = None,
    runtime: Launcher = "native",
    program: Program = None,
    image: ImageId = None,
    fingerprint: Fingerprint = "unknown",
    root: Root = HERE,
    memory_limit_bytes: MemoryLimit = MEMORY_LIMIT_BYTES,
    time_limit_s: TimeLimit = TIME_LIMIT_S,
    goal: Annotated[Path | None, typer.Option(help="What the whole run has to do.")] = None,
) -> None:
    """Run the scenarios of a batch that are not yet in the store, and gather their tables."""
    from replication.run.process import Limits
    from replication.run.progress import Progress
    from replication.run.runtime import Launch
    from replication.run.simulate import designed_batch, open_job, read_batch, run_batch

    engine, scenarios = designed_batch(design, batch) if design else read_batch(Path(batch))
    limits = Limits(memory_limit_bytes, time_limit_s)
    job = open_job(root, Launch(runtime, engine, program, image), scenarios, store, limits)
    tables = (flows, series) if flows and series else None
    run_batch(job, fingerprint, usage, tables, Progress.load(goal) if goal else None)


@app.command("fetch-wheel")
def fetch_wheel(
    lock: Annotated[Path, typer.Option(help="File that pins the wheel by hash.")],
    output: Annotated[Path, typer.Option(help="Folder to unpack to.")],
) -> None:
    """Fetch the pinned ns-3 wheel and unpack its headers and libraries."""
    from replication.engines.ns3 import fetch_wheel as fetch

    fetch(lock, output)


@app.command()
def collect(study: str, root: Root = HERE, data: Data = DATA) -> None:
    """Put a study's batches together, and compute what is read off their series.

    Example: replicate step collect saxena
    """
    from replication.measure.collect import collect_study
    from replication.plan.config import load_study

    collect_study(load_study(root, study), data)


@app.command()
def evaluate(study: str, root: Root = HERE, data: Data = DATA) -> None:
    """Judge one study's results: cells, claims, audit.

    Example: replicate step evaluate nishitha
    """
    from replication.judge.cause import load_causes
    from replication.judge.evaluate import evaluate_study
    from replication.measure.results import Results
    from replication.plan.config import load_study
    from replication.study.published import published_path

    published = published_path(root, study)
    results = Results.load(data, study)
    atoms = load_causes(root, study)
    folder = data / "evaluation" / study
    evaluate_study(load_study(root, study), published, results, folder, atoms)


@app.command()
def merge(studies: list[str], data: Data = DATA) -> None:
    """Put the studies' cells, claims, flags and audits together."""
    from replication.judge.evaluate import merge as merge_evaluations

    merge_evaluations([data / "evaluation" / study for study in studies], data)


@app.command("own-data")
def own_data(study: str, root: Root = HERE, data: Data = DATA) -> None:
    """Run a study's claims' tests on what the paper prints, and on its traces if they are there.

    Example: replicate step own-data kapadia
    """
    from replication.judge.self_consistency import write_own_data

    write_own_data(root, data, study)


@app.command("compare-traces")
def compare_traces(
    studies: Annotated[list[str], typer.Argument(help="Ids of studies with published traces.")],
    root: Root = HERE,
    data: Data = DATA,
    traces: Annotated[
        Path | None,
        typer.Option(
            help="Folder of <study>/*.sender-ss.csv; default REPLICATION_TRACES, else "
            "../shared/traces. Without it the committed summary figures are compared alone."
        ),
    ] = None,
) -> None:
    """Compare published congestion-window traces with the reproduced windows, as numbers.

    Example: replicate step compare-traces kapadia
    """
    from replication.compare.trace_comparison import compare_traces as compare

    print(compare(root, data, studies, traces))


@app.command()
def agreement(studies: list[str], root: Root = HERE, data: Data = DATA) -> None:
    """Compare the engines' verdicts and, where they differ, what they measured.

    Example: replicate step agreement nishitha kapadia
    """
    from replication.compare.agreement import write_agreement

    write_agreement(root, data, studies)


@app.command()
def provenance(
    output: Annotated[Path, typer.Option()],
    settings: Annotated[str, typer.Option(help="Configuration and engines of the run, as JSON.")],
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Write what ran: hashes, versions, platform, wall and CPU time of each stage."""
    import json

    from replication.report.provenance import write_provenance

    write_provenance(root, data, json.loads(settings), output)


@app.command()
def notebook(
    name: Annotated[Path, typer.Argument(help="The notebook.")],
    output: Annotated[Path, typer.Option()],
    study: Annotated[str, typer.Option()],
    root: Root = HERE,
    data: Data = DATA,
    live: Annotated[bool, typer.Option(help="Whether it runs ns-3 itself.")] = True,
) -> None:
    """Execute a notebook on the results of a study."""
    from replication.report.notebooks.notebook import Parameters, execute

    folders = {"data": str(data.resolve()), "root": str(root.resolve())}
    parameters: Parameters = {"study": study, **folders, "live": live}
    execute(name, output, parameters)
