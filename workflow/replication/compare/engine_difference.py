"""Known differences of the engines: what each does where they do not do the same.

configs/engine_differences.yaml is written by hand from the engines' manuals and from standards. A
difference is offered for a disagreement if the runs behind it have the traits that it concerns;
whether it is seen there is for the measured contrasts to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from replication.measure.metric_model import CONTRASTED
from replication.study.files import read_model
from replication.study.model import Document, EngineName, Identifier
from replication.study.parameter import unique
from replication.study.scenario import CongestionControl

Text = Annotated[str, Field(min_length=1, max_length=1000)]
QueueKind = Literal["droptail", "pfifo", "red", "codel", "fq_codel", "pie", "fq_pie", "cake"]

PATH = Path("configs") / "engine_differences.yaml"


class Concerns(Document):
    """The runs that a difference concerns; a trait that is left out may be anything.

    A run has a trait if one of its TCP flows has all those of flows, and one of its queues is of
    one of the kinds.
    """

    congestion_controls: list[CongestionControl] = []
    sack: bool | None = None
    limited_transmit: bool | None = None
    delayed_acks: bool | None = None
    queues: list[QueueKind] = []

    def holds(self, scenario: Mapping[str, Any]) -> bool:
        """Return whether a scenario (its JSON document) has the traits."""
        flows = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"]
        if not any(self._holds_of(flow) for flow in flows):
            return False
        ends = ("queue_ab", "queue_ba")
        kinds = {link[end]["kind"] for link in scenario["links"] for end in ends}
        return not self.queues or not kinds.isdisjoint(self.queues)

    def _holds_of(self, flow: Mapping[str, Any]) -> bool:
        controls = self.congestion_controls
        return (
            (not controls or flow["congestion_control"] in controls)
            and self.sack in (None, flow["sack"])
            and self.limited_transmit in (None, flow["limited_transmit"])
            and self.delayed_acks in (None, flow["delayed_ack_segments"] > 1)
        )


class EngineDifference(Document):
    """One thing that engines do differently.

    `engines` says what each does; engines with the same words do not differ. `shows_in` names the
    contrasted metrics that it would move.
    """

    id: Identifier
    title: Text
    engines: Annotated[dict[EngineName, Text], Field(min_length=2)]
    concerns: Concerns = Concerns()
    shows_in: Annotated[list[Identifier], Field(min_length=1)]
    sources: Annotated[list[Text], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_metrics(self) -> EngineDifference:
        for metric in self.shows_in:
            if metric not in CONTRASTED:
                raise ValueError(f"shows_in: {metric!r} is not one of {', '.join(CONTRASTED)}")
        if len(set(self.engines.values())) < 2:
            raise ValueError(f"difference {self.id}: all its engines do the same")
        return self

    def parts(self, left: str, right: str) -> tuple[str, str] | None:
        """Return what two engines do, or None where it does not tell them apart."""
        words: Mapping[str, str] = {str(engine): text for engine, text in self.engines.items()}
        if left not in words or right not in words or words[left] == words[right]:
            return None
        return words[left], words[right]


class EngineDifferences(Document):
    """configs/engine_differences.yaml."""

    schema_version: Literal[1]
    differences: list[EngineDifference]

    @model_validator(mode="after")
    def _unique(self) -> EngineDifferences:
        unique([difference.id for difference in self.differences], "difference")
        return self

    def concerning(
        self, left: str, right: str, scenarios: Iterable[Mapping[str, Any]]
    ) -> list[EngineDifference]:
        """Return the differences of two engines that concern any of the scenarios."""
        runs = list(scenarios)
        return [
            difference
            for difference in self.differences
            if difference.parts(left, right) and any(difference.concerns.holds(run) for run in runs)
        ]


def load_differences(root: Path) -> EngineDifferences:
    """Read the known differences of the project in `root`; InputError names what is wrong."""
    return read_model(root / PATH, EngineDifferences)
