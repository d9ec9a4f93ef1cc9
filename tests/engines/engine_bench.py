"""The engines in tests: how to run an experiment on each, and how to read its results."""

import csv
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from replication.engines.catalogue import ENGINES
from replication.engines.input_file import INPUT_FILE, write_inputs
from replication.study.scenario import Scenario

from tests.engines.engine_scenarios import (
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


class Event(NamedTuple):
    """A row of the packet-level trace; cwnd and ssthresh in bytes."""

    time_s: float
    flow: str
    event: str
    sequence: int
    cwnd: int
    ssthresh: int | None


class Result(NamedTuple):
    """Files of one run."""

    directory: Path
    flows: dict[str, dict[str, str]]
    series: list[dict[str, str]]
    run: dict
    trace: list[Event]

    def number(self, flow, column):
        """Return a value of flows.csv."""
        return float(self.flows[flow][column])

    def packets(self, flow):
        """Return how many packets were sent, received, dropped and are in flight."""
        names = ("sent", "received", "dropped", "in_flight")
        return [int(self.flows[flow][f"packets_{name}"]) for name in names]

    def samples(self, column, *, flow="", link="", after_s=0):
        """Return a column of series.csv of a flow or of a monitored link, empty fields left out."""
        return [
            float(row[column])
            for row in self.series
            if (row["flow"], row["link"]) == (flow, link)
            and row[column]
            and float(row["time_s"]) > after_s
        ]

    def queue(self, link="wire:ab", after_s=0):
        """Return how many packets waited at each sample."""
        return self.samples("queue_packets", link=link, after_s=after_s)

    def events(self, *kinds):
        """Return the trace's events of these kinds."""
        return [event for event in self.trace if event.event in kinds]

    def files(self):
        """Return the bytes of all files of the run."""
        return {path.name: path.read_bytes() for path in sorted(self.directory.iterdir())}


def read_result(output, trace=None):
    """Read back what a run wrote."""
    events = [_event(row) for row in (_rows(trace) if trace else [])]
    flows = {row["flow"]: row for row in _rows(output / "flows.csv")}
    run = json.loads((output / "run.json").read_text())
    return Result(output, flows, _rows(output / "series.csv"), run, events)


def _event(row):
    columns = ("sequence", "cwnd_bytes", "ssthresh_bytes")
    numbers = (int(row[column]) if row[column] else None for column in columns)
    return Event(float(row["time_s"]), row["flow"], row["event"], *numbers)


def _rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def mean(values):
    """Return the mean of samples that must exist."""
    assert values
    return sum(values) / len(values)


def write_input(folder, engine, scenario):
    """Write a scenario and its input file into a folder; return the path of the input file."""
    write_inputs(folder, Scenario.model_validate(scenario), ENGINES[engine])
    return folder / INPUT_FILE


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


@dataclass(frozen=True)
class Bench:
    """One engine with its program; each run has a new folder below `folder`."""

    name: str
    program: Path
    folder: Path

    @property
    def traits(self):
        """Where the engine differs."""
        return TRAITS[self.name]

    def invoke(self, *words, **options):
        """Call the program with any arguments."""
        command = [str(self.program), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    def run(self, scenario, *, trace=False, **options):
        """Run a scenario and read back what was written."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        output, events = folder / "out", folder / "trace.csv"
        words = ["--input", write_input(folder, self.name, scenario), "--output", output]
        done = self.invoke(*words, *(["--trace", events] if trace else []), **options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return read_result(output, events if trace else None)

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
