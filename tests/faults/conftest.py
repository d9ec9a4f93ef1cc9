"""Counts what the tests of faults and bad input did; see `report.parts.reliability`.

REPLICATION_MOMENTS   moments at which processes are killed (3)
REPLICATION_CASES     bad inputs over the models (5000)
REPLICATION_RUNS      bad inputs through each simulator's program (60)
REPLICATION_ALTERATIONS  files altered after results (60)
REPLICATION_CORES     cores of a run under test (2)
REPLICATION_SANITIZE  1: the ns-3 program under AddressSanitizer and UBSan
REPLICATION_COUNTS    the JSON file that the counts go to; none, if not given
"""

import os
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.reliability import add_entries
from replication.plan.pipeline import Pipeline
from replication.report.parts.reliability import Trials

from tests.workflow.project import copy_project

ROOT = Path(__file__).parents[2]
#: What a trial of a whole run makes: one study in runs of a tier that takes seconds.
STUDY = {"tier": "brief", "studies": "nishitha"}
TIER = """\
id: brief
title: a few short runs in several batches
replicates: [{count: 1}]
levels: quick
cost_limit_s: 0.1
batch_cost_s: 0.7
"""
TARGET = "data/reproduced/cells.csv"
RESULTS = (
    *(f"data/reproduced/results/nishitha/{table}.parquet" for table in ("flows", "series")),
    *(f"data/reproduced/{name}.csv" for name in ("cells", "claims", "audit")),
)


def number(name, default):
    """Return a setting of this harness."""
    return int(os.environ.get(f"REPLICATION_{name}", default))


CORES = number("CORES", 2)


def brief_project(folder, engines_from=ROOT):
    """Return a copy of the project that has the tier of these tests, and engines if built."""
    built = (engines_from / "data/reproduced/engines").is_dir()
    project = copy_project(folder, engines_from if built else None)
    (folder / "configs/tiers/brief.yaml").write_text(TIER)
    return project


def program(engine):
    """Return the program of an engine that `make engines` has built in the checkout."""
    path = ROOT / Pipeline.load(ROOT, {"engines": engine}).program(engine)
    assert path.is_file(), f"{path} is not built: run `make engines`"
    return path


def set_clock_back(project):
    """Leave results of tomorrow, as a clock that is set back by a day does."""
    later = time.time() + 86400
    for path in (project.root / "data/reproduced").rglob("*"):
        os.utime(path, (later, later), follow_symlinks=False)


class Tally:
    """How the trials of this session ended."""

    def __init__(self):
        self.titles = {}
        self.ends = {}
        self.notes = {}

    def named(self, part, name, title):
        """Return the counts of one kind of trial."""
        self.titles[name] = part, title
        return self.ends.setdefault(name, Counter())

    def add(self, part, name, title, **ends):
        """Count trials that another program made."""
        self.named(part, name, title).update(ends)

    @contextmanager
    def trial(self, part, name, title):
        """Count one trial: `right` or `refused` as the block adds to what it is given, or wrong."""
        ends = self.named(part, name, title)
        ends["tried"] += 1
        ended = []
        try:
            yield ended
            assert ended in (["right"], ["refused"]), f"{name} ended in {ended}"
        except KeyboardInterrupt:  # whoever stops the harness is no fault
            ends["tried"] -= 1
            raise
        except BaseException:
            ends["wrong"] += 1
            raise
        ends[ended[0]] += 1

    def entries(self):
        """Return what is written."""
        return [
            Trials(
                **{"id": name, "part": self.titles[name][0], "title": self.titles[name][1]},
                **{key: ends[key] for key in ("tried", "right", "refused", "wrong")},
                note=self.notes.get(name, ""),
            )
            for name, ends in self.ends.items()
        ]


@pytest.fixture(scope="session")
def tally():
    """Return the session's counts; they are written when it ends."""
    counted = Tally()
    yield counted
    if path := os.environ.get("REPLICATION_COUNTS"):
        add_entries(Path(path), counted.entries())


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Return a project in which one study ran to its end without a fault, and its wall seconds."""
    project = brief_project(tmp_path_factory.mktemp("undisturbed") / "project")
    project.snakemake("engines", cores=CORES, **STUDY)
    started = time.monotonic()
    project.snakemake(TARGET, cores=CORES, **STUDY)
    return project, time.monotonic() - started
