"""Residents: engines' programs in Python, imported once by the runner and forked for each run.

Starting Python takes longer than many a run's own work. Such a program has, beside the script that
starts it by hand, a folder `program` with a module `command`, whose `main` takes the words of the
command line and returns the exit code. Standard library alone, like `process`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_MODULE = "command"
#: Takes the words of a command line, returns the exit code.
Main = Callable[[list[str]], int]


@functools.cache
def resident(program: str) -> Main | None:
    """Return what a fork calls in the place of executing `program`, or None if there is nothing."""
    folder = Path(program).parent / "program"
    # A runner serves one engine; a second one's modules have the same names.
    if _MODULE in sys.modules or not (folder / f"{_MODULE}.py").is_file():
        return None
    sys.path.insert(0, str(folder))
    try:
        main: Main = importlib.import_module(_MODULE).main
    except Exception:
        # Executed, it says itself what is wrong with it.
        return None
    return main


def fork(main: Main, words: list[str], environment: dict[str, str], stderr: int) -> int:
    """Fork and do in the child what `subprocess` and Python's own start would do; return its id.

    `environment` takes the place of ours; of all that is open, the child has `stderr` alone.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, file in enumerate((nothing, nothing, stderr)):
            os.dup2(file, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        code = main(words)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)
