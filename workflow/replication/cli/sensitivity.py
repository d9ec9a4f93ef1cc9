"""The command line's sensitivity stages: `replicate step sensitivity --help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.cli.option import (
    HERE,
    MEMORY_LIMIT_BYTES,
    TIME_LIMIT_S,
    ImageId,
    Launcher,
    MemoryLimit,
    Program,
    Root,
    StoreFolder,
    TimeLimit,
    Timers,
    frequencies,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Vary what the papers do not state, and explain the gaps.",
)

Folder = Annotated[Path, typer.Option(help="Folder of the study's sensitivity.")]


@app.command()
def design(
    study: str,
    folder: Folder,
    engine: Annotated[str, typer.Option(help="Engine to design for.")],
    root: Root = HERE,
) -> None:
    """Design one study's sensitivity: points, scenarios and batches.

    Example: replicate step sensitivity design saxena --folder /tmp/saxena --engine ns3
    """
    from replication.sensitivity.design import describe_design, write_sensitivity_design

    print(describe_design(write_sensitivity_design(root, study, folder, engine)))


@app.command()
def plan(
    folders: Annotated[list[Path], typer.Argument(help="Folders of the studies' designs.")],
    stores: Annotated[str, typer.Option(help="Folder of finished runs of each, with commas.")],
    goal: Annotated[Path, typer.Option(help="File to write for the progress lines.")],
) -> None:
    """Say what the designs cost and what is done already, and leave that for the jobs."""
    from replication.run.progress import count, write_goal
    from replication.sensitivity.design import (
        JUDGE_COST_S,
        describe_design,
        read_costs,
        read_sensitivity_design,
    )

    costs: dict[Path, dict[str, float]] = {}
    points = 0
    for folder, store in zip(folders, stores.split(","), strict=True):
        found = read_sensitivity_design(folder)
        print(describe_design(found))
        points += len(found.points)
        costs.setdefault(Path(store), {}).update(read_costs(folder))
    write_goal(goal, costs)
    done, total, done_s, total_s = count(costs)
    print(
        f"in all {total} scenarios, {done} done; about {(total_s - done_s) / 60:.1f} CPU minutes "
        f"to simulate and {points * JUDGE_COST_S / 60:.0f} to judge, at most; explanations "
        "come on top"
    )


@app.command()
def judge(study: str, folder: Folder, store: StoreFolder, root: Root = HERE) -> None:
    """Judge claims and cells of one study at every design point."""
    from replication.run.store import Store
    from replication.sensitivity.analysis import judge_points

    judge_points(root, study, folder, Store(store.resolve()))


@app.command()
def explain(
    study: str,
    folder: Folder,
    store: StoreFolder,
    engine: Annotated[str, typer.Option(help="Engine to explain on.")],
    runtime: Launcher = "native",
    program: Program = None,
    image: ImageId = None,
    timers: Timers = None,
    memory_limit_bytes: MemoryLimit = MEMORY_LIMIT_BYTES,
    time_limit_s: TimeLimit = TIME_LIMIT_S,
    root: Root = HERE,
) -> None:
    """Search the best explanation of one study's gaps; runs go to the store."""
    from replication.run.launcher import Launch
    from replication.run.process import Limits
    from replication.sensitivity.machine import Machine
    from replication.sensitivity.why.explain import explain_study

    launch = Launch(runtime, engine, program, image)
    limits = Limits(memory_limit_bytes, time_limit_s)
    machine = Machine.open(root, launch, store, limits, frequencies(timers))
    explain_study(root, study, folder, machine)


@app.command()
def measure(
    study: str,
    folder: Folder,
    data: Annotated[Path, typer.Option(help="Folder of the tier's verdicts.")],
    root: Root = HERE,
) -> None:
    """Write shares, ranges and effects of one study."""
    from replication.sensitivity.analysis import measure as measure_study

    measure_study(root, study, folder, data)


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of the studies.")],
    sensitivity: Annotated[Path, typer.Option(help="Folder for robustness.")],
) -> None:
    """Put the studies' tables together."""
    from replication.sensitivity.robustness_rows import TABLES
    from replication.study.storage.table import merge_tables

    merge_tables(folders, TABLES, sensitivity)


@app.command("merge-explanations")
def merge_explanations(
    folders: Annotated[list[Path], typer.Argument(help="Folders of the studies.")],
    data: Annotated[Path, typer.Option(help="Folder of the report's tables.")],
) -> None:
    """Put the studies' explanations together."""
    from replication.sensitivity.why.table import EXPLANATIONS
    from replication.study.storage.table import merge_tables

    merge_tables(folders, EXPLANATIONS, data)
