"""Causes that texts for readers state, each with what it rests on."""

import re
from collections.abc import Sequence

from replication.base.errors import InputError, Place
from replication.base.model import Document, Identifier, Text, one_of

#: Words that give a cause; "since" without a comma before it often is a time.
_CAUSAL = re.compile(r"\b(because|due to|owing to)\b|, since\b", re.IGNORECASE)


class StatedCause(Document):
    """What a cause rests on: exactly one of the keys."""

    intervention: Identifier | None = None
    """Id of an intervention of configs/interventions.yaml; pages show its sentence."""
    source: Text | None = None
    """A line of a source or of a standard."""
    untested: Text | None = None
    """A possible cause that no run has tested: "We do not know; perhaps ..."."""

    _one_kind = one_of("intervention", "source", "untested")


def check_stated(text: str, causes: Sequence[StatedCause], place: Place) -> None:
    """Raise InputError for a text that gives a cause although `causes` name none."""
    word = _CAUSAL.search(text)
    if word and not causes:
        raise InputError(
            f"text: {word[0]!r} gives a cause; name under `causes` its intervention or source, "
            "or say that it is untested",
            place,
        )
