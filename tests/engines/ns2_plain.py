"""A plain ns-2 script and the adapter, side by side: packets and variables of both."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engines.engine_bench import write_plan
from tests.engines.engine_results import Result, read_result
from tests.engines.engine_scenarios import Json, cbr, droptail, link, tcp

HERE = Path(__file__).parent
#: Senders of ns-2 and sinks, by the name of what they do.
AGENTS = {
    "tahoe": ("TCP", "TCPSink"),
    "reno": ("TCP/Reno", "TCPSink"),
    "newreno": ("TCP/Newreno", "TCPSink"),
    "sack": ("TCP/Sack1", "TCPSink/Sack1"),
    "vegas": ("TCP/Vegas", "TCPSink"),
    "cubic": ("TCP/Linux", "TCPSink/Sack1"),
}
#: The wrapper that stands for `ns` when the adapter calls it: keeps the events that it makes.
WRAPPER = """#!/bin/sh
{ns} {probe} "$KEPT/values" "$VALUES_AT" "$1" "$2" "$KEPT/events" "$4" && cat "$KEPT/events" > "$3"
"""
Packets = dict[str, list[tuple[float, int, int]]]
Values = dict[tuple[str, str], str]


@dataclass(frozen=True)
class Queue:
    """The queue from n2 to n3: in Tcl, and in a scenario."""

    kind: str
    settings: str
    scenario: Json


def default_droptail() -> Queue:
    """Return DropTail with nothing set: ns-2's limit_ is 50, which 49 waiting packets reach."""
    return Queue("DropTail", "", droptail(49))


def default_red() -> Queue:
    """Return RED with nothing set: what ns-2 then computes for 10 Mbit/s and 10 ms."""
    return Queue("RED", "", red_scenario(6.25, 18.75))


def red_scenario(low: float, high: float, **changes: Any) -> Json:
    """Return RED in a scenario as ns-2's defaults have it, but for the thresholds."""
    return {
        "kind": "red",
        "limit_packets": 50,
        "minimum_threshold_packets": low,
        "maximum_threshold_packets": high,
        "queue_weight": 1 - math.exp(-1 / 2500),
        "maximum_probability": 0.1,
        "mean_packet_bytes": 500,
        "gentle": True,
        "byte_mode": True,
        "wait": True,
        **changes,
    }


@dataclass(frozen=True)
class Experiment:
    """One run of ns2_plain.tcl, whose header has the network."""

    agent: str
    window: int = 100
    queue: Queue = field(default_factory=default_droptail)
    cbr_mbps: int = 0
    duration_s: float = 6
    seed: int = 7
    #: When the variables are written.
    values_at_s: float = 0
    #: Whether keys that may be left out are.
    bare: bool = False
    delayed: bool = False

    @property
    def _values_at_s(self) -> float:
        return self.values_at_s or self.duration_s - 1e-6

    def words(self, trace: Path, values: Path) -> list[str]:
        """Return the arguments of ns2_plain.tcl."""
        agent, sink = AGENTS[self.agent]
        return [
            *(str(trace), str(values), repr(self._values_at_s), str(self.seed), agent),
            sink + ("/DelAck" if self.delayed else ""),
            "" if self.bare else f"window_ {self.window}",
            *(self.queue.kind, self.queue.settings, str(self.cbr_mbps), str(self.duration_s)),
        ]

    def scenario(self) -> Json:
        """Return the same in the terms of a scenario."""
        # ns-2's packetSize_ is 1000: the segment, but for Vegas the whole packet.
        segment = 960 if self.agent == "vegas" else 1000
        window = self.window * segment
        flow = tcp(
            "t",
            "newreno" if self.agent == "sack" else self.agent,
            source="n1",
            destination="n4",
            start_s=1,
            segment_bytes=segment,
            initial_window_segments=2,
            minimum_rto_s=0.2,
            initial_rto_s=3,
            delayed_ack_segments=2 if self.delayed else 1,
        )
        if "Sack1" in AGENTS[self.agent][1]:
            flow["sack"] = True
        if not self.bare:
            flow |= {"maximum_window_bytes": window, "initial_ssthresh_bytes": window}
            flow |= {"clock_granularity_s": 0.01, "limited_transmit": True}
            flow |= {"vegas_alpha_packets": 1, "vegas_beta_packets": 3, "vegas_gamma_packets": 1}
        load = []
        if self.cbr_mbps:
            load = [cbr("c", self.cbr_mbps * 1e6, source="n2", destination="n3", packet_bytes=210)]
        back = red_scenario(6.25, 18.75) if self.queue.kind == "RED" else droptail(49)
        queue = {"queue_ab": self.queue.scenario.copy(), "queue_ba": back}
        if self.bare:
            for way, key in itertools.product(queue, ("gentle", "wait", "byte_mode")):
                queue[way].pop(key, None)
        access = {"queue_ab": droptail(49), "queue_ba": droptail(49)}
        return {
            "schema_version": 1,
            "duration_s": self.duration_s,
            "sampling_interval_s": 0.01,
            "seed": self.seed,
            "nodes": ["n1", "n2", "n3", "n4", "n5", "n6"],
            "links": [
                link("n1_n2", "n1", "n2", 1e7, 0.01, **access),
                link("n2_n3", "n2", "n3", 1e7, 0.01, **queue),
                link("n3_n4", "n3", "n4", 1e7, 0.01, **access),
            ],
            "flows": [*load, flow],
            "monitors": [{"link": "n2_n3"}],
        }


@dataclass(frozen=True)
class Beside:
    """What both did; packets by what became of them, each with time, number and size."""

    plain: Packets
    adapted: Packets
    plain_values: Values
    adapted_values: Values
    #: Most that waited from n2 to n3 in the plain run.
    most_packets: int
    most_bytes: int
    result: Result

    def changed(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Return the variables of which the adapter has another value, with both values."""
        both = self.plain_values.keys() & self.adapted_values.keys()
        pairs = {key: (self.plain_values[key], self.adapted_values[key]) for key in both}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def side_by_side(experiment: Experiment, program: Path, folder: Path) -> Beside:
    """Run an experiment as a plain script and by the adapter."""
    ns = subprocess.check_output(["which", "ns"], text=True).strip()
    trace, values = folder / "plain.tr", folder / "plain.values"
    subprocess.run([ns, HERE / "ns2_plain.tcl", *experiment.words(trace, values)], check=True)
    wrapper = folder / "bin" / "ns"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(ns=ns, probe=HERE / "ns2_probe.tcl"))
    wrapper.chmod(0o755)
    path = write_plan(folder, "ns2", experiment.scenario())
    surroundings = os.environ | {
        "PATH": f"{wrapper.parent}:{os.environ['PATH']}",
        "KEPT": str(folder),
        "VALUES_AT": repr(experiment._values_at_s),
    }
    words = [program, "--plan", path, "--output", folder / "out"]
    subprocess.run(words, check=True, env=surroundings)
    plain, most_packets, most_bytes = read_trace(trace)
    return Beside(
        plain,
        read_events(folder / "events"),
        read_values(values),
        read_values(folder / "values"),
        most_packets,
        most_bytes,
        read_result(folder / "out", None),
    )


def read_trace(path: Path) -> tuple[Packets, int, int]:
    """Return packets of ns-2's own trace, and the most packets and bytes between n2 and n3."""
    hosts = {"tcp +": "0", "tcp r": "3", "ack r": "0", "cbr +": "1", "cbr r": "2"}
    found: Packets = defaultdict(list)
    waiting: list[int] = []
    most_packets = most_bytes = 0
    for line in path.read_text().splitlines():
        what, time, start, end, kind, size, *_, number, _uid = line.split()
        if (start, end) == ("1", "2") and what != "r":
            # What a full queue drops is written as arrived first: it is the last one then.
            if what == "d":
                waiting.pop()
            else:
                most_packets = max(most_packets, len(waiting))
                most_bytes = max(most_bytes, sum(waiting))
            if what == "+":
                waiting.append(int(size))
            elif what == "-":
                waiting.pop(0)
        name = f"{kind} {what}"
        if what == "d" or hosts.get(name) == (start if what == "+" else end):
            found[name].append((float(time), int(number), int(size)))
    return found, most_packets, most_bytes


def read_events(path: Path) -> Packets:
    """Return packets of the adapter's events, until the end of the run."""
    found: Packets = defaultdict(list)
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "E":
            break
        if words[0] in ("+", "r", "h", "d"):
            what = "r" if words[0] == "h" else words[0]
            packet = (float(words[1]), int(words[10]), int(words[5]))
            found[f"{words[4]} {what}"].append(packet)
    return found


def read_values(path: Path) -> Values:
    """Return what write_values wrote."""
    split = (line.split(maxsplit=2) for line in path.read_text().splitlines())
    return {(words[0], words[1]): one_form(*words[2:]) for words in split}


def one_form(text: str = "") -> str:
    """Return a truth value as 0 or 1, and a number without the noise of its last digits."""
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text, text)):.12g}"
    except ValueError:
        return text
