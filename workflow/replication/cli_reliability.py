"""The commands of reliability: load, and the table of what was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.cli_option import DATA, HERE, Root

Counts = Annotated[Path, typer.Option(help="JSON file of what was counted.")]
COUNTS = DATA / "reliability.json"


def load(
    flows: Annotated[int, typer.Option(min=1, max=10000, help="Flows of the wide run.")] = 1000,
    hours: Annotated[float, typer.Option(min=1, max=240, help="Of the long run.")] = 24,
    engine: Annotated[str, typer.Option(help="The engine's name.")] = "ns3",
    counts: Counts = COUNTS,
    root: Root = HERE,
) -> None:
    """Run one scenario of many flows and one of many hours; count what they took.

    Example: replicate load --flows 1000 --hours 24
    """
    from replication.load import measure_load
    from replication.reliability import add_entries

    for entry in measure_load(root, engine, flows, hours):
        add_entries(counts, loads=[entry])
        print(entry)


def reliability(
    counts: Counts = COUNTS,
    output: Annotated[Path | None, typer.Option(help="Markdown file to write.")] = None,
) -> None:
    """Print what was tried and how it ended as a table, or write it as Markdown.

    Example: replicate reliability --output tests/faults/results.md
    """
    from replication.errors import InputError
    from replication.files import write_text
    from replication.reliability import markdown, read_reliability

    found = read_reliability(counts)
    if found is None:
        raise InputError(f"{counts}: is not there; run `make test-faults`")
    if output is None:
        print(markdown(found))
    else:
        write_text(output, markdown(found))


def licences(
    output: Annotated[Path, typer.Option(help="CSV file to write.")] = DATA / "licences.csv",
    root: Root = HERE,
) -> None:
    """List the licences of the locked packages and the engines.

    Example: replicate licences --output /tmp/licences.csv
    """
    from replication.licences import write_licences

    print(f"{output}: {write_licences(root, output)} licences")
