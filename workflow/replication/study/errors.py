"""Errors that a user can correct, and their one-line messages."""

import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError


class InputError(ValueError):
    """Wrong input (exit code 2); the message names file, field, value and remedy."""


class RunError(RuntimeError):
    """A failed run (exit code 1); the message says where to look."""


def check_known(field: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise InputError unless all names are known."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"{field}: {unknown[0]!r} is unknown; there are {', '.join(sorted(known)[:20])}"
        )


_ROOM = "free some space and run again: finished runs are kept"
_WRITABLE = "make it writable, or run in another folder"
_PATH = "give another path"
#: Errors of the operating system, and their remedies.
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _WRITABLE),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ENOENT), _PATH),
    errno.EIO: "the disk has an error: run in another folder",
    errno.ENOMEM: "there is not enough memory: run fewer jobs at once (CORES=1)",
}


def describe_refusal(error: Exception) -> str | None:
    """Return message and remedy of an error in `REMEDIES`; None for any other error."""
    if isinstance(error, MemoryError):
        return f"out of memory: {REMEDIES[errno.ENOMEM]}"
    if not isinstance(error, OSError) or error.errno not in REMEDIES:
        return None
    where = f"{_plain(str(error.filename))[:300]}: " if error.filename else ""
    return f"{where}{os.strerror(error.errno)}: {REMEDIES[error.errno]}"


@contextmanager
def exit_with_error() -> Iterator[None]:
    """Print an InputError as one line and exit with code 2, while Snakemake reads rules."""
    try:
        yield
    except InputError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        # Snakemake turns every exception, even SystemExit, into a traceback and exit code 1.
        os._exit(2)


def end_of(error: Exception) -> tuple[int, str] | None:
    """Return exit code and message of an expected error; None for one that needs a traceback."""
    if isinstance(error, InputError):
        return 2, str(error)
    line = str(error) if isinstance(error, RunError) else describe_refusal(error)
    return None if line is None else (1, line)


def describe(error: ValidationError, document: Any = None, limit: int = 5) -> str:
    """Return all problems in one line; entries of lists are named by their ids in `document`."""
    problems = error.errors(include_url=False)
    lines = []
    for problem in problems[:limit]:
        parts = _named(problem["loc"], document)
        field = ".".join(_plain(_cut(str(part), 64)) for part in parts) or "(document)"
        value = problem.get("input")
        shown = "" if isinstance(value, dict | list) else f" (got {_cut(repr(value), 60)})"
        lines.append(f"{field}: {_plain(problem['msg'].removeprefix('Value error, '))}{shown}")
    more = [f"and {len(problems) - limit} more"] if len(problems) > limit else []
    return "; ".join([*lines, *more])


def _named(loc: Sequence[int | str], document: Any) -> Iterator[int | str]:
    for part in loc:
        if isinstance(document, dict) and document.get("kind") == part:
            continue
        try:
            document = document[part]
        except (LookupError, TypeError):
            document = None
        has_id = isinstance(part, int) and isinstance(document, dict)
        yield document.get("id", part) if has_id else part


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
