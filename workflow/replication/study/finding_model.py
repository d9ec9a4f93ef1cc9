"""Findings: sentences on what a study teaches about TCP, with numbers from the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Condition, SimpleTest
from replication.study.files import read_model
from replication.study.model import Document, EngineName, Identifier, Text, one_of

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

_Test = Annotated[SimpleTest, Field(discriminator="kind")]


class Fact(Document):
    """A number of a finding with its condition; exactly one source, `ours` to `region`.

    For `ours` and `paper`, a claim's test, the number is the statistic.
    """

    ours: _Test | None = None
    """A test on our runs with the documented defaults on the study's primary engine."""
    paper: _Test | None = None
    """A test on the paper's printed numbers."""
    explanation: (
        Literal["matches_before", "matches_after", "numbers", "claims_before", "claims_after"]
        | Literal["claims", "gain"]
        | None
    ) = None
    """A count under the best explanation; `gain` is the increase in matches and claims."""
    cause: Identifier | None = None
    """A cause that the best explanation must contain; the sentence shows its title."""
    region: Identifier | None = None
    """Id of a region; the number is the share of its area where the claim holds."""
    engine: EngineName | None = None
    """Engine of the region."""
    expect: Condition | None = None
    """Condition of a count or share; a test has its own."""

    _one_source = one_of("ours", "paper", "explanation", "cause", "region")


class Finding(Document):
    """One or two sentences, which the report shows only if all facts hold."""

    text: Text
    """The sentences; `{name}` is replaced by the number of the fact `name`."""
    chart: str | None = None
    """Name of the study's chart that shows the finding, such as `sweep~throughput_bps`."""
    facts: Annotated[dict[Identifier, Fact], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_placeholders(self) -> Finding:
        for name in _PLACEHOLDER.findall(self.text):
            if name not in self.facts:
                raise ValueError(f"text: {{{name}}} is no fact; there are {', '.join(self.facts)}")
        return self

    @property
    def rests_on(self) -> Literal["explanation", "region", "defaults"]:
        """The results that the finding needs: `defaults` are runs with the documented defaults."""
        if any(fact.explanation or fact.cause for fact in self.facts.values()):
            return "explanation"
        return "region" if any(fact.region for fact in self.facts.values()) else "defaults"


class Findings(Document):
    """The findings of a study; the first needs only runs with the documented defaults."""

    findings: Annotated[list[Finding], Field(min_length=1)]

    @model_validator(mode="after")
    def _defaults_first(self) -> Findings:
        first = self.findings[0]
        if first.rests_on != "defaults" or first.chart is None:
            raise ValueError("the first finding must rest on the defaults alone and name a chart")
        return self


def load_findings(root: Path, study: str) -> list[Finding]:
    """Return a study's findings; none without the file."""
    path = root / "configs/studies" / study / "findings.yaml"
    return read_model(path, Findings).findings if path.is_file() else []
