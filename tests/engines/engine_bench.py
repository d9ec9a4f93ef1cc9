"""The engines in tests: where each differs, and its flows."""

from typing import NamedTuple

import measurements.bench
from measurements.scenarios import (
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

#: ns-2's agents that run modules of Linux, which always use SACK and limited transmit.
NS2_LINUX = {"bic", "cubic", "highspeed", "htcp", "hybla", "illinois", "linuxreno", "scalable"}
NS2_LINUX |= {"veno", "westwood_plus", "yeah"}


class Traits(NamedTuple):
    """Where an engine differs, as its README says."""

    #: Tolerance of a time: rounding, or the reading of a clock.
    tick_s: float
    red: dict
    #: Its queues other than FIFO and RED.
    managed: tuple[dict, ...]
    #: Its plain Reno, with the recovery of that time.
    control: str = "newreno"
    #: What a link adds to an IP packet.
    framing_bytes: int = 0

    @property
    def queues(self):
        """All queues of the engine."""
        fifo = (droptail(20), {"kind": "droptail", "limit_bytes": 20000}, pfifo(20))
        return (*fifo, self.red, *self.managed)


_DELAY = (codel(), codel(kind="fq_codel"), pie())
TRAITS = {
    "ns3": Traits(1e-9, red(5, 15), _DELAY, framing_bytes=2),
    "ns2": Traits(1e-6, red(5, 15), ()),
    "linux": Traits(5e-6, linux_red(5, 15), (*_DELAY, pie(kind="fq_pie"), cake()), "linuxreno"),
}
#: The engines that have `--trace`.
TRACED = ["ns3", "ns2"]


class Bench(measurements.bench.Bench):
    """An engine with the traits that tests rely on."""

    @property
    def traits(self):
        """Where the engine differs."""
        return TRAITS[self.name]

    def tcp(self, name, control="", **changes):
        """Return a TCP flow for the engine: its plain Reno, or `control`."""
        control = control or self.traits.control
        if self.name == "linux":
            return linux_tcp(name, control, **changes)
        if self.name == "ns2" and control in NS2_LINUX:
            changes = {"sack": True, "limited_transmit": True} | changes
        return tcp(name, control, **changes)

    def serialisation_s(self, ip_bytes, rate_bps):
        """Return the transmission time of an IP packet."""
        return 8 * (ip_bytes + self.traits.framing_bytes) / rate_bps
