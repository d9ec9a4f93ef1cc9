"""ns-2's agents and queues run as a plain script on ns-2's own defaults runs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replication.design.config import load_study

from tests.engines.ns2_plain import (
    AGENTS,
    Beside,
    Experiment,
    Queue,
    default_droptail,
    default_red,
    one_form,
    red_scenario,
    side_by_side,
)

Run = Callable[[Experiment], Beside]
ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "workflow" / "engines" / "ns2" / "README.md"
NATIVE = [name for name in AGENTS if name != "cubic"]
#: What the scripts set otherwise than a scenario: the ids of flows, and UDP's largest packet.
NAMES = {"fid_", "class_"}
KEYS = {("Agent/UDP", "packetSize_"): ("1000", "210")}  # packet_bytes
#: What ns-2 computes from other variables: the timer's in ticks, RED's thresholds in bytes.
DERIVED = {"rttvar_", "thresh_queue_", "maxthresh_queue_"}


@pytest.fixture
def beside(ns2_program: Path, tmp_path: Path) -> Run:
    """Return a function that runs an experiment as a plain script and by the adapter."""
    return lambda experiment: side_by_side(experiment, ns2_program, tmp_path)


def defaults(heading: str) -> list[list[str]]:
    """Return the rows of the table of the README under a sentence that has these words."""
    text = README.read_text().partition("### Defaults")[2].partition(heading)[2]
    rows = re.match(r"[^|]*((?:\|.*\n)+)", text)
    assert rows, f"the README has no table under {heading!r}"
    lines = rows[1].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def expected(rows: list[list[str]], names: set[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return changes of class, variable, ns-2's value and ours, for each object with a class."""
    found = {}
    for kind, variable, theirs, ours in rows:
        for name in names:
            if name == kind or name.startswith((f"{kind}/", f"{kind}:")):
                found[name, variable] = (one_form(theirs), one_form(ours))
    return found


def check_equal(both: Beside) -> None:
    """Check that every packet of the plain run is in the adapter's, and no other."""
    assert both.plain.keys() == both.adapted.keys()
    for name, packets in both.plain.items():
        assert sorted(packets) == sorted(both.adapted[name]), name


def check_values(both: Beside) -> None:
    """Check that at the end every variable is ns-2's, but for those that the README lists."""
    names = {name for name, _ in both.adapted_values}
    changed = both.changed().items()
    found = {key: pair for key, pair in changed if key[1] not in NAMES and KEYS.get(key) != pair}
    assert found == expected([row[:4] for row in defaults("two differ")], names)


NETWORKS: dict[str, dict[str, Any]] = {
    "no loss": {"window": 20},
    "droptail": {"cbr_mbps": 8},
    "red": {"cbr_mbps": 8, "queue": default_red()},
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("agent", NATIVE)
def test_an_agent_does_what_it_does_by_default(beside: Run, agent: str, network: str) -> None:
    both = beside(Experiment(agent, **NETWORKS[network]))
    check_equal(both)
    check_values(both)
    dropped = [name for name in both.plain if name.endswith(" d")]
    assert ("tcp d" in dropped) == (network != "no loss")
    assert (both.result.number("t", "retransmissions") > 0) == (network != "no loss")


@pytest.mark.parametrize("cbr_mbps", range(1, 11))
def test_vegas_gives_what_a_course_saw(beside: Run, cbr_mbps: int) -> None:
    # The public experiment: window 100, queues with limit_ 50, CBR of 1 to 10 Mbit/s.
    both = beside(Experiment("vegas", cbr_mbps=cbr_mbps, duration_s=10))
    check_equal(both)
    assert both.result.number("t", "packets_dropped") == len(both.plain.get("tcp d", []))
    bits = 8 * sum(size for _, _, size in both.plain["tcp r"])
    assert both.result.number("t", "throughput_bps") == pytest.approx(bits / 9, rel=1e-12)
    if cbr_mbps == 8:
        assert len(both.plain["tcp d"]) == 3


@pytest.mark.parametrize("agent", ["newreno", "vegas"])
@pytest.mark.parametrize("delayed", [False, True])
def test_keys_left_out_change_what_the_readme_says(beside: Run, agent: str, delayed: bool) -> None:
    both = beside(
        Experiment(agent, bare=True, delayed=delayed, queue=default_red(), values_at_s=1.000001)
    )
    names = {name for name, _ in both.adapted_values}
    changes = [row[1:] for row in defaults("left out")]
    always = [row[:4] for row in defaults("two differ")]
    found = {key: pair for key, pair in both.changed().items() if key[1] not in DERIVED}
    assert found == expected(changes + always, names)


def test_a_linux_agent_has_a_first_window_of_data(beside: Run) -> None:
    both = beside(Experiment("cubic", values_at_s=0.5))
    # ns-2's SYN does not wait for an answer: it takes the place of a segment.
    assert both.plain["tcp +"][:2] == [(1, 0, 40), (1, 1, 1040)]
    assert both.adapted["tcp +"][:2] == [(1, 0, 1000), (1, 1, 1040)]
    check_values(both)


#: Full queues, and the most packets or bytes that may wait. Where no limit_ is set it is ns-2's 50.
FULL: dict[str, tuple[Queue, int | None, range | None]] = {
    "packets": (default_droptail(), 49, None),
    "pfifo": (
        Queue(
            "DropTail",
            "",
            {"kind": "pfifo", "limit_packets": 39, "device_queue_packets": 10},
        ),
        49,
        None,
    ),
    "bytes": (
        Queue(
            "DropTail",
            "queue_in_bytes_ true mean_pktsize_ 210",
            {"kind": "droptail", "limit_bytes": 10499},
        ),
        None,
        range(10499 - 210, 10500),
    ),
    "red": (
        Queue(
            "RED",
            "thresh_ 1000 maxthresh_ 2000 bytes_ false queue_in_bytes_ false",
            red_scenario(1000, 2000, byte_mode=False),
        ),
        50,
        None,
    ),
    # A packet is taken whole as long as less than the limit waits.
    "red in bytes": (
        Queue("RED", "thresh_ 1000 maxthresh_ 2000", red_scenario(1000, 2000)),
        None,
        range(25000, 25000 + 1040),
    ),
}


@pytest.mark.parametrize("kind", FULL)
def test_a_full_queue_holds_as_many(beside: Run, kind: str) -> None:
    queue, packets, size = FULL[kind]
    both = beside(Experiment("tahoe", queue=queue, cbr_mbps=12, duration_s=3))
    check_equal(both)
    if packets:
        sampled = max(both.result.samples("queue_packets", link="n2_n3:ab"))
        assert (both.most_packets, sampled) == (packets, packets)
    if size:
        assert both.most_bytes in size
    drops = sum(both.result.samples("drops", link="n2_n3:ab"))
    assert drops == sum(len(p) for name, p in both.plain.items() if name.endswith(" d")) > 100


@pytest.mark.parametrize("study", ["liang_shen", "nishitha"])
def test_the_papers_of_ns2_are_given_its_default_limit(study: str) -> None:
    parameters = load_study(ROOT, study).parameters
    assert parameters["queue_packets"].value == FULL["packets"][1]
    if "red_queue_packets" in parameters:
        assert parameters["red_queue_packets"].value == FULL["red"][1]
