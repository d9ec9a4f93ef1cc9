"""The commands of reliability: the table of what was tried, and licences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.cli.option import DATA, HERE, Root

Counts = Annotated[Path, typer.Option(help="JSON file of what was counted.")]
COUNTS = DATA / "reliability.json"


def reliability(
    counts: Counts = COUNTS,
    output: Annotated[Path | None, typer.Option(help="Markdown file to write.")] = None,
) -> None:
    """Print what was tried and how it ended as a table, or write it as Markdown.

    Example: replicate reliability --output tests/faults/results.md
    """
    from replication.report.parts.reliability import markdown, read_reliability
    from replication.study.errors import InputError
    from replication.study.files import write_text

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
    from replication.report.licences import write_licences

    print(f"{output}: {write_licences(root, output)} licences")
