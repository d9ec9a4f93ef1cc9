"""Leaving: how bad input ends the program while Snakemake reads its rules."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from replication.run.environment import enter
from replication.study.errors import InputError


def leave(error: InputError) -> NoReturn:
    """Print bad input as one line, and end the program with exit code 2."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    # Snakemake turns an exception, SystemExit too, into a traceback and exit code 1.
    os._exit(2)


def enter_or_leave(root: Path) -> None:
    """Let the project's own environment alone reach the workflow, or leave."""
    profile = os.environ.get("SNAKEMAKE_PROFILE")
    try:
        if profile:
            raise InputError(
                f"SNAKEMAKE_PROFILE: {profile!r} is a profile from elsewhere: unset it; those of "
                "the project are in workflow/profiles (--workflow-profile)"
            )
        enter(root)
    except InputError as error:
        leave(error)
