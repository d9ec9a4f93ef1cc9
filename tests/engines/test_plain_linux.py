"""The same experiment typed by hand and as a scenario, on one kernel: the same at every sample.

By hand: `ip netns`, `ip link`, `tc`, and a sender and a receiver that only connect and write
(`plain/linux.c`), everything else as the kernel has it. What a scenario cannot have is set by
hand too: ARP is off and each segment is a packet. Times are equal but for the clock's cost (a
process pays 256 ns of virtual time each time it reads it, and the two do not read it alike), so
what is compared is TCP's state every 100 ms, retransmissions, drops and bytes: all exactly. BBR is
left out: it draws random numbers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engines.engine_bench import Run
from tests.engines.engine_scenarios import Json, droptail, linux_tcp, pfifo, single_link

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "workflow" / "engines" / "linux"
START_NS = 300 * 10**9  # START_NS of guest/common.h: ticks must fall alike
SAMPLE_NS = 10**8
#: The kernel's own settings in the scenario's words. Half of tcp_rmem's 6 MiB is window.
SCENARIO: Json = {
    "segment_bytes": 1448,
    "timestamps": True,
    "sack": True,
    "initial_window_segments": 10,
    "delayed_ack_segments": 2,
    "delayed_ack_timeout_s": 0.04,
    "minimum_rto_s": 0.2,
    "maximum_window_bytes": 3 << 20,
}
#: A machine with more memory than the guest has this; the guest's would be less.
TYPED = ("write b /proc/sys/net/ipv4/tcp_rmem 4096 131072 6291456",)
#: Ends of three veths, and the way of data; each node, device and address.
VETHS = (("a", "a0", "r", "r0"), ("r", "r1", "q", "q1"), ("q", "q0", "b", "b0"))
ADDRESSES = {
    ("a", "a0"): "10.1.0.1/24",
    ("r", "r0"): "10.1.0.2/24",
    ("r", "r1"): "10.2.0.1/24",
    ("q", "q1"): "10.2.0.2/24",
    ("q", "q0"): "10.3.0.2/24",
    ("b", "b0"): "10.3.0.1/24",
}
GATEWAYS = {"a": "10.1.0.2", "r": "10.2.0.2", "q": "10.2.0.1", "b": "10.3.0.2"}


class State(NamedTuple):
    """A sender at a sampling time: window and threshold in segments, and all it sent again."""

    cwnd: int
    ssthresh: int
    retransmissions: int


class Outcome(NamedTuple):
    """What a run by hand gave."""

    states: list[State]
    received_bytes: int
    dropped: int


Machine = Callable[[list[str]], str]


@pytest.fixture(scope="session")
def machine(linux_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a function that does what a list of commands says on the engine's kernel."""
    sys.path[:0] = [str(ENGINE / "launcher"), str(ENGINE.parent / "common")]
    try:
        from archive import archive
        from machine import Boot, run_machine
    finally:
        del sys.path[:2]
    folder = tmp_path_factory.mktemp("plain")
    source = Path(__file__).parent / "plain" / "linux.c"
    subprocess.check_call(["gcc", "-O2", "-static", "-s", "-o", folder / "init", source])
    files = {"init": (folder / "init").read_bytes()}
    for name in ("ip", "tc"):
        program = shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")
        if program is None:
            pytest.fail(f"there is no {name}: install Debian's package iproute2")
        files[name] = Path(program).read_bytes()
        for library in re.findall(r"(/\S+)", subprocess.check_output(["ldd", program], text=True)):
            path = Path(library)
            files["ld.so" if path.name.startswith("ld-") else path.name] = path.read_bytes()
    (folder / "initrd").write_bytes(archive(files, console=True))
    (folder / "linux").symlink_to(linux_program.parent / "linux")

    def run(commands: list[str]) -> str:
        boot = Boot(plan="\n".join(commands) + "\n", timer_hz=250, seed=1, words=[])
        text: str = run_machine(folder, boot, folder)
        assert "failed" not in text, text
        return text

    return run


def network(rate_bps: float, delay_s: float, queue: str, burst: int) -> list[str]:
    """Return what a person types for a - r - q - b: a bottleneck and a delay each way."""
    typed = [f"ip netns add {node}" for node in GATEWAYS]
    for left, near, right, far in VETHS:
        typed.append(f"ip -n {left} link add {near} type veth peer name {far} netns {right}")
        for node, device in ((left, near), (right, far)):
            typed.append(f"ip -n {node} link set {device} gso_max_segs 1 arp off")
            typed.append(f"ip -n {node} link set {device} address 02:00:00:00:00:01 up")
    for (node, device), address in ADDRESSES.items():
        typed.append(f"ip -n {node} address add {address} dev {device}")
    typed += [f"ip -n {node} route add default via {to}" for node, to in GATEWAYS.items()]
    typed += [f"write {node} /proc/sys/net/ipv4/ip_forward 1" for node in "rq"]
    size = "stab overhead -14 linklayer ethernet"  # tc counts Ethernet headers, a scenario IP bytes
    for node, device, discipline, room in (
        ("r", "r1", queue, burst),
        ("q", "q1", "pfifo limit 1000", 1),
    ):
        tc = f"tc -n {node}"
        shape = f"htb rate {rate_bps:.0f}bit burst {room} cburst {room} quantum 200000"
        typed.append(f"{tc} qdisc add dev {device} {size} root handle 1: htb default 1")
        typed.append(f"{tc} class add dev {device} parent 1: classid 1:1 {shape}")
        typed.append(f"{tc} qdisc add dev {device} parent 1:1 handle 2: {discipline}")
    for node, device in (("q", "q0"), ("r", "r0")):
        netem = f"netem delay {delay_s * 1e3:g}ms rate {rate_bps:.0f}bit limit 100000"
        typed.append(f"tc -n {node} qdisc add dev {device} {size} root handle 1: {netem}")
    return typed


def by_hand(
    machine: Machine,
    control: str,
    queue: str,
    *,
    burst: int = 1,
    typed: tuple[str, ...] = TYPED,
    rate_bps: float = 1e7,
    delay_s: float = 0.02,
    duration_s: int = 5,
) -> Outcome:
    """Run an experiment typed by hand."""
    text = machine(
        [
            *network(rate_bps, delay_s, queue, burst),
            *typed,
            f"watch {START_NS + SAMPLE_NS} {SAMPLE_NS}",
            "receive b 5001",
            f"send a 10.3.0.1 5001 {control} {START_NS}",
            f"until {START_NS + duration_s * 10**9 + 1000}",
            "tc -n r -s qdisc show dev r1",
        ]
    )
    rows = [line.split() for line in text.splitlines()]
    states = [
        State(int(row[3]), int(row[4]) if int(row[4]) < 2**31 - 1 else 0, int(row[5]))
        for row in rows
        if row[:1] == ["sender"]
    ]
    received = [int(row[6]) for row in rows if row[:1] == ["receiver"]][-1]
    dropped = int(re.findall(r"dropped (\d+)", text)[0])
    return Outcome(states, received, dropped)


def as_scenario(
    run: Run,
    control: str,
    queue: Json,
    *,
    rate_bps: float = 1e7,
    delay_s: float = 0.02,
    duration_s: int = 5,
    **changes: object,
) -> Outcome:
    """Run the same experiment as a scenario."""
    flow = linux_tcp("t", control, **SCENARIO | changes)
    result = run(
        single_link([flow], rate_bps=rate_bps, delay_s=delay_s, duration_s=duration_s, queue=queue)
    )
    states, again = [], 0
    for row in result.series:
        if row["flow"] == "t":
            again += int(row["retransmissions"])
            cwnd, ssthresh = (int(row[f"{what}_bytes"] or 0) for what in ("cwnd", "ssthresh"))
            states.append(State(cwnd // 1448, ssthresh // 1448, again))
    received = round(result.number("t", "goodput_bps") * duration_s / 8)
    return Outcome(states, received, int(result.number("t", "packets_dropped")))


#: The kernel's name, the scenario's.
CONTROLS = {"reno": "linuxreno", "cubic": "cubic", "vegas": "vegas", "westwood": "westwood_plus"}
CONTROLS |= {"highspeed": "highspeed", "illinois": "illinois", "htcp": "htcp", "veno": "veno"}
QUEUES: dict[str, tuple[Json, str]] = {
    "droptail": (droptail(50), "pfifo limit 50"),
    "bytes": ({"kind": "droptail", "limit_bytes": 60000}, "bfifo limit 60000"),
    "codel": (
        {"kind": "codel", "limit_packets": 1000, "target_s": 0.005, "interval_s": 0.1},
        "codel limit 1000 target 5ms interval 100ms",
    ),
    "fq_codel": (
        {"kind": "fq_codel", "limit_packets": 1000, "target_s": 0.005, "interval_s": 0.1},
        "fq_codel limit 1000 target 5ms interval 100ms quantum 1514 noecn",
    ),
    "cake": (
        {"kind": "cake", "target_s": 0.005, "interval_s": 0.1},
        "cake unlimited rtt 100ms memlimit 4194304 no-split-gso",
    ),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_every_congestion_control_is_as_typed_by_hand(
    run_linux: Run, machine: Machine, control: str
) -> None:
    ours = as_scenario(run_linux, CONTROLS[control], pfifo(50))
    assert ours == by_hand(machine, control, "pfifo limit 50", burst=1500)


@pytest.mark.parametrize("queue", QUEUES)
def test_every_queue_is_as_typed_by_hand(run_linux: Run, machine: Machine, queue: str) -> None:
    ours, typed = QUEUES[queue]
    burst = 1 if queue in ("droptail", "bytes") else 1500
    assert as_scenario(run_linux, "linuxreno", ours) == by_hand(machine, "reno", typed, burst=burst)


def readme_rows() -> dict[str, str]:
    """Return what the engine's README says of defaults: names, and Linux's own value."""
    section = (ENGINE / "README.md").read_text().partition("## Defaults that are changed\n")[2]
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", section, re.MULTILINE)
    return {name: own for names, own in rows for name in re.findall(r"`([^`]+)`", names)}


def test_the_readme_names_whatever_the_guest_sets() -> None:
    names = ("network.c", "queue.c", "socket.c", "main.c", "plan.c", "tap.c", "drops.c")
    code = {name: (ENGINE / "guest" / name).read_text() for name in names}
    found = set(re.findall(r"/proc/sys/([\w/]+)", "".join(code.values())))
    found |= set(
        re.findall(r"\b(?:RTAX|IFLA_GSO)_\w+|IFF_NOARP|IFLA_(?:MTU|ADDRESS)", code["network.c"])
    )
    found |= set(
        re.findall(
            r"TCA_(?:HTB|NETEM|RED|CODEL|FQ_CODEL|PIE|FQ_PIE|CAKE)_\w+|TCA_STAB\b", code["queue.c"]
        )
    )
    found |= set(re.findall(r"\b(?:SO|TCP)_[A-Z_]+\b", code["socket.c"])) - {"TCP_INFO"}
    assert found == set(readme_rows())


def test_the_readme_states_sysctls_as_they_are(machine: Machine) -> None:
    own = {name: value for name, value in readme_rows().items() if name.startswith("net/")}
    text = machine(["ip netns add x", *(f"show x /proc/sys/{name}" for name in own)])
    shown = dict(re.findall(r"^shown /proc/sys/(\S+) (.*)$", text, re.MULTILINE))
    assert set(shown) == set(own)
    for name, value in own.items():
        numbers = value.partition(" (")[0].split()
        assert shown[name].split()[: len(numbers)] == numbers, name
