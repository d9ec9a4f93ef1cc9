"""Stand-ins: what a stack of today runs in the place of values that it cannot have."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from replication.plan.config import Replicates, Tier
from replication.plan.leave import leave
from replication.sensitivity.maps.map_model import Change
from replication.study.errors import InputError
from replication.study.files import read_model
from replication.study.model import Document, EngineName, Identifier, PositiveSeconds, Text
from replication.study.study import Study

TODAY = Path("configs/today.yaml")
TierName = Literal["quick", "paper", "deep"]


class StandIn(Document):
    """What is run of one study."""

    set: Change | None = None
    """A changed [set-up](#maps); without it the study's own."""
    reasons: Annotated[list[Text], Field(min_length=1)]
    """List: what is replaced, and why."""

    def on(self, study: Study, engine: str) -> Study:
        """Return the study with this set-up, which goes before what the study has for an engine.

        Raises
        ------
        InputError
            The study has no parameter, flow or level of a name.
        """
        others = [one for one in study.substitutions if one.engine != engine]
        own = study.model_copy(update={"substitutions": others})
        if self.set is None:
            return study
        try:
            return self.set.on(own)
        except InputError as error:
            raise InputError(f"{TODAY}: {study.id}: {error}") from None


class TodayTier(Document):
    """How much a tier runs."""

    levels: Literal["all", "quick"]
    """As in a [tier](#tiers)."""
    replicates: Annotated[list[Replicates], Field(min_length=1)]
    """As in a tier."""
    cost_limit_s: PositiveSeconds | None = None
    """As in a tier."""


class Today(Document):
    """configs/today.yaml."""

    schema_version: Literal[1] = 1
    """The form of the file."""
    engine: EngineName
    """The engine whose stack is today's."""
    tiers: dict[TierName, TodayTier]
    """Tier to how much is run."""
    studies: Annotated[dict[Identifier, StandIn], Field(min_length=1)]
    """Study to what is run of it."""

    def tier(self, name: str) -> Tier:
        """Return the tier that the studies are run at; InputError where there is none of a name."""
        own = {str(key): tier for key, tier in self.tiers.items()}
        if name not in own:
            raise InputError(f"tier: {TODAY} has none called {name!r}; it has {', '.join(own)}")
        return Tier(
            id="today",
            title="today",
            levels=own[name].levels,
            replicates=own[name].replicates,
            cost_limit_s=own[name].cost_limit_s,
            batch_cost_s=60.0,
        )

    def stand_in(self, study: str) -> StandIn:
        """Return what is run of a study; InputError where the file has nothing of it."""
        if study not in self.studies:
            raise InputError(
                f"{TODAY}: studies: has no {study!r}; it has {', '.join(self.studies)}"
            )
        return self.studies[study]


def load_today(root: Path) -> Today:
    """Read configs/today.yaml; InputError names each wrong field."""
    return read_model(root / TODAY, Today)


def studies_of_today(root: Path, studies: Collection[str], engines: Collection[str]) -> list[str]:
    """Return those of the studies that are judged on a stack of today, if that is among `engines`.

    A wrong configs/today.yaml is told in one line and ends the program with exit code 2.
    """
    try:
        today = load_today(root)
    except InputError as error:
        leave(error)
    return sorted(set(today.studies) & set(studies)) if today.engine in engines else []
