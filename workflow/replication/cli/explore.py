"""The command line's stages of exploring: `replicate step explore --help`."""

from __future__ import annotations

import sys
from enum import Enum
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
)


class What(Enum):
    """What is explored."""

    ROBUSTNESS = "robustness"
    EXPLANATION = "explanation"
    REGION = "region"
    TODAY = "today"


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Vary what the papers do not state, explain the gaps, and map where claims hold.",
)
Tier = Annotated[str, typer.Option(help="quick, paper or deep.")]
Folder = Annotated[Path, typer.Option(help="Folder of the results.")]
Data = Annotated[Path, typer.Option(help="Folder of the report's tables.")]


@app.command()
def run(
    what: What,
    name: Annotated[str, typer.Argument(help="A study; of a region its map.")],
    folder: Folder,
    store: StoreFolder,
    engine: Annotated[str, typer.Option(help="Engine to explore on.")],
    tier: Tier = "paper",
    runtime: Launcher = "native",
    program: Program = None,
    image: ImageId = None,
    timers: Annotated[
        str, typer.Option(help="Timer frequencies of the kernels that are there, in Hz.")
    ] = "",
    memory_limit_bytes: MemoryLimit = MEMORY_LIMIT_BYTES,
    time_limit_s: TimeLimit = TIME_LIMIT_S,
    root: Root = HERE,
) -> None:
    """Explore a study or a map on an engine; runs go to the store, so that a second start goes on.

    Example: replicate step explore run today saxena --engine linux --folder out --store store
    --program guest
    """
    from replication.run.process import Limits
    from replication.run.runtime import Launch
    from replication.sensitivity.explanation import explain_study
    from replication.sensitivity.explore_study import explore_study
    from replication.sensitivity.machine import Machine
    from replication.sensitivity.maps.run_map import run_map
    from replication.sensitivity.modern_kernel import run_today

    launch = Launch(runtime, engine, program, image)
    limits = Limits(memory_limit_bytes, time_limit_s)
    hz = [int(word) for word in timers.split(",") if word]
    machine = Machine.open(root, launch, store, limits, hz)
    if what is What.ROBUSTNESS:
        explore_study(root, name, folder, machine)
    elif what is What.EXPLANATION:
        explain_study(root, name, folder, machine)
    elif what is What.REGION:
        run_map(root, name, tier, folder, machine, lambda line: print(line, file=sys.stderr))
    else:
        run_today(root, name, tier, folder, machine)


@app.command()
def measure(study: str, folder: Folder, data: Data, root: Root = HERE) -> None:
    """Write shares, ranges and effects of one study's design points."""
    from replication.sensitivity.explore_study import measure_study

    measure_study(root, study, folder, data)


@app.command()
def merge(
    studies: Annotated[list[str], typer.Argument(help="Ids of the studies.")],
    explained: Annotated[str, typer.Option(help="Those with an explanation, with spaces.")],
    data: Data,
) -> None:
    """Put the studies' tables and explanations together."""
    from replication.sensitivity.explanation import EXPLANATIONS
    from replication.sensitivity.explore_study import TABLES
    from replication.study.storage.table import merge_tables

    folder = data / "sensitivity"
    merge_tables([folder / study for study in studies], TABLES, folder)
    merge_tables([folder / study for study in explained.split()], EXPLANATIONS, data)


@app.command("merge-regions")
def merge_regions(
    accounts: Annotated[list[Path], typer.Argument(help="Accounts of maps on engines.")],
    data: Data,
) -> None:
    """Put the maps' rows together: maps.csv."""
    from replication.sensitivity.maps.account import merge_maps

    merge_maps(accounts, data)


@app.command()
def forecast(
    maps: Annotated[list[str], typer.Argument(help="Maps with their engines: MAP/ENGINE.")],
    today: Annotated[
        list[str] | None, typer.Option(help="A study to judge on a modern kernel; repeat it.")
    ] = None,
    tier: Tier = "paper",
    root: Root = HERE,
) -> None:
    """Check the maps against their studies, and say what they should cost.

    Example: replicate step explore forecast kapadia_bbr_beside_reno/ns3 --today saxena
    """
    from replication.sensitivity.maps.run_map import forecast as forecast_map
    from replication.sensitivity.modern_kernel import plan_today

    pairs = [name.partition("/") for name in maps]
    forecasts = [forecast_map(root, name, engine, tier) for name, _, engine in pairs]
    current = [plan_today(root, study, tier) for study in today or []]
    for line in (*forecasts, *current):
        print(line)
    cpu_s = sum(one.cpu_s for one in forecasts) + sum(one.cost_s for one in current)
    points, full, fresh = (
        sum(getattr(one, name) for one in forecasts) for name in ("points", "full_points", "fresh")
    )
    print(
        f"in all about {points} points where full grids have {full}, and {fresh} fresh ones; "
        f"about {cpu_s / 60:.1f} CPU minutes to simulate, what is in the store included"
    )
