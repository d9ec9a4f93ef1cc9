"""An engine's program on any scenario, and how to read what it writes."""

import csv
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from replication.base.table import Row
from replication.engines.catalogue import ENGINES
from replication.engines.input_file import INPUT_FILE, write_inputs
from replication.study.scenario import Scenario

from measurements.scenarios import Part

ROOT = Path(__file__).parents[2]


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
    flows: dict[str, Row]
    series: list[Row]
    run: dict[str, Any]
    trace: list[Event]

    def number(self, flow: str, column: str) -> float:
        """Return a value of flows.csv."""
        return float(self.flows[flow][column])

    def packets(self, flow: str) -> list[int]:
        """Return how many packets were sent, received, dropped and are in flight."""
        names = ("sent", "received", "dropped", "in_flight")
        return [int(self.flows[flow][f"packets_{name}"]) for name in names]

    def samples(
        self, column: str, *, flow: str = "", link: str = "", after_s: float = 0
    ) -> list[float]:
        """Return a column of series.csv of a flow or of a monitored link, empty fields left out."""
        values = []
        for row in self.series:
            is_it = (row["flow"], row["link"]) == (flow, link)
            if is_it and row[column] and float(row["time_s"]) > after_s:
                values.append(float(row[column]))
        return values

    def queue(self, link: str = "wire:ab", after_s: float = 0) -> list[float]:
        """Return how many packets waited at each sample."""
        return self.samples("queue_packets", link=link, after_s=after_s)

    def events(self, *kinds: str) -> list[Event]:
        """Return the trace's events of these kinds."""
        return [event for event in self.trace if event.event in kinds]

    def files(self) -> dict[str, bytes]:
        """Return the bytes of all files of the run."""
        return {path.name: path.read_bytes() for path in sorted(self.directory.iterdir())}


def read_result(output: Path, trace: Path | None = None) -> Result:
    """Read back what a run wrote."""
    events = [_event(row) for row in (_rows(trace) if trace else [])]
    flows = {row["flow"]: row for row in _rows(output / "flows.csv")}
    run = json.loads((output / "run.json").read_text())
    return Result(output, flows, _rows(output / "series.csv"), run, events)


def _event(row: Row) -> Event:
    return Event(
        time_s=float(row["time_s"]),
        flow=row["flow"],
        event=row["event"],
        sequence=int(row["sequence"]),
        cwnd=int(row["cwnd_bytes"]),
        ssthresh=int(row["ssthresh_bytes"]) if row["ssthresh_bytes"] else None,
    )


def _rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def mean(values: Sequence[float]) -> float:
    """Return the mean of samples that must exist."""
    assert values
    return sum(values) / len(values)


def write_input(folder: Path, engine: str, scenario: Part) -> Path:
    """Write a scenario and its input file into a folder; return the path of the input file."""
    write_inputs(folder, Scenario.model_validate(scenario), ENGINES[engine])
    return folder / INPUT_FILE


def program(engine: str) -> Path:
    """Return the program of an engine that `make engines` has built."""
    path = ENGINES[engine].program(ROOT, ROOT / "data/reproduced")
    assert path.is_file(), f"{path} is not built: run `make engines`"
    return path


@dataclass(frozen=True)
class Bench:
    """One engine with its program; each run has a new folder below `folder`."""

    name: str
    program: Path
    folder: Path

    def invoke(self, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        """Call the program with any arguments."""
        command = [str(self.program), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    def run(self, scenario: Part, *, trace: bool = False, **options: Any) -> Result:
        """Run a scenario and read back what was written."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        output, events = folder / "out", folder / "trace.csv"
        words = ["--input", write_input(folder, self.name, scenario), "--output", output]
        if trace:
            words += ["--trace", events]
        done = self.invoke(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return read_result(output, events if trace else None)
