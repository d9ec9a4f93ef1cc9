"""Shared code of the rules' scripts: output to logs, errors to the terminal."""

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from replication.base.environment import enter
from replication.base.errors import end_of
from replication.base.lifetime import end_with_workflow

#: The project's folder, which commands and rules start in.
ROOT = Path()
DATA = Path("data/reproduced")


class _Both(io.TextIOBase):
    def __init__(self, *files: TextIO) -> None:
        self._files = files

    def write(self, text: str) -> int:
        for file in self._files:
            file.write(text)
            file.flush()
        return len(text)


@contextlib.contextmanager
def job(snakemake: Any, doing: str | None = None) -> Iterator[None]:
    """Send output to the rule's log; also print errors, and `doing` or else `sys.stderr`.

    The process ends with the block.
    """
    terminal = os.fdopen(os.dup(2), "w", buffering=1)
    with Path(str(snakemake.log)).open("w", encoding="utf-8") as log:
        # Processes that the job starts write to the log too.
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if doing:
        print(doing, file=terminal)
    else:
        sys.stderr = _Both(sys.stderr, terminal)
    try:
        enter(ROOT)
        end_with_workflow()
        yield
    except Exception as error:
        code, line = end_of(error) or (1, "")
        text = f"error: {line}" if line else traceback.format_exc()
        print(text, file=_Both(sys.__stderr__ or terminal, terminal))
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    # The job is done. Arrow's threads may abort a process that ends as usual (apache/arrow#34314).
    os._exit(0)
