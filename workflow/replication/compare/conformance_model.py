"""The document configs/conformance.yaml: canonical scenarios, what is expected of them, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError, model_validator

from replication.compare.conformance_quantity import QUANTITIES
from replication.study.errors import describe
from replication.study.files import read_model
from replication.study.link import DropTail, Loss, Queue
from replication.study.model import (
    Count,
    Document,
    EngineName,
    Identifier,
    PositiveSeconds,
    Rate,
    Seconds,
    Text,
)
from replication.study.parameter import unique
from replication.study.scenario import Scenario

Settings = dict[str, JsonValue]
#: What is told of one loss recovery; see compare.conformance_recovery.
RecoveryQuantity = Literal[
    "first_retransmission_s", "lowest_cwnd_segments", "timeouts", "recovery_time_s", "goodput_bps"
]


class Wire(Document):
    """The link from s0 to d0; queue and loss are of the direction of the data."""

    rate_bps: Rate
    delay_s: Seconds
    queue: Queue = DropTail(limit_packets=1000)
    loss: Loss | None = None


class Canonical(Document):
    """A scenario of one link; `engines` are TCP settings for engines that lack those of `flows`."""

    title: Text
    duration_s: PositiveSeconds
    sampling_interval_s: PositiveSeconds
    link: Wire
    flows: Annotated[dict[Identifier, Settings], Field(min_length=1)]
    engines: dict[EngineName, Settings] = {}


class Variant(Document):
    """TCP settings of an engine that differ from the common ones, and why."""

    tcp: Settings
    reason: Text


class Expectation(Document):
    """A number and the interval it must lie in, with the source of both, set before any run."""

    expected: float
    low: float
    high: float
    source: Text
    tolerance: Text

    @model_validator(mode="after")
    def _ordered(self) -> Expectation:
        if not self.low <= self.expected <= self.high:
            raise ValueError(
                f"low {self.low:g} <= expected {self.expected:g} <= high does not hold"
            )
        return self


class Check(Expectation):
    """A quantity of canonical scenarios; `engines` expect another number, for another reason.

    `after_s` leaves out the samples up to that time.
    """

    id: Identifier
    title: Text
    scenarios: Annotated[list[Identifier], Field(min_length=1)]
    quantity: str
    after_s: Seconds = 0.0
    engines: dict[EngineName, Expectation] = {}

    @model_validator(mode="after")
    def _known_quantity(self) -> Check:
        if self.quantity not in QUANTITIES:
            known = ", ".join(QUANTITIES)
            raise ValueError(f"quantity {self.quantity!r} is unknown; there are {known}")
        return self

    def expectation(self, engine: str) -> Expectation:
        """Return what is expected of an engine."""
        return {str(name): other for name, other in self.engines.items()}.get(engine, self)


class Tolerance(Document):
    """How far the subject may be from the reference: absolute, or relative to the reference."""

    absolute: Annotated[float, Field(ge=0)] | None = None
    relative: Annotated[float, Field(ge=0)] | None = None
    source: Text

    @model_validator(mode="after")
    def _one(self) -> Tolerance:
        if (self.absolute is None) == (self.relative is None):
            raise ValueError("give exactly one of absolute and relative")
        return self

    def width(self, reference: float) -> float:
        """Return the largest deviation from `reference`, in its unit."""
        return self.absolute if self.absolute is not None else abs(reference) * (self.relative or 0)


class Recovery(Document):
    """Variants of TCP through listed losses, an engine's own beside those of a reference."""

    title: Text
    subject: EngineName
    reference: EngineName
    scenario: Canonical
    variants: Annotated[dict[Identifier, Settings], Field(min_length=1)]
    losses: Annotated[dict[Identifier, list[Count]], Field(min_length=1)]
    quantities: Annotated[dict[RecoveryQuantity, Tolerance], Field(min_length=1)]

    def check_ids(self) -> list[str]:
        """Return the ids of its checks: variant, losses and quantity."""
        return [
            recovery_check(variant, losses, quantity)
            for variant in self.variants
            for losses in self.losses
            for quantity in self.quantities
        ]


class KnownDeviation(Document):
    """Checks that an engine is known to fail, why, and how that is known."""

    checks: Annotated[list[str], Field(min_length=1)]
    engine: EngineName
    cause: Text
    evidence: Text


class Conformance(Document):
    """configs/conformance.yaml; see configs/README.md."""

    schema_version: Literal[1] = 1
    seed: Annotated[int, Field(ge=1, le=2**31 - 1)]
    tcp: Settings
    engines: dict[EngineName, Variant]
    scenarios: Annotated[dict[Identifier, Canonical], Field(min_length=1)]
    checks: Annotated[list[Check], Field(min_length=1)]
    recovery: Recovery
    known_deviations: list[KnownDeviation] = []

    @model_validator(mode="after")
    def _consistent(self) -> Conformance:
        unique([check.id for check in self.checks], "check")
        for check in self.checks:
            for name in check.scenarios:
                if name not in self.scenarios:
                    raise ValueError(f"check {check.id}: unknown scenario {name!r}")
        known = {check.id for check in self.checks} | set(self.recovery.check_ids())
        for deviation in self.known_deviations:
            for name in deviation.checks:
                if name not in known:
                    raise ValueError(f"known_deviations: unknown check {name!r}")
        for engine in self.engines:
            for name in self.scenarios:
                self.scenario(name, engine)
        for engine in (self.recovery.subject, self.recovery.reference):
            for variant in self.recovery.variants:
                for losses in self.recovery.losses:
                    self.recovery_scenario(variant, losses, engine)
        return self

    def scenario(self, name: str, engine: str) -> Scenario:
        """Return a canonical scenario as `engine` runs it.

        Raises
        ------
        ValueError
            It is no valid scenario; the message names field and value.
        """
        return self._build(self.scenarios[name], engine, {}, f"scenario {name} on {engine}")

    def recovery_scenario(self, variant: str, losses: str, engine: str) -> Scenario:
        """Return the scenario of a variant through listed losses."""
        where = f"recovery {variant}, {losses} on {engine}"
        canonical = self.recovery.scenario
        flow = next(iter(canonical.flows))
        listed = {"kind": "listed", "flow": flow, "data_packets": self.recovery.losses[losses]}
        return self._build(canonical, engine, self.recovery.variants[variant], where, listed)

    def deviation(self, check: str, engine: str) -> KnownDeviation | None:
        """Return the known deviation of a check on an engine, if there is one."""
        found = (d for d in self.known_deviations if check in d.checks and d.engine == engine)
        return next(found, None)

    def _build(
        self,
        canonical: Canonical,
        engine: str,
        settings: Settings,
        where: str,
        loss: dict[str, Any] | None = None,
    ) -> Scenario:
        wire = canonical.link.model_dump(mode="json")
        link = {
            "id": "wire",
            "a": "s0",
            "b": "d0",
            "rate_bps": wire["rate_bps"],
            "delay_s": wire["delay_s"],
            "queue_ab": wire["queue"],
            "queue_ba": {"kind": "droptail", "limit_packets": 1000},
            "loss_ab": loss or wire["loss"],
        }
        document = {
            "duration_s": canonical.duration_s,
            "sampling_interval_s": canonical.sampling_interval_s,
            "seed": self.seed,
            "nodes": ["s0", "d0"],
            "links": [link],
            "flows": [
                self._flow(canonical, name, engine, settings) | {"id": name}
                for name in canonical.flows
            ],
            "monitors": [{"link": "wire"}],
        }
        try:
            return Scenario.model_validate(document)
        except ValidationError as error:
            raise ValueError(f"{where}: {describe(error)}") from None

    def _flow(self, canonical: Canonical, name: str, engine: str, settings: Settings) -> Settings:
        """Return a flow: common settings, the engine's, the scenario's, the engine's there."""
        flow = canonical.flows[name]
        ends: Settings = {
            "source": "s0",
            "destination": "d0",
            "start_s": 0,
            "stop_s": canonical.duration_s,
        }
        if flow.get("kind") != "tcp":
            return ends | flow
        own = {str(key): variant.tcp for key, variant in self.engines.items()}
        here = {str(key): value for key, value in canonical.engines.items()}
        common = ends | self.tcp | own.get(engine, {})
        return common | flow | here.get(engine, {}) | settings


def recovery_check(variant: str, losses: str, quantity: str) -> str:
    """Return the id of the check of one quantity of a recovery."""
    return f"{variant}.{losses}.{quantity}"


def load_conformance(root: Path) -> Conformance:
    """Read configs/conformance.yaml.

    Raises
    ------
    InputError
        An unknown key, scenario or quantity, or a setting that no scenario has, by name.
    """
    return read_model(root / "configs" / "conformance.yaml", Conformance)
