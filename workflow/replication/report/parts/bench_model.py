"""What the bench measured: data/reproduced/bench.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from replication.study.errors import InputError, describe
from replication.study.files import read_text
from replication.study.model import Document
from replication.study.report_page import BENCH_PAGE

#: The module whose code, with all it imports, decides what is measured.
MODULE = "bench.bench"

Share = Annotated[float, Field(ge=0)]
Whole = Annotated[int, Field(ge=0)]


class Figure(Document):
    """One measured value beside its goal, which was set before anything was measured.

    `at_most` and `at_least` are the goal, in its unit; `how` says what was divided by what, or why
    there is no value.
    """

    id: str
    title: str
    value: float | None
    unit: str
    how: str
    at_most: float | None = None
    at_least: float | None = None

    @model_validator(mode="after")
    def _one_goal(self) -> Figure:
        if self.at_most is not None and self.at_least is not None:
            raise ValueError(f"figure {self.id}: give one of at_most and at_least, or neither")
        return self

    @property
    def met(self) -> bool | None:
        """Return whether the goal is met; None where none was set, or nothing was measured."""
        if self.value is None:
            return None
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def share_of_goal(self) -> float | None:
        """Return the value over its goal, or the goal over the value where more is better."""
        if not self.value:
            return None
        if self.at_most is not None:
            return self.value / self.at_most
        return None if self.at_least is None else self.at_least / self.value


class EngineCost(Document):
    """What one engine's program takes for the bench's dumbbell; `packets` crossed the bottleneck.

    `events` are null where the engine does not count them.
    """

    engine: str
    version: str
    scenario: str
    packets: Whole
    events: Whole | None
    cpu_s: Share

    @property
    def cpu_per_packet_s(self) -> float:
        """Return CPU seconds per packet that crossed the bottleneck."""
        return self.cpu_s / self.packets

    @property
    def events_per_s(self) -> float | None:
        """Return simulated events per second of CPU."""
        return None if self.events is None else self.events / self.cpu_s


class Memory(Document):
    """Peak resident size of one run; `varied` (duration_s or flows) is at `value`."""

    engine: str
    varied: str
    value: float
    peak_memory_bytes: Whole
    series_bytes: Whole


class Stage(Document):
    """A stage of a whole run, or a start of one of our programs; `jobs` is how many it had."""

    name: str
    jobs: Whole
    wall_s: Share
    how: str


class Alternative(Document):
    """One way to run the same scenarios, one after the other, on one core.

    `start_s` is the CPU time of a run of a hundredth of a second, in which next to nothing is
    simulated. `reason` says why nothing was measured; the numbers are null then.
    """

    name: str
    metrics: str
    scenarios: Whole
    packets: Whole | None = None
    cpu_s: Share | None = None
    wall_s: Share | None = None
    start_s: Share | None = None
    reason: str = ""

    @property
    def cpu_per_packet_s(self) -> float | None:
        """Return CPU seconds per packet that crossed the bottleneck, starts included."""
        return self.cpu_s / self.packets if self.cpu_s and self.packets else None


class Prediction(Document):
    """The cost model of an engine against the CPU time that its finished runs took.

    A factor is the larger of predicted and used over the smaller; `total_ratio` is the sum of what
    was predicted over the sum of what was used. `p90_factor_apart` leaves the median ratio out,
    which is how fast the machine and the build are; both null in what an earlier version measured.
    """

    engine: str
    study: str
    scenarios: Whole
    predicted_s: Share
    used_s: Share
    median_factor: Annotated[float, Field(ge=1)]
    p90_factor: Annotated[float, Field(ge=1)]
    p90_factor_apart: Annotated[float, Field(ge=1)] | None = None
    median_ratio: Annotated[float, Field(gt=0)] | None = None

    @property
    def total_ratio(self) -> float:
        """Return what was predicted over what was used."""
        return self.predicted_s / self.used_s


class Sweep(Document):
    """A sweep of short runs on an engine that returns at once: what the workflow itself takes.

    Times are wall seconds, memory is peak resident bytes. `store_entries` are files and folders of
    the store of finished runs, `files` and `disk_bytes` all results.
    """

    scenarios: Whole
    cores: Whole
    batches: Whole
    jobs: Whole
    plan_s: Share
    dag_s: Share
    no_op_s: Share
    total_s: Share
    simulate_s: Share
    snakemake_bytes: Whole
    largest_worker: str
    largest_worker_bytes: Whole
    store_entries: Whole
    files: Whole
    disk_bytes: Whole


class Speedup(Document):
    """What more cores give, by simulation of the schedule: `way` is how the jobs are started."""

    way: str
    cores: Whole
    jobs: Whole
    wall_s: Share
    speedup: Share


class SetUp(Document):
    """A part of what an installation fetches and unpacks, and the time from fetched to ready."""

    name: str
    downloaded_bytes: Whole
    unpacked_bytes: Whole
    wall_s: Share


class Bench(Document):
    """All of one run of `make bench`: every ratio has both its terms from this run.

    The predictions and the speed-up rest on the finished runs of the last report. `others_share` is
    the part of the machine's CPU time that other programs took while the whole workflow was timed,
    which a reduced bench leaves out.
    """

    written: str
    quick: bool
    cores: Annotated[int, Field(ge=1)]
    machine: str
    code: str
    others_share: Share | None
    figures: list[Figure]
    engines: list[EngineCost]
    builds: list[EngineCost]
    memory: list[Memory]
    stages: list[Stage]
    ways: list[Alternative]
    predictions: list[Prediction]
    sweeps: list[Sweep] = []
    speedups: list[Speedup] = []
    set_up: list[SetUp] = []


def read_bench(data: Path) -> Bench | None:
    """Return what was measured last; None where nothing was.

    Raises
    ------
    InputError
        The file is not one of this version; the message says what to run.
    """
    path = data / BENCH_PAGE.made_of
    if not path.is_file():
        return None
    text = read_text(path)
    try:
        return Bench.model_validate_json(text)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}; run `make bench` again") from None
