"""The command that measures how fast the project is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from replication.cli_option import DATA, HERE, Root


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="A reduced bench, under a minute.")
    ] = False,
    cores: Annotated[int | None, typer.Option(min=1, help="All, unless given.")] = None,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DATA / "bench.json",
    root: Root = HERE,
    data: Annotated[Path, typer.Option(help="Folder of reproduced results.")] = DATA,
) -> None:
    """Measure speed, memory and overhead, as ratios within one run; see the report's page.

    Example: replicate bench --quick --output /tmp/bench.json
    """
    from replication.bench import measure
    from replication.bench_model import write_bench

    def say(what: str) -> None:
        print(f"bench: {what}", file=sys.stderr, flush=True)

    found = measure(root, data, cores or os.cpu_count() or 1, quick, say)
    write_bench(found, output)
    for figure in found.figures:
        goal = {True: "met", False: "MISSED", None: "no goal"}[figure.met]
        print(f"{figure.title}: {figure.value:g} {figure.unit.replace('1', '')} ({goal})")
