"""The commands about results that are there: render, release, and the tables beside the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.study.errors import InputError

ROOT = Path()
DATA = Path("data/reproduced")
Data = Annotated[Path, typer.Option(help="Folder of reproduced results.")]


def render(
    data: Data = DATA,
    notebooks: Annotated[
        Path | None, typer.Option(help="Executed notebooks. Default: those of the last report.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Default: reports/html.")] = None,
) -> None:
    """Render the HTML report from existing results; nothing is simulated.

    Where there are none, the released ones are rendered, into reports/html-release.
    """
    from replication.report.release import RENDERED_TO
    from replication.report.released import released_results
    from replication.report.render import DOWNLOADS
    from replication.report.render import render as render_report

    if data == DATA and not output and not any((data / name).is_file() for name in DOWNLOADS):
        released = released_results(ROOT)
        render_report(ROOT, released, released / "no notebooks", RENDERED_TO)
        print(f"{RENDERED_TO}/index.html: the released results; `make report` makes your own")
        return
    if data != DATA and not output:
        raise InputError(f"--output: is needed, as reports/html is not for the pages of {data}")
    executed = notebooks or (Path("reports/notebooks") if data == DATA else data / "none")
    render_report(ROOT, data, executed, output or Path("reports/html"))


def release(
    data: Data = DATA,
    check: Annotated[bool, typer.Option("--check", help="Verify the one that is there.")] = False,
) -> None:
    """Write finished results to data/release and their pages to reports/release, to be committed.

    The series of every run are packed into data/series-<hash>.zip, which is not. With --check:
    verify the release that is there, judge its features and flows again, and end with code 2 if
    anything is not what was made.

    Example: replicate release --check
    """
    from replication.report.release import check_release, make_release

    print(check_release(ROOT) if check else make_release(ROOT, data))


def fetch_results(
    address: Annotated[
        str | None, typer.Argument(help="https:// or file://; default: that of archive.yaml.")
    ] = None,
) -> None:
    """Fetch the series of every released run, verify them and unpack them into data/series."""
    from replication.report.release import fetch_results as fetch

    print(fetch(ROOT, address))


def fetch_traces(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A clone of the authors' repository, instead of GitHub."),
    ] = None,
) -> None:
    """Fetch the traces that authors published, verify them and put them into data/traces."""
    from replication.metrics.trace import fetch_traces as fetch

    print(fetch(ROOT, source))


def compare(
    before: Annotated[Path, typer.Argument(help="Folder of results, of a release or a clone.")],
    after: Annotated[Path, typer.Argument(help="What it is compared with.")],
    output: Annotated[Path, typer.Option(help="Table of what moved.")] = Path(
        "reports/compare/differences.csv"
    ),
) -> None:
    """Say which numbers and verdicts moved between two results, and whether beyond noise.

    Example: replicate compare data/release data/reproduced
    """
    from replication.compare.verdicts import compare_results, write_differences
    from replication.report.released import results_in

    (old, *tiers), (new, tier) = results_in(before), results_in(after)
    found = compare_results(old, new)
    print(*write_differences(found, output, [*tiers, tier]), sep="\n")
    for item in found:
        if item.verdict_moved and item.before and item.after:
            row = item.row()
            print(
                f"  {row['study']} {item.kind} {row['item']} on {row['engine']}: "
                f"{' -> '.join(item.verdicts)}"
            )
    print(output)


def refresh_notebooks() -> None:
    """Execute every notebook on the release, store its outputs in it, and write its page."""
    from replication.report.notebooks.notebook import execute, to_html
    from replication.report.pages.page import ran
    from replication.report.pages.source import read_provenance
    from replication.report.released import NOTEBOOK_PAGES, PROVENANCE, RELEASED

    whose = ran(read_provenance(ROOT / RELEASED / PROVENANCE))["whose"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        execute(path, path, {})
        to_html(path, ROOT / NOTEBOOK_PAGES / f"{path.stem}.html", whose)
        print(path)
