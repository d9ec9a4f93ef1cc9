"""The bench's command line: `python -m bench --help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from replication.cli.main import run_command_line
from replication.cli.option import DATA, HERE, Root

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
Counts = Annotated[Path, typer.Option(help="JSON file of what was counted.")]


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


@app.command("run")
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

    Example: python -m bench run --quick --output /tmp/bench.json
    """
    from bench.bench import measure, write_bench

    found = measure(root, data, cores or os.cpu_count() or 1, quick, _say)
    write_bench(found, output)
    for figure in found.figures:
        goal = {True: "met", False: "MISSED", None: "no goal"}[figure.met]
        value = "not measured" if figure.value is None else f"{figure.value:g}"
        print(f"{figure.title}: {value} {figure.unit.replace('1', '')} ({goal})")


@app.command()
def load(
    flows: Annotated[int, typer.Option(min=1, max=10000, help="Flows of the wide run.")] = 1000,
    hours: Annotated[float, typer.Option(min=1, max=240, help="Of the long run.")] = 24,
    engine: Annotated[str, typer.Option(help="The engine's name.")] = "ns3",
    counts: Counts = DATA / "reliability.json",
    root: Root = HERE,
) -> None:
    """Run one scenario of many flows and one of many hours; count what they took.

    Example: python -m bench load --flows 1000 --hours 24
    """
    from bench.load import measure_load
    from bench.reliability import add_entries

    for entry in measure_load(root, engine, flows, hours):
        add_entries(counts, loads=[entry])
        print(entry)


@app.command()
def profile(root: Root = HERE) -> None:
    """Count the branches that ns-3 takes, built from the sources that NS3_SOURCE names.

    Example: NS3_SOURCE=ns-3.44.tar.xz python -m bench profile
    """
    from bench.profile import make_profile

    print(make_profile(root, os.cpu_count() or 1, _say))


@app.command()
def scale(
    scenarios: Annotated[
        str, typer.Option(help="Sizes, comma-separated.")
    ] = "100,1000,10000,100000",
    cores: Annotated[int | None, typer.Option(min=1, help="All, unless given.")] = None,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DATA / "scale.json",
    root: Root = HERE,
) -> None:
    """Measure what sweeps of short runs cost beyond their simulations.

    Example: python -m bench scale --scenarios 1000
    """
    from replication.plan.config import load_config
    from replication.study.report_page import RELIABILITY_PAGE

    from bench.load import sweep_entry
    from bench.reliability import add_entries
    from bench.scale import measure, sizes, write

    limit = load_config(root / "configs" / "config.yaml").memory_limit_bytes
    counts = output.with_name(RELIABILITY_PAGE.made_of)

    measured = []
    for size in sizes(scenarios):
        measured.append(measure(root, size, cores or os.cpu_count() or 1))
        write(measured, output)
        add_entries(counts, loads=[sweep_entry(measured[-1], limit)])
        print(measured[-1])


@app.command()
def reliability(
    counts: Counts = DATA / "reliability.json",
    output: Annotated[Path | None, typer.Option(help="Markdown file to write.")] = None,
) -> None:
    """Print what was tried and how it ended as a table, or write it as Markdown.

    Example: python -m bench reliability --output tests/faults/results.md
    """
    from replication.report.parts.reliability import read_reliability
    from replication.study.errors import InputError
    from replication.study.files import write_text

    from bench.reliability import markdown

    found = read_reliability(counts)
    if found is None:
        raise InputError(f"{counts}: is not there; run `make test-faults`")
    if output is None:
        print(markdown(found))
    else:
        write_text(output, markdown(found))


if __name__ == "__main__":
    run_command_line(app)
