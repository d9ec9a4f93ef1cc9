"""Counts what the tests of faults and bad input did; see `report.parts.reliability`.

REPLICATION_MOMENTS   moments at which processes are killed (4)
REPLICATION_CASES     bad inputs over the models (1500)
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
from replication.report.parts.reliability import Trials

from tests.workflow.project import ROOT, copy_project

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
    *(f"data/reproduced/{name}.csv" for name in ("cells", "claims", "claim_flags", "audit")),
)


def results_of(project):
    """Return the bytes of what a trial's run makes."""
    return {path: (project.root / path).read_bytes() for path in RESULTS}


def number(name, default):
    """Return a setting of this harness."""
    return int(os.environ.get(f"REPLICATION_{name}", default))


CORES = number("CORES", 2)


def brief_project(folder, engines_from=ROOT):
    """Return a copy of the project that has the tier of these tests, and engines if built."""
    project = copy_project(folder, engines_from)
    (folder / "configs/tiers/brief.yaml").write_text(TIER)
    return project


def set_clock_back(project):
    """Leave results of tomorrow, as a clock that is set back by a day does."""
    later = time.time() + 86400
    for path in (project.root / "data/reproduced").rglob("*"):
        os.utime(path, (later, later), follow_symlinks=False)


class Trial:
    """One trial, and how it ended as its own methods saw it: what a test says does not count."""

    def __init__(self):
        self.ended = None

    def right(self, holds, said=""):
        """Require that what a trial gave is what an undisturbed one gives."""
        assert holds, said
        self.ended = "right"

    @contextmanager
    def refusal(self, errors, match):
        """Require that the block ends in an error of ours whose message matches."""
        with pytest.raises(errors, match=match):
            yield
        self.ended = "refused"

    def refused(self, done, *words):
        """Require that a process failed, and said one of the words and no traceback."""
        said = (done.stdout or "") + (done.stderr or "")
        assert done.returncode > 0, said[-3000:]
        assert "Traceback" not in said and any(word in said for word in words), said[-3000:]
        self.ended = "refused"

    def said(self, found, words):
        """Require that each of these lists of complaints has one with the words."""
        assert all(any(words in one for one in complaints) for complaints in found), (words, found)
        self.ended = "refused"

    def exited(self, code):
        """Require one of the exit codes that our programs have: 0, or one for a refusal."""
        assert code in (0, 1, 2), code
        self.ended = "refused" if code else "right"

    def attempt(self, action, *errors):
        """Return what an action gives, or the one of these errors that it ends in."""
        try:
            found = action()
        except errors as error:
            self.ended = "refused"
            return error
        self.ended = "right"
        return found


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
        """Count trials that another program made and counted."""
        self.named(part, name, title).update(ends)

    @contextmanager
    def trial(self, part, name, title):
        """Count one trial: wrong if the block fails, or if nothing was seen of how it ended."""
        ends = self.named(part, name, title)
        ends["tried"] += 1
        trial = Trial()
        try:
            yield trial
            assert trial.ended, f"{name}: nobody looked at how it ended"
        except KeyboardInterrupt:  # whoever stops the harness is no fault
            ends["tried"] -= 1
            raise
        except BaseException:
            ends["wrong"] += 1
            raise
        ends[trial.ended] += 1

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
