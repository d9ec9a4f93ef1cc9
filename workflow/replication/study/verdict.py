"""Verdicts, and the changes to a study after results were seen."""

from __future__ import annotations

import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from replication.base.errors import InputError
from replication.base.model import Document, EngineName, Identifier, Text


class Verdict(StrEnum):
    """A verdict; its value is its text in tables and on pages."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"
    IMPOSSIBLE = "impossible"


class ReasonCode(StrEnum):
    """Why a number or claim is `not testable`."""

    PAPER_GIVES_TOO_LITTLE = "paper gives too little"
    ENGINE_LACKS_IT = "engine lacks it"
    ALTERNATIVES_CANNOT_DIFFER = "alternatives cannot differ"
    SETUP_FORCES_IT = "set-up forces it"
    RUNS_DO_NOT_VARY = "runs do not vary"
    RUNS_SPREAD_TOO_WIDELY = "runs spread too widely"
    TOO_FEW_RUNS = "too few runs"


#: Verdicts that an engine's runs decide; the others depend on the paper or the tier.
DECIDED = (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY, Verdict.NOT_REPRODUCED)


#: A day, as `2026-11-22`.
Date = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}$"),
    AfterValidator(lambda text: datetime.date.fromisoformat(text).isoformat()),
]
#: Verdicts by engine, which files have as text.
_Verdicts = dict[EngineName, Annotated[Verdict, Strict(False)]]


class _Words(Document):
    was: Text | None = None
    """Content before the change."""
    now: Text | None = None
    """Content after the change; for a claim by default its reading."""
    why: Text | None = None
    """Reason of the change, which must not be a better verdict."""


class Effect(_Words):
    """Effect of a change on one subject; its own texts override the change's."""

    before: _Verdicts = {}
    """Map of engine to verdict before the change; empty if it concerns no single verdict."""
    after: _Verdicts = {}
    """Map of engine to verdict after the change, without engines that were not run again."""


class Change(Effect):
    """A change to a reading, test, default or tolerance after results were seen."""

    date: Date
    """Day of the change, as `2026-11-22`."""
    was: Text
    """Content before the change."""
    now: Text
    """Content after the change."""
    why: Text
    """Reason of the change, which must not be a better verdict."""


class StudyChange(_Words):
    """A change to a study after results were seen, with its effect on each subject."""

    date: Date
    """Day of the change, as `2026-11-22`."""
    claims: dict[Identifier, Effect] = {}
    """Map of claim to `{before, after}`, verdicts by engine; also its own `was`, `now` or `why`."""
    tables: dict[str, Effect] = {}
    """Map of table to the same."""
    parameters: dict[str, Effect] = {}
    """Map of parameter (or `experiment/name`) to the same."""
    experiments: dict[Identifier, Effect] = {}
    """Map of experiment to the same, for its number of runs or its levels."""

    def to(self, kind: Subject, name: str, reading: str = "") -> Change | None:
        """Return the change with its effect on a subject; None if it has no effect on it."""
        effect: Effect | None = getattr(self, kind).get(name)
        if effect is None:
            return None
        words = {key: getattr(effect, key) or getattr(self, key) for key in ("was", "now", "why")}
        words["now"] = words["now"] or reading
        if missing := [key for key, text in words.items() if not text]:
            text = f"changes: {kind}: {name} has no {missing[0]!r}; add it"
            raise InputError(text, ())
        return Change(date=self.date, **words, before=effect.before, after=effect.after)


class SettingsChange(Document):
    """A change after results were seen to settings that belong to no single study."""

    date: Date
    """Day of the change, as `2026-11-22`."""
    title: Text
    """Subject of the change."""
    files: Annotated[list[str], Field(min_length=1)]
    """List of the files in configs that changed, such as `sensitivity.yaml`."""
    was: Text
    """Content before the change."""
    now: Text
    """Content after the change."""
    why: Text
    """Reason of the change, which must not be a better verdict."""


class SettingsChanges(Document):
    """configs/changes.yaml."""

    schema_version: Literal[1] = 1
    """Version of this format."""
    changes: list[SettingsChange]
    """Changes made after results were seen to settings that belong to no single study."""


Subject = Literal["claims", "tables", "parameters", "experiments"]
