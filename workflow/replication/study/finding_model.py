"""Findings: what a study teaches about TCP, in sentences whose numbers come from the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Condition, SimpleTest
from replication.study.files import read_model
from replication.study.model import Document, EngineName, Identifier, Text, one_of

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

#: A test of the claims' language: its statistic is the number, its expectation the condition.
_Test = Annotated[SimpleTest, Field(discriminator="kind")]


class Fact(Document):
    """A number that a finding names or rests on, and what must hold of it: one source of these."""

    ours: _Test | None = None
    """A test on our runs by the documented defaults, on the study's primary engine."""
    paper: _Test | None = None
    """A test on the numbers that the paper prints."""
    explanation: (
        Literal["matches_before", "matches_after", "numbers", "claims_before", "claims_after"]
        | Literal["claims", "gain"]
        | None
    ) = None
    """A count under the best explanation; `gain` is how many more match or hold under it."""
    cause: Identifier | None = None
    """A cause that the best explanation must have; its title is shown."""
    region: Identifier | None = None
    """Id of a region: the share of its area where the claim holds."""
    engine: EngineName | None = None
    """The engine of the region."""
    expect: Condition | None = None
    """What must hold of a count or share; a test has its own."""

    _one_source = one_of("ours", "paper", "explanation", "cause", "region")


class Finding(Document):
    """One or two sentences; all facts must hold on the results at hand for it to be said."""

    text: Text
    """With `{name}` for the number of the fact `name`."""
    chart: str | None = None
    """The chart that shows it: its name in the study's charts, as `sweep~throughput_bps`."""
    facts: Annotated[dict[Identifier, Fact], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_placeholders(self) -> Finding:
        for name in _PLACEHOLDER.findall(self.text):
            if name not in self.facts:
                raise ValueError(
                    f"text: {{{name}}} is no fact of the finding; there are {', '.join(self.facts)}"
                )
        return self

    @property
    def rests_on(self) -> Literal["explanation", "region", "defaults"]:
        """Return what it needs beyond our runs at the defaults."""
        if any(fact.explanation or fact.cause for fact in self.facts.values()):
            return "explanation"
        return "region" if any(fact.region for fact in self.facts.values()) else "defaults"


class Findings(Document):
    """What a study teaches; the first finding rests on the documented defaults alone."""

    findings: Annotated[list[Finding], Field(min_length=1)]

    @model_validator(mode="after")
    def _defaults_first(self) -> Findings:
        first = self.findings[0]
        if first.rests_on != "defaults" or first.chart is None:
            raise ValueError("the first finding rests on the defaults alone and names a chart")
        return self


def load_findings(root: Path, study: str) -> list[Finding]:
    """Return a study's findings; none where it has no such file."""
    path = root / "configs/studies" / study / "findings.yaml"
    return read_model(path, Findings).findings if path.is_file() else []
