"""The command line's stages of maps: `replicate step maps --help`."""

from __future__ import annotations

import sys
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
    no_args_is_help=True, rich_markup_mode=None, help="Map where the papers' sentences hold."
)

Tier = Annotated[str, typer.Option(help="quick, paper or deep.")]


@app.command()
def plan(
    maps: Annotated[list[str], typer.Argument(help="Maps with their engines: MAP/ENGINE.")],
    today: Annotated[
        list[str] | None, typer.Option(help="A study to judge on a stack of today; repeat it.")
    ] = None,
    tier: Tier = "paper",
    root: Root = HERE,
) -> None:
    """Check the maps against their studies, and say what they should cost.

    Example: replicate step maps plan kapadia_bbr_beside_reno/ns3 --today saxena --tier quick
    """
    from replication.sensitivity.maps.run_map import forecast
    from replication.sensitivity.today.run_today import plan_today

    pairs = [name.partition("/") for name in maps]
    forecasts = [forecast(root, name, engine, tier) for name, _, engine in pairs]
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


@app.command()
def explore(
    name: Annotated[str, typer.Argument(metavar="MAP", help="The map's id.")],
    folder: Annotated[Path, typer.Option(help="Folder of the map's results.")],
    store: StoreFolder,
    engine: Annotated[str, typer.Option(help="Engine to map on.")],
    tier: Tier = "paper",
    runtime: Launcher = "native",
    program: Program = None,
    image: ImageId = None,
    timers: Timers = None,
    memory_limit_bytes: MemoryLimit = MEMORY_LIMIT_BYTES,
    time_limit_s: TimeLimit = TIME_LIMIT_S,
    root: Root = HERE,
) -> None:
    """Explore a map on an engine; runs go to the store, so that a second start goes on."""
    from replication.run.launcher import Launch
    from replication.run.process import Limits
    from replication.sensitivity.machine import Machine
    from replication.sensitivity.maps.run_map import run_map

    limits = Limits(memory_limit_bytes, time_limit_s)
    launch = Launch(runtime, engine, program, image)
    machine = Machine.open(root, launch, store, limits, frequencies(timers))
    written = run_map(root, name, tier, folder, machine, lambda line: print(line, file=sys.stderr))
    print(written)


@app.command("today")
def judge_today(
    study: Annotated[str, typer.Argument(help="The study's id.")],
    folder: Annotated[Path, typer.Option(help="Folder of the results.")],
    store: StoreFolder,
    tier: Tier = "paper",
    runtime: Launcher = "native",
    program: Program = None,
    image: ImageId = None,
    timers: Timers = None,
    memory_limit_bytes: MemoryLimit = MEMORY_LIMIT_BYTES,
    time_limit_s: TimeLimit = TIME_LIMIT_S,
    root: Root = HERE,
) -> None:
    """Judge a study's claims on a stack of today; runs go to the store.

    Example: replicate step maps today saxena --folder out --store store --program guest
    """
    from replication.run.launcher import Launch
    from replication.run.process import Limits
    from replication.sensitivity.machine import Machine
    from replication.sensitivity.today.run_today import run_today
    from replication.sensitivity.today.stand_in import load_today

    launch = Launch(runtime, load_today(root).engine, program, image)
    limits = Limits(memory_limit_bytes, time_limit_s)
    machine = Machine.open(root, launch, store, limits, frequencies(timers))
    print(run_today(root, study, tier, folder, machine))


@app.command()
def merge(
    accounts: Annotated[list[Path], typer.Argument(help="Accounts of maps on engines.")],
    data: Annotated[Path, typer.Option(help="Folder of the report's tables.")],
) -> None:
    """Put the maps' rows together: maps.csv."""
    from replication.sensitivity.maps.account import merge_maps

    merge_maps(accounts, data)
