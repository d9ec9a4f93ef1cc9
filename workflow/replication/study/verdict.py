"""Verdicts, and the changes of a study that were made after results were seen."""

from __future__ import annotations

import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from replication.study.model import Document, EngineName, Identifier, Text


class Verdict(StrEnum):
    """A verdict; its value is the word that stands in every table and on every page."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"
    IMPOSSIBLE = "impossible"


class ReasonCode(StrEnum):
    """Why a number or claim is `not testable`."""

    PAPER_GIVES_TOO_LITTLE = "paper gives too little"
    ENGINE_LACKS_IT = "engine lacks it"
    NO_CONGESTION = "no congestion"
    RUNS_DO_NOT_VARY = "runs do not vary"
    RUNS_SPREAD_TOO_WIDELY = "runs spread too widely"
    TOO_FEW_RUNS = "too few runs"


#: Those that an engine's runs decide; the others are the paper's or the tier's doing.
DECIDED = (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY, Verdict.NOT_REPRODUCED)


def _day(text: str) -> str:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day of the calendar") from None
    return text


#: A verdict by its word, which is how a file has it.
Word = Annotated[Verdict, Strict(False)]
Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_day)]


class Change(Document):
    """One change to a reading, test, default or tolerance that was made after results were seen."""

    date: Date
    """Day of the change, as `2026-11-22`."""
    was: Text
    """What stood there before, in words."""
    now: Text
    """What it says since."""
    why: Text
    """The reason; never that a verdict gets better by it."""
    before: dict[EngineName, Word] = {}
    """Engine to the verdict before; empty where no single verdict is meant."""
    after: dict[EngineName, Word] = {}
    """Engine to the verdict after; an engine that was not run again is left out."""


Changes = list[Change]


class Effect(Document):
    """What a change meant for one claim, table or parameter; its words go before the change's."""

    was: Text | None = None
    now: Text | None = None
    why: Text | None = None
    before: dict[EngineName, Word] = {}
    """Engine to the verdict before; empty where no single verdict is meant."""
    after: dict[EngineName, Word] = {}
    """Engine to the verdict after; an engine that was not run again is left out."""


class StudyChange(Document):
    """A change to a study after results were seen, and what it did to each of its subjects."""

    date: Date
    """Day of the change, as `2026-11-22`."""
    was: Text | None = None
    """What stood there before."""
    now: Text | None = None
    """What it says since; without it a claim's reading."""
    why: Text | None = None
    """The reason; never that a verdict gets better by it."""
    claims: dict[Identifier, Effect] = {}
    """Claim to `{before, after}`: engine to its verdict; also its own `was`, `now` or `why`."""
    tables: dict[str, Effect] = {}
    """Table to the same."""
    parameters: dict[str, Effect] = {}
    """Parameter (`experiment/name` for one of an experiment) to the same."""

    def to(self, kind: Subject, name: str, reading: str = "") -> Change | None:
        """Return the change as its subject has it; None where it is none of its subjects."""
        effect: Effect | None = getattr(self, kind).get(name)
        if effect is None:
            return None
        words = {key: getattr(effect, key) or getattr(self, key) for key in ("was", "now", "why")}
        words["now"] = words["now"] or reading
        if missing := [key for key, text in words.items() if not text]:
            raise ValueError(f"changes: {kind}: {name} has no {missing[0]!r}; say it")
        return Change(date=self.date, **words, before=effect.before, after=effect.after)


Subject = Literal["claims", "tables", "parameters"]
