"""The command line: `replicate --help`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from replication.cli import engine, plan, report, run
from replication.run.environment import enter
from replication.study.errors import InputError, RunError, end_of

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Rebuild the experiments of published TCP studies and compare the numbers.

\b
Examples:
  replicate plan --tier quick --studies saxena
  replicate run 0123456789abcdef --engine ns3 --output /tmp/look
  replicate release --check""",
)

for command in (
    plan.validate,
    plan.plan,
    plan.new_study,
    run.run,
    report.render,
    report.release,
    report.compare,
    engine.engines,
    plan.metrics,
    plan.schemas,
):
    app.command()(command)
# What make and tests call; `--help` shows them when they are asked for by name.
for hidden in (engine.install_engines, engine.program, report.fixture):
    app.command(hidden=True)(hidden)


def main() -> None:
    """Run `replicate`."""
    run_command_line(app)


def run_command_line(app: typer.Typer) -> None:
    """Run a command line; bad input is one line and exit code 2, a failed run exit code 1."""
    try:
        enter(Path())
        app()
    except (InputError, RunError, OSError, MemoryError) as error:
        known = end_of(error)
        if known is None:
            raise
        print(f"error: {known[1]}", file=sys.stderr)
        sys.exit(known[0])
