"""ns-2's agents and queues behave as in a plain script with ns-2's defaults.

`ns2_plain.tcl` is the script, and the adapter runs the same experiment as a scenario. The tests
compare every packet and, at one time, every variable of every agent and queue.
"""

import math
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from measurements.bench import Result, read_result, write_input
from measurements.scenarios import cbr, document, droptail, link, pfifo, red, tcp

from tests.workflow.project import ROOT

HERE = Path(__file__).parent
README = ROOT / "workflow/engines/ns2/README.md"
TEMPLATE = ROOT / "configs/templates/ns2.yaml"
#: Senders of ns-2 and sinks, by the name of what they do.
AGENTS = {
    "tahoe": ("TCP", "TCPSink"),
    "reno": ("TCP/Reno", "TCPSink"),
    "newreno": ("TCP/Newreno", "TCPSink"),
    "sack": ("TCP/Sack1", "TCPSink/Sack1"),
    "vegas": ("TCP/Vegas", "TCPSink"),
    "cubic": ("TCP/Linux", "TCPSink/Sack1"),
}
#: The wrapper that replaces `ns` when the adapter calls it, and keeps its events.
WRAPPER = """#!/bin/sh
{ns} {probe} "$KEPT/values" "$VALUES_AT" "$1" "$2" "$KEPT/events" "$4" && cat "$KEPT/events" > "$3"
"""
#: The window of a script that sets none, in packets.
DEFAULT_WINDOW = 20
#: Settings of the scripts that differ from a scenario: flow ids, and UDP's largest packet.
NAMES = {"fid_", "class_"}
KEYS = {("Agent/UDP", "packetSize_"): ("1000", "210")}  # packet_bytes
#: What ns-2 computes from other variables: the timer's in ticks, RED's thresholds in bytes.
DERIVED = {"rttvar_", "thresh_queue_", "maxthresh_queue_"}


class Queue(NamedTuple):
    """The queue from n2 to n3: in Tcl, and in a scenario."""

    kind: str
    settings: str
    scenario: dict


def default_red(low, high, **changes):
    """Return RED in a scenario with ns-2's defaults except the thresholds."""
    settings = {
        "limit_packets": 50,
        "queue_weight": 1 - math.exp(-1 / 2500),
        "mean_packet_bytes": 500,
        "gentle": True,
        "byte_mode": True,
        "wait": True,
    }
    return red(low, high) | settings | changes


#: ns-2's limit_ is 50, which 49 waiting packets reach.
DROPTAIL = Queue("DropTail", "", droptail(49))
#: The thresholds that ns-2 computes for 10 Mbit/s and 10 ms.
RED = Queue("RED", "", default_red(6.25, 18.75))


class Experiment(NamedTuple):
    """One run of ns2_plain.tcl, whose header has the network."""

    agent: str
    window: int = 100
    queue: Queue = DROPTAIL
    cbr_mbps: int = 0
    duration_s: float = 6
    #: When to write the variables; 0 means the end.
    values_at_s: float = 0
    #: Keys that are left out.
    left_out: tuple[str, ...] = ()
    delayed: bool = False

    def words(self, trace, values, at_s):
        """Return the arguments of ns2_plain.tcl."""
        agent, sink = AGENTS[self.agent]
        return [
            trace,
            values,
            at_s,
            "7",
            agent,
            sink + ("/DelAck" if self.delayed else ""),
            "" if self.window == DEFAULT_WINDOW else f"window_ {self.window}",
            self.queue.kind,
            self.queue.settings,
            str(self.cbr_mbps),
            str(self.duration_s),
        ]

    def flow(self):
        """Return the TCP flow in the terms of a scenario."""
        # ns-2's packetSize_ is 1000: the segment, but for Vegas the whole packet.
        segment = 960 if self.agent == "vegas" else 1000
        control = "newreno" if self.agent == "sack" else self.agent
        flow = tcp("t", control, source="n1", destination="n4", start_s=1, segment_bytes=segment)
        flow |= {"initial_window_segments": 2, "minimum_rto_s": 0.2}
        flow |= {"delayed_ack_segments": 2} if self.delayed else {}
        flow |= {"sack": True} if "Sack1" in AGENTS[self.agent][1] else {}
        flow |= {"delayed_ack_timeout_s": 0.1} if self.delayed else {}
        window = self.window * segment
        flow |= {"maximum_window_bytes": window, "initial_ssthresh_bytes": window}
        flow |= {"clock_granularity_s": 0.01, "limited_transmit": True}
        vegas = {"alpha": 1, "beta": 3, "gamma": 1}
        flow |= {f"vegas_{name}_packets": value for name, value in vegas.items()}
        return self.without(flow)

    def without(self, part):
        """Return a part of the scenario without the keys that are left out."""
        return {key: value for key, value in part.items() if key not in self.left_out}

    def scenario(self):
        """Return the same in the terms of a scenario."""
        load = []
        if self.cbr_mbps:
            load = [cbr("c", self.cbr_mbps * 1e6, source="n2", destination="n3", packet_bytes=210)]
        back = RED if self.queue.kind == "RED" else DROPTAIL
        queues = {"queue_ab": self.queue.scenario, "queue_ba": back.scenario}
        queues = {way: self.without(queue) for way, queue in queues.items()}
        access = {"queue_ab": droptail(49), "queue_ba": droptail(49)}
        links = [
            link("n2_n3", "n2", "n3", 1e7, 0.01, **queues),
            link("n1_n2", "n1", "n2", 1e7, 0.01, **access),
            link("n3_n4", "n3", "n4", 1e7, 0.01, **access),
        ]
        run = {"duration_s": self.duration_s, "sampling_interval_s": 0.01, "seed": 7}
        return document([f"n{i}" for i in range(1, 7)], links, [*load, self.flow()], **run)


class BothRuns(NamedTuple):
    """Results of both; packets by outcome, each with time, number and size."""

    plain: dict
    adapted: dict
    plain_values: dict
    adapted_values: dict
    result: Result

    def changed(self):
        """Return the variables whose value differs in the adapter, with both values."""
        both = self.plain_values.keys() & self.adapted_values.keys()
        pairs = {key: (self.plain_values[key], self.adapted_values[key]) for key in both}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


@pytest.fixture
def run_both(ns2_program, tmp_path):
    """Return a function that runs an experiment as a plain script and by the adapter."""

    def run(experiment):
        ns = subprocess.check_output(["which", "ns"], text=True).strip()
        trace, values = tmp_path / "plain.tr", tmp_path / "plain.values"
        at_s = repr(experiment.values_at_s or experiment.duration_s - 1e-6)
        words = experiment.words(trace, values, at_s)
        subprocess.run([ns, HERE / "ns2_plain.tcl", *words], check=True)
        wrapper = tmp_path / "bin" / "ns"
        wrapper.parent.mkdir()
        wrapper.write_text(WRAPPER.format(ns=ns, probe=HERE / "ns2_probe.tcl"))
        wrapper.chmod(0o755)
        given = write_input(tmp_path, "ns2", experiment.scenario())
        path = f"{wrapper.parent}:{os.environ['PATH']}"
        surroundings = os.environ | {"PATH": path, "KEPT": str(tmp_path), "VALUES_AT": at_s}
        words = [ns2_program, "--input", given, "--output", tmp_path / "out"]
        subprocess.run(words, check=True, env=surroundings)
        packets = read_trace(trace), read_events(tmp_path / "events")
        read = (read_values(path) for path in (values, tmp_path / "values"))
        return BothRuns(*packets, *read, read_result(tmp_path / "out"))

    return run


def read_trace(path):
    """Return the packets of ns-2's trace."""
    hosts = {"tcp +": "0", "tcp r": "3", "ack r": "0", "cbr +": "1", "cbr r": "2"}
    packets_by_name = defaultdict(list)
    for line in path.read_text().splitlines():
        what, time, start, end, kind, size, *_, number, _uid = line.split()
        name = f"{kind} {what}"
        if what == "d" or hosts.get(name) == (start if what == "+" else end):
            packets_by_name[name].append((float(time), int(number), int(size)))
    return packets_by_name


def read_events(path):
    """Return packets of the adapter's events, until the end of the run."""
    packets_by_name = defaultdict(list)
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "E":
            break
        if words[0] in ("+", "r", "h", "d"):
            what = "r" if words[0] == "h" else words[0]
            packet = (float(words[1]), int(words[10]), int(words[5]))
            packets_by_name[f"{words[4]} {what}"].append(packet)
    return packets_by_name


def read_values(path):
    """Return what write_values wrote: values by object and variable."""
    split = (line.split(maxsplit=2) for line in path.read_text().splitlines())
    return {(words[0], words[1]): one_form(*words[2:]) for words in split}


def one_form(text=""):
    """Return a truth value as 0 or 1, and a number without the noise of its last digits."""
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text, text)):.12g}"
    except ValueError:
        return text


def read_table(heading):
    """Return the cells of the README's first table after a heading below its defaults."""
    text = README.read_text().partition("### Defaults")[2].partition(heading)[2]
    table = re.match(r"[^|]*((?:\|.*\n)+)", text)
    assert table, f"the README has no table under {heading!r}"
    lines = [line.strip("|").split("|") for line in table[1].splitlines()[2:]]
    return [[cell.strip().strip("`") for cell in cells] for cells in lines]


def changes_of(both, rows):
    """Return what rows of class, variable, ns-2's value and ours say of the objects of a run."""
    changes = {}
    for kind, variable, plain_value, adapted_value in rows:
        for name in {name for name, _ in both.adapted_values}:
            if name == kind or name.startswith((f"{kind}/", f"{kind}:")):
                # A value may be that of another variable.
                value = both.plain_values.get((name, plain_value), one_form(plain_value))
                changes[name, variable] = value, one_form(adapted_value)
    return changes


ALWAYS = [row[:4] for row in read_table("two differ")]
BY_KEY = read_table("left out")


def check_equal(both):
    """Check that the adapter's run has exactly the packets of the plain run."""
    assert both.plain.keys() == both.adapted.keys()
    for name, packets in both.plain.items():
        assert sorted(packets) == sorted(both.adapted[name]), name


def check_values(both):
    """Check that at the end every variable is ns-2's, except those that the README lists."""
    changed = both.changed().items()
    different = {
        key: pair for key, pair in changed if key[1] not in NAMES and KEYS.get(key) != pair
    }
    assert different == changes_of(both, ALWAYS)


#: Every agent alone and with a load that makes it lose packets, through either queue.
NETWORKS = [{"window": DEFAULT_WINDOW}, {"cbr_mbps": 8}, {"cbr_mbps": 8, "queue": RED}]
DEFAULTS = []
for _agent in AGENTS:
    if _agent != "cubic":
        DEFAULTS += [Experiment(_agent, **network) for network in NETWORKS]
#: A course's public experiment: CBR of 1 to 10 Mbit/s and Vegas.
COURSE = [Experiment("vegas", cbr_mbps=load, duration_s=10) for load in range(1, 11)]


@pytest.mark.parametrize("experiment", DEFAULTS + COURSE)
def test_each_agent_behaves_as_in_a_plain_script(run_both, experiment):
    both = run_both(experiment)
    check_equal(both)
    check_values(both)
    dropped = len(both.plain["tcp d"])
    assert both.result.number("t", "packets_dropped") == dropped
    assert (dropped > 0) == (experiment.cbr_mbps >= 8)
    # Every agent but Vegas sends a SYN, of headers alone.
    bits = 8 * sum(size for _, _, size in both.plain["tcp r"] if size > 40)
    seconds = experiment.duration_s - 1
    assert both.result.number("t", "throughput_bps") == pytest.approx(bits / seconds, rel=1e-12)


@pytest.mark.parametrize("keys", [{row[0]} for row in BY_KEY], ids=str)
def test_leaving_out_a_key_changes_the_values_that_the_readme_lists(run_both, keys):
    at_start = {"queue": RED, "values_at_s": 1.000001, "duration_s": 1.1}
    bare = Experiment("vegas", DEFAULT_WINDOW, delayed=True, left_out=tuple(keys), **at_start)
    both = run_both(bare)
    changed = {key: pair for key, pair in both.changed().items() if key[1] not in DERIVED}
    rows = [row[1:] for row in BY_KEY if row[0] in keys]
    assert changed == changes_of(both, ALWAYS + rows)


def test_the_template_has_the_defaults_of_ns2(tmp_path):
    line = r"^ +(\w+): (\S+) # (Agent/\S+) (\w+_)$"
    rows = re.findall(line, TEMPLATE.read_text(), re.MULTILINE)
    script = tmp_path / "defaults.tcl"
    shown = [f"puts [[new {kind}] set {name}]\n" for _, _, kind, name in rows]
    script.write_text("new Simulator\n" + "".join(shown))
    values = subprocess.check_output(["ns", script], text=True).split()
    stated = [one_form(value) for _, value, _, _ in rows]
    assert stated == [one_form(value) for value in values]
    # It has every key whose default is not ns-2's; windows and RED are explained there.
    flow_keys = {row[0] for row in BY_KEY if row[1].startswith("Agent")}
    explained = {"maximum_window_bytes", "initial_ssthresh_bytes"}
    assert flow_keys - explained <= {key for key, *_ in rows}


def test_an_agent_with_linux_code_sends_a_first_window_of_data(run_both):
    both = run_both(Experiment("cubic", values_at_s=0.5))
    # ns-2's SYN does not wait for an answer: it replaces a segment.
    assert both.plain["tcp +"][:2] == [(1, 0, 40), (1, 1, 1040)]
    assert both.adapted["tcp +"][:2] == [(1, 0, 1000), (1, 1, 1040)]
    check_values(both)


#: Full queues, and the most packets that may wait where the limit is in packets. Where no limit_ is
#: set it is ns-2's 50.
BYTES = "queue_in_bytes_ true mean_pktsize_ 210"
FAR = "thresh_ 1000 maxthresh_ 2000"
IN_PACKETS = f"{FAR} bytes_ false queue_in_bytes_ false"
FULL = [
    (DROPTAIL, 49),
    (Queue("DropTail", "", pfifo(39) | {"device_queue_packets": 10}), 49),
    (Queue("DropTail", BYTES, {"kind": "droptail", "limit_bytes": 10499}), None),
    (Queue("RED", IN_PACKETS, default_red(1000, 2000, byte_mode=False)), 50),
    (Queue("RED", FAR, default_red(1000, 2000)), None),
]


@pytest.mark.parametrize(("queue", "packets"), FULL)
def test_a_full_queue_holds_as_many_packets_as_in_a_plain_script(run_both, queue, packets):
    both = run_both(Experiment("tahoe", queue=queue, cbr_mbps=12, duration_s=3))
    check_equal(both)
    assert packets in (None, max(both.result.queue("n2_n3:ab")))
    drops = sum(both.result.samples("drops", link="n2_n3:ab"))
    assert drops == sum(len(p) for name, p in both.plain.items() if name.endswith(" d")) > 100
