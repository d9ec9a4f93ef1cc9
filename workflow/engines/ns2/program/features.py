"""What ns-2.35 as Debian builds it can do, by the scenario's words; the rest is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fields import Fields, refuse, show

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
# ns-2's Vegas has an output routine of its own, which takes packet 0 for data and adds no headers.
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
NATIVE = ("newreno", "reno", "tahoe", "vegas")
CONGESTION_CONTROLS = tuple(sorted((*NATIVE, *LINUX)))
REFUSED = {
    "bbr": "not supported by ns2: ns-2.35 is older than it",
    "dctcp": "not supported by ns2: it needs ECN, which scenarios do not have",
    "ledbat": "not supported by ns2: Debian's ns-2.35 has no LEDBAT",
    "lp": "not supported by ns2: its module mistakes ns-2's clock for congestion on an idle path",
    "westwood": "not supported by ns2: its Linux module is Westwood+; use westwood_plus",
}
QUEUES = ("droptail", "pfifo", "red")


def agent_of(settings: dict[str, Any]) -> Agent:
    """Return the sender for a TCP flow whose settings were checked."""
    control, sack = settings["control"], settings["sack"]
    if control == "newreno":
        return SACK if sack else NEWRENO
    if control == "highspeed" and not sack:
        return NEWRENO  # with windowOption_ 8, RFC 3649
    native = {"tahoe": TAHOE, "reno": RENO, "vegas": VEGAS}
    if control in native:
        return native[control]
    return Agent("Linux", LINUX[control], syn=False)


def check_host(fields: Fields) -> None:
    """Refuse settings of hosts, which only a kernel has."""
    if fields.take("host", None) is not None:
        refuse(
            fields.path("host"),
            "given",
            "not supported by ns2: it has neither offloads nor a timer frequency; leave it out",
        )


def check_queue(kind: str, fields: Fields) -> None:
    """Refuse the queues that ns-2.35 does not have."""
    if kind not in QUEUES:
        refuse(
            fields.path("kind"),
            f"'{kind}'",
            f"not supported by ns2; use one of {', '.join(QUEUES)}",
        )


def check_tcp(settings: dict[str, Any], fields: Fields) -> None:
    """Refuse what the flow's agent cannot do."""
    control = settings["control"]
    if control in REFUSED:
        refuse(fields.path("congestion_control"), f"'{control}'", REFUSED[control])
    if control not in CONGESTION_CONTROLS:
        shown = f"'{control[:64]}'"
        refuse(
            fields.path("congestion_control"),
            shown if shown.isprintable() else show(shown),
            f"give one of {', '.join(CONGESTION_CONTROLS)}",
        )

    def no(key: str, value: str, why: str) -> None:
        refuse(fields.path(key), value, f"not supported by ns2: {why}")

    if settings["recovery"] == "prr":
        no("recovery", "'prr'", f"no agent has it, {control} included; use classic")
    if settings["ack_every"] > 2:
        no("delayed_ack_segments", str(settings["ack_every"]), "its sink acknowledges every 1 or 2")
    if control in ("tahoe", "reno", "vegas") and settings["sack"]:
        no("sack", "true", f"its {control} has no SACK; use newreno with sack true")
    agent = agent_of(settings)
    if agent.linux:
        if not settings["sack"]:
            no("sack", "false", f"{control} is a Linux agent, which needs SACK; use true")
        if not settings["limited_transmit"]:
            no("limited_transmit", "false", f"the Linux agent of {control} always does it")


def supports() -> dict[str, Any]:
    """Return what this engine supports, for --supports."""
    return {
        "engine": "ns2",
        "version": SIMULATOR_VERSION,
        "congestion_controls": list(CONGESTION_CONTROLS),
        "refused": REFUSED,
        "queues": list(QUEUES),
        "losses": ["random", "listed"],
        "features": [
            "tcp",
            "cbr",
            "sack",
            "timestamps",
            "delayed_ack",
            "limited_transmit",
            "maximum_window",
            "arbitrary_topology",
            "queue_monitors",
        ],
    }
