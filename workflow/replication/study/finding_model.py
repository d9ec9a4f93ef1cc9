"""Findings: what a study teaches, in sentences whose numbers and conditions are data."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from replication.base.errors import InputError, check_known
from replication.base.model import Document, EngineName, Identifier, Text, one_of
from replication.base.position import read_model
from replication.study.claim_model import Condition, Quantity, StatisticTest, sides
from replication.study.stated_cause import StatedCause, check_stated


class Fact(Document):
    """A number of a statement with its condition; exactly one source, `ours` to `region`.

    For `ours` and `paper`, a claim's test, the number is the statistic.
    """

    ours: StatisticTest | None = None
    """A test on our runs under the statement's set-up, on the study's primary engine."""
    paper: StatisticTest | None = None
    """A test on the paper's printed numbers."""
    region: Identifier | None = None
    """Id of a region; the number is read in its first panel, at the value `at` of its axis y."""
    engine: EngineName | None = None
    """Engine of the region."""
    at: float | None = None
    """Value of the axis y, in the region's unit."""
    gives: Literal["from", "to", "first", "last", "beyond"] | None = None
    """`from` and `to`: the ends on the axis x between which the claim holds; `first` and `last`:
    the compared quantity at the lowest and the highest x; `beyond`: the paper's own x over the
    highest."""
    expect: Condition | None = None
    """Condition of a count, border or quantity; a test has its own."""

    _one_source = one_of("ours", "paper", "region")

    @model_validator(mode="after")
    def _has_its_place(self) -> Self:
        given = [value is not None for value in (self.engine, self.at, self.gives)]
        if self.region is not None and not all(given):
            raise ValueError("a region needs engine, at and gives")
        return self


class Statement(Document):
    """One or two sentences, which the report shows only if all facts hold."""

    text: Text
    """The sentences; `{name}` is replaced by the number of the fact `name`."""
    facts: Annotated[dict[Identifier, Fact], Field(min_length=1)]
    """Map of name to fact."""
    causes: list[StatedCause] = []
    """Why it is so; a text with "because" needs one."""

    @model_validator(mode="after")
    def _causes_stated(self) -> Self:
        check_stated(self.text, self.causes, ("text",))
        return self

    @model_validator(mode="after")
    def _known_placeholders(self) -> Self:
        self._check_placeholders("text", self.text)
        return self

    def _check_placeholders(self, key: str, text: str) -> None:
        named = re.findall(r"\{(\w+)\}", text)
        check_known(f"{key}: fact", named, self.facts, (key,))
        try:
            text.format_map(dict.fromkeys(self.facts, ""))
        except (ValueError, LookupError, AttributeError, TypeError):
            raise InputError(f"{key}: write braces only around a fact's name", (key,)) from None

    @property
    def rests_on(self) -> Literal["region", "runs"]:
        """The results that the statement needs."""
        return "region" if any(fact.region for fact in self.facts.values()) else "runs"


class Finding(Statement):
    """What the documented defaults show, and what the textbook set-up does."""

    chart: str | None = None
    """Name of the study's chart that shows the finding, such as `sweep~throughput_bps`."""
    headline: Text | None = None
    """What the chart shows of the finding, in one line with `{name}` as in `text`: its title."""
    textbook: Statement | None = None
    """What the runs of the textbook set-up show; it appears if these were run."""

    @model_validator(mode="after")
    def _headline_of_a_chart(self) -> Self:
        if self.headline is not None:
            if self.chart is None:
                text = "headline: name the `chart` that it is the title of"
                raise InputError(text, ("headline",))
            self._check_placeholders("headline", self.headline)
        return self

    def statements(self) -> list[Statement]:
        """Return what is stated under each set-up, the defaults first."""
        return [self, self.textbook] if self.textbook else [self]

    def quantities(self) -> list[Quantity]:
        """Return every quantity of the study's runs in its statements."""
        quantities: list[Quantity] = []
        for statement in self.statements():
            for fact in statement.facts.values():
                quantities += sides(fact.ours) if fact.ours else []
        return quantities


class Findings(Document):
    """The findings of a study; the first needs only runs with the documented defaults."""

    findings: Annotated[list[Finding], Field(min_length=1)]

    @model_validator(mode="after")
    def _defaults_first(self) -> Self:
        first = self.findings[0]
        if first.rests_on != "runs" or first.chart is None:
            text = "the first finding must rest on the defaults alone and name a chart"
            raise InputError(text, ("findings", 0))
        return self


def findings_path(root: Path, study: str) -> Path:
    """Return the file of a study's findings."""
    return root / "configs/studies" / study / "findings.yaml"


def load_findings(root: Path, study: str) -> list[Finding]:
    """Return a study's findings; none without the file."""
    path = findings_path(root, study)
    return read_model(path, Findings).findings if path.is_file() else []
