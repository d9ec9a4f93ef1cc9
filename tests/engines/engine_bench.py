"""The engines as the common tests see them: programs, and how each is told the same experiment."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.catalogue import ENGINES
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.study.scenario import Scenario

from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import (
    Json,
    cake,
    codel,
    droptail,
    linux_red,
    linux_tcp,
    pfifo,
    pie,
    red,
    tcp,
)

Invoke = Callable[..., subprocess.CompletedProcess[str]]
Run = Callable[..., Result]
#: ns-2's agents that run modules of Linux, which always use SACK and limited transmit.
NS2_LINUX = {"bic", "cubic", "highspeed", "htcp", "hybla", "illinois", "linuxreno", "scalable"}
NS2_LINUX |= {"veno", "westwood_plus", "yeah"}


def write_plan(folder: Path, engine: str, scenario: Json) -> Path:
    """Write a scenario and its plan for an engine into a folder; return the plan's path."""
    write_inputs(folder, Scenario.model_validate(scenario), ENGINES[engine])
    return folder / PLAN_FILE


@dataclass(frozen=True)
class Traits:
    """Where an engine differs, as its README says.

    Attributes
    ----------
    control
        Its plain Reno with the recovery of its time.
    framing_bytes
        What a link adds to an IP packet.
    tick_s
        How far a time may be off: rounding, or the reading of a clock.
    least_window_segments
        The smallest window a flow may have.
    traced
        Whether `--trace` and listed losses are there.
    chance_free
        Whether the seed plays no part in a scenario without chance.
    filling
        Congestion controls that must fill a link.
    """

    control: str
    framing_bytes: int
    tick_s: float
    least_window_segments: int
    traced: bool
    chance_free: bool
    filling: tuple[str, ...]
    queues: tuple[Json, ...]
    red: Json
    initial_ssthresh: bool = True


_PLAIN = (droptail(20), {"kind": "droptail", "limit_bytes": 20000}, pfifo(20))
_DELAY = (codel(), codel(kind="fq_codel"), pie())
TRAITS = {
    "ns3": Traits(
        control="newreno",
        framing_bytes=2,
        tick_s=1e-9,
        least_window_segments=1,
        traced=True,
        chance_free=True,
        filling=("newreno", "cubic", "reno", "tahoe", "vegas", "linuxreno"),
        queues=(*_PLAIN, red(5, 15), *_DELAY),
        red=red(5, 15),
    ),
    "ns2": Traits(
        control="newreno",
        framing_bytes=0,
        tick_s=1e-6,
        least_window_segments=1,
        traced=True,
        chance_free=True,
        filling=("newreno", "reno", "tahoe", "vegas", "cubic", "linuxreno", "highspeed"),
        queues=(*_PLAIN, red(5, 15)),
        red=red(5, 15),
    ),
    "linux": Traits(
        control="linuxreno",
        framing_bytes=0,
        tick_s=5e-6,
        least_window_segments=2,
        traced=False,
        chance_free=False,
        filling=("linuxreno", "cubic", "vegas", "westwood_plus", "htcp"),
        queues=(*_PLAIN, linux_red(5, 15), *_DELAY, pie(kind="fq_pie"), cake()),
        red=linux_red(5, 15),
        initial_ssthresh=False,
    ),
}
TRACED = [name for name, traits in TRAITS.items() if traits.traced]


@dataclass(frozen=True)
class Bench:
    """One engine with its program."""

    name: str
    program: Path
    invoke: Invoke
    run: Run

    @property
    def traits(self) -> Traits:
        """Where the engine differs."""
        return TRAITS[self.name]

    def tcp(self, name: str, control: str = "", **changes: Any) -> Json:
        """Return a TCP flow as the engine has it: its plain Reno, or `control`."""
        control = control or self.traits.control
        if self.name == "linux":
            return linux_tcp(name, control, **changes)
        if self.name == "ns2" and control in NS2_LINUX:
            changes = {"sack": True, "limited_transmit": True} | changes
        return tcp(name, control, **changes)

    def sack(self, control: str = "") -> Json:
        """Return the setting of SACK, which ns-2's native agents but NewReno lack."""
        lacks = self.name == "ns2" and control in ("tahoe", "reno", "vegas")
        return {} if lacks else {"sack": True}

    def serialisation_s(self, ip_bytes: int, rate_bps: float) -> float:
        """Return how long an IP packet takes to be sent."""
        return 8 * (ip_bytes + self.traits.framing_bytes) / rate_bps
