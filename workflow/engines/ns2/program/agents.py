"""The sender of ns-2.35, as Debian builds it, for each kind of flow."""

from __future__ import annotations

from dataclasses import dataclass

from scenario import InputError, Tcp

SIMULATOR_VERSION = "2.35"
#: Windows and thresholds without a limit, in packets; more than any network here holds.
UNLIMITED_PACKETS = 1 << 20


@dataclass(frozen=True)
class Agent:
    """A sender of ns-2.

    Attributes
    ----------
    name : str
        Its class below Agent/TCP; empty for the base class, which is Tahoe.
    linux : str
        The congestion control module of Agent/TCP/Linux.
    syn : bool
        Whether packet 0 is a SYN of 40 bytes; else it is data.
    own_headers : bool
        Whether the agent adds header bytes itself.
    """

    name: str
    linux: str = ""
    syn: bool = True
    own_headers: bool = True

    @property
    def bare_first(self) -> bool:
        """Return whether packet 0 lacks its headers: ns-2 leaves them to the SYN."""
        return self.own_headers and not self.syn

    @property
    def title(self) -> str:
        """Return the agent as one would name it in Tcl."""
        path = f"Agent/TCP/{self.name}" if self.name else "Agent/TCP"
        return f"{path} {self.linux}".strip()


TAHOE = Agent("")
RENO = Agent("Reno")
NEWRENO = Agent("Newreno")
SACK = Agent("Sack1")
# ns-2's Vegas has its own output routine, which takes packet 0 for data and adds no headers.
# (syn_ still makes it wait for that packet's acknowledgement.)
VEGAS = Agent("Vegas", syn=False, own_headers=False)

#: Modules of Agent/TCP/Linux by the scenario's names. Its "westwood" is Westwood+.
LINUX = {
    "bic": "bic",
    "cubic": "cubic",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "linuxreno": "reno",
    "scalable": "scalable",
    "veno": "veno",
    "westwood_plus": "westwood",
    "yeah": "yeah",
}
NATIVE = {"tahoe": TAHOE, "reno": RENO, "vegas": VEGAS}


def agent_of(flow: Tcp) -> Agent:
    """Return the sender for a TCP flow."""
    control = flow.congestion_control
    if control == "newreno":
        return SACK if flow.sack else NEWRENO
    if control == "highspeed" and not flow.sack:
        return NEWRENO  # with windowOption_ 8, RFC 3649
    if control in NATIVE:
        return NATIVE[control]
    if control not in LINUX:
        raise InputError(f"ns2 has no congestion control {control!r}")
    return Agent("Linux", LINUX[control], syn=False)
