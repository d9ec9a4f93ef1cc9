"""Changes made after results were seen: what was, what is, why, since when, and what it did."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from replication.study.model import Document, EngineName, Text
from replication.study.verdict import Verdict


def _day(text: str) -> str:
    try:
        datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no day of the calendar: {error}") from None
    return text


#: A verdict by its word, which is how a file has it.
Word = Annotated[Verdict, Strict(False)]


class Change(Document):
    """One change to a reading, test, default or tolerance that was made after results were seen.

    The report's page of changes is made of these and of nothing else.
    """

    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_day)]
    """Day of the change, as `2026-11-22`."""
    was: Text
    """What stood there before, in words."""
    now: Text
    """What stands there since."""
    why: Text
    """The reason; never that a verdict gets better by it."""
    before: dict[EngineName, Word] = {}
    """Engine to the verdict before; empty where no single verdict is meant."""
    after: dict[EngineName, Word] = {}
    """Engine to the verdict after; an engine that was not run again is left out."""


Changes = list[Change]
