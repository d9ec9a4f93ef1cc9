"""Leaving: how bad input ends the program while Snakemake reads its rules."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from replication.study.errors import InputError


def leave(error: InputError) -> NoReturn:
    """Print bad input as one line, and end the program with exit code 2."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    # Snakemake turns an exception, SystemExit too, into a traceback and exit code 1.
    os._exit(2)
