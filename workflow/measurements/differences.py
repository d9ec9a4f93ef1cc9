"""Measure where engines differ, and write data/engine_differences.csv, which the report shows.

`make measurements` runs what the table does not have from the
current sources of each engine, and keeps the rest. Stopped, it continues where it was.
"""

import argparse
import fnmatch
import functools
import math
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from replication.base.table import (
    DIFFERENCE_COLUMNS,
    DIFFERENCES,
    Row,
    grouped,
    read_rows,
    write_table,
)
from replication.compare.agreement import load_differences
from replication.compare.flow_differences import KEY, compare_rows
from replication.engines.catalogue import ENGINES
from replication.study.scenario import Scenario

from measurements.bench import ROOT, Bench, program
from measurements.difference_conditions import CONDITIONS, VARIANTS, Condition
from measurements.scenarios import Part

TABLE = ROOT / DIFFERENCES
#: What a measurement is of.
CASE = ("variant", "condition", "engine")
#: The table is written anew after so many measurements.
WRITE_EVERY = 10


class Task(NamedTuple):
    """A condition of a variant on an engine, which does not refuse it."""

    variant: str
    condition: Condition
    engine: str

    @property
    def case(self) -> tuple[str, str, str]:
        """The values of `CASE`."""
        return self.variant, str(self.condition), self.engine

    @property
    def runs(self) -> list[Part]:
        """The scenarios."""
        return self.condition.runs(self.variant, self.engine)

    @property
    def is_refused(self) -> bool:
        """Whether the engine lacks what the condition needs."""
        return any(ENGINES[self.engine].refusal(Scenario.model_validate(o)) for o in self.runs)

    @property
    def scenario(self) -> str:
        """The id of the first run."""
        return Scenario.model_validate(self.runs[0]).id

    def law(self, metric: str) -> str:
        """Return what theory expects, as the table has it."""
        value = self.condition.law(self.variant, metric)
        return "" if math.isnan(value) else f"{value:.6g}"

    def measure(self, bench: Bench, generation: str) -> list[Row]:
        """Run it; return its rows, not yet compared."""
        values = self.condition.metrics([bench.run(scenario) for scenario in self.runs])
        return [self.row(metric, value, generation) for metric, value in values.items()]

    def row(self, metric: str, value: float, generation: str) -> Row:
        """Return the row of a metric."""
        variant, condition, engine = self.case
        return {
            "variant": variant,
            "condition": condition,
            "engine": engine,
            "metric": metric,
            "value": f"{value:.6g}",
            "law": self.law(metric),
            "difference": "",
            "entry": "",
            "generation": generation,
            "scenario": self.scenario,
        }


@functools.cache
def tasks() -> list[Task]:
    """Return what the engines can run, the variants in order within each condition."""
    possible = []
    for condition in CONDITIONS:
        for variant in (name for name in VARIANTS if name in condition.variants):
            possible += [Task(variant, condition, engine) for engine in ENGINES]
    return [task for task in possible if not task.is_refused]


def generation(engine: str) -> str:
    """Return the generation of an engine's sources, or their hash if it is not listed."""
    return ENGINES[engine].fingerprint(ROOT).partition("-")[0]


def is_current(task: Task, rows: list[Row], generations: Mapping[str, str]) -> bool:
    """Return whether the rows of a task are those of the engine and of the scenario as they are."""
    wanted = generations[task.engine], task.scenario
    return bool(rows) and all((row["generation"], row["scenario"]) == wanted for row in rows)


class Table:
    """The rows by case; any thread may add to it."""

    def __init__(self, path: Path, present: Sequence[Task]) -> None:
        self.path, self.present = path, present
        self.lock, self.new = threading.Lock(), 0
        self.rows: dict[tuple[str, ...], list[Row]] = {}
        for row in read_rows(path, CASE) if path.is_file() else []:
            complete = {name: row.get(name, "") for name in DIFFERENCE_COLUMNS}
            self.rows.setdefault(tuple(row[name] for name in CASE), []).append(complete)

    def add(self, task: Task, rows: list[Row]) -> None:
        """Replace the rows of a case."""
        with self.lock:
            self.rows[task.case] = rows
            self.new += 1
            if self.new % WRITE_EVERY == 0:
                self.write()

    def write(self) -> list[str]:
        """Compare all rows of the present cases, write them; return those without an entry."""
        rows: list[Row] = []
        nameless: list[str] = []
        for task in self.present:
            rows += self.rows.get(task.case, [])
            for row in self.rows.get(task.case, []):
                row["law"] = task.law(row["metric"])
        known = load_differences(ROOT).differences
        for group in grouped(rows, *KEY).values():
            nameless += compare_rows(group, known)
        write_table(self.path, rows, DIFFERENCE_COLUMNS)
        return nameless


def main() -> None:
    """Measure what is missing or of an old generation, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--engines", default=",".join(ENGINES), help="engines, with commas")
    parser.add_argument("--only", default="*", help="pattern of 'variant, condition'")
    words = parser.parse_args()
    engines = words.engines.split(",")
    generations = {engine: generation(engine) for engine in engines}
    everything = tasks()
    table = Table(TABLE, everything)
    wanted = []
    for task in everything:
        named = fnmatch.fnmatch(f"{task.variant}, {task.condition}", words.only)
        chosen = named and task.engine in engines
        if chosen and not is_current(task, table.rows.get(task.case, []), generations):
            wanted.append(task)
    print(f"{len(wanted)} measurements to make", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="differences-") as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        benches = {name: Bench(name, program(name), Path(folder)) for name in engines}

        def measure(task: Task) -> None:
            rows = task.measure(benches[task.engine], generations[task.engine])
            table.add(task, rows)
            print(f"{table.new} of {len(wanted)}: {', '.join(task.case)}", flush=True)

        list(pool.map(measure, wanted))
    nameless = table.write()
    print("\n".join(nameless))
    print(f"{TABLE}: {len(nameless)} differences without an entry")


if __name__ == "__main__":
    main()
