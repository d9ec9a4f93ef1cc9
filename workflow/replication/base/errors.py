"""Errors that a user can correct, and their one-line messages."""

import errno
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NamedTuple, Self

from pydantic import ValidationError
from pydantic_core import ErrorDetails

#: The field of a problem of a whole document.
_WHOLE = "(document)"
#: The way from a document to a value in it: keys, indices, and ids of entries.
Place = tuple[str | int, ...]
#: Longest message, and longest quotation in one.
_MOST_CHARACTERS, _MOST_QUOTED = 2000, 60
#: Most problems of a document in one message.
_MOST_PROBLEMS = 5


class InputError(ValueError):
    """Wrong input (exit code 2); the message names file, field, value and remedy.

    `place` is that of the wrong value in its document; `position.located` turns it into file and
    line. Without one the message names the file itself, or there is none.
    """

    def __init__(self, text: str, place: Place | None = None) -> None:
        super().__init__(cut(text, _MOST_CHARACTERS))
        self.place = place

    def under(self, *place: str | int, words: str = "") -> Self:
        """Return the error, its place within that of a surrounding document, which `words` name.

        An error without a place is of another document, and stays as it is.
        """
        if self.place is not None:
            self.place = (*place, *self.place)
            self.args = (f"{words}: {self}" if words else str(self),)
        return self


class RunError(RuntimeError):
    """A failed run (exit code 1); the message says where to look."""


def check_known(
    field: str, names: Iterable[str], known: Collection[str], place: Place | None = None
) -> None:
    """Raise InputError unless all names are known; `place` is that of the names."""
    for name in names:
        if name not in known:
            there = cut(", ".join(sorted(known)[:20]), 300) or "none"
            near = get_close_matches(name, known, 1)
            nearest = f" (nearest: {near[0]})" if near and len(known) > 1 else ""
            text = f"{field}: {quoted(name)} is unknown; there are {there}{nearest}"
            raise InputError(text, None if place is None else (*place, name))


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


def quoted(value: object) -> str:
    """Return a value of the input as a message shows it: in quotes, and not too long."""
    return cut(repr(value), _MOST_QUOTED)


def cut(text: str, most: int) -> str:
    """Return `text`, its end replaced by dots if it is longer than `most`."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Problem(NamedTuple):
    """A problem of a document: where it is, its field in words, and what is wrong."""

    place: Place
    field: str
    text: str

    def __str__(self) -> str:
        # A problem of the whole document names its fields itself.
        return self.text if self.field == _WHOLE else f"{self.field}: {self.text}"


def describe(error: ValidationError, document: Any = None) -> str:
    """Return all problems in one line; entries of lists are named by their ids in `document`."""
    return in_one_line(problems(error, document))


def in_one_line(problems: Sequence[object]) -> str:
    """Return the first problems, and how many more there are."""
    texts = [str(problem) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        texts.append(f"and {len(problems) - _MOST_PROBLEMS} more")
    return "; ".join(texts)


def problems(error: ValidationError, document: Any = None) -> list[Problem]:
    """Return the problems of a document, those of a field's alternative forms as one."""
    texts: dict[tuple[Place, str], list[str]] = {}
    values: dict[tuple[Place, str], str] = {}
    for problem in error.errors(include_url=False):
        place, names = _place(problem, document)
        field = ".".join(_plain(cut(str(name), 64)) for name in names) or _WHOLE
        # A validator's own error says more precisely where.
        cause = problem.get("ctx", {}).get("error")
        place += (isinstance(cause, InputError) and cause.place) or ()
        said = texts.setdefault((place, field), [])
        if (words := _words(problem)) not in said:
            said.append(words)
        if problem["type"] != "missing" and not isinstance(problem["input"], dict | list):
            values[place, field] = f" (got {_plain(quoted(problem['input']))})"
    return [
        Problem(*key, f"{', or '.join(said)}{values.get(key, '')}") for key, said in texts.items()
    ]


def _words(problem: ErrorDetails) -> str:
    if problem["type"] == "missing":
        return "is missing; add it"
    text = _plain(problem["msg"].removeprefix("Value error, "))
    return cut(re.sub(r"'[^']{61,}'", lambda long: f"{long[0][:57]}...'", text), 500)


def _place(problem: ErrorDetails, document: Any) -> tuple[Place, Place]:
    """Return a problem's place in a document, and the same with the ids of lists' entries."""
    if document is None:
        return problem["loc"], problem["loc"]
    place: list[str | int] = []
    names: list[str | int] = []
    for number, part in enumerate(problem["loc"]):
        # The kind of a document, and an alternative form of a field, are not in the file.
        if isinstance(document, dict) and document.get("kind") == part:
            continue
        is_last = number == len(problem["loc"]) - 1
        if _has(document, part):
            document = document[part]
        elif not (is_last and problem["type"] == "missing"):
            continue
        place.append(part)
        has_id = isinstance(part, int) and isinstance(document, dict)
        names.append(document.get("id", part) if has_id else part)
    return tuple(place), tuple(names)


def _has(document: Any, part: str | int) -> bool:
    if isinstance(document, dict):
        return part in document
    return isinstance(document, list) and isinstance(part, int) and part < len(document)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
