"""Altered data: bits, values, lengths, places and records of what a later stage reads.

Every trial alters files of a finished result folder and then reads them as the next stage does.
It is right if the reader gets what it got before, to the last digit; refused if it stops with a
line that names what was altered; anything else is wrong. Nothing is simulated.
"""

import csv
import functools
import io
import shutil
import threading
from contextlib import contextmanager
from random import Random

import pytest
from replication.engines.catalogue import NS3
from replication.judge.registration import changed_after_the_fact, record_path, register
from replication.plan.config import load_study
from replication.run.gather import read_runs
from replication.run.store import TABLES
from replication.study.errors import InputError, RunError
from replication.study.storage.seal import (
    RECORD,
    check_seal,
    open_sealed,
    record_of,
    seal,
    write_sealed,
)
from replication.study.storage.table import FLOW_NUMBERS

from tests.faults.altered import (
    EXPLORED,
    cut,
    edit,
    flip,
    make_finished,
    pattern_of,
    read,
)
from tests.faults.conftest import number
from tests.unit.stand_in import make_job

#: How many trials in all; each kind has its share.
TRIALS = number("ALTERATIONS", 60)
TITLES = {
    "altered-bit": "a bit flipped in a file that a later stage reads",
    "altered-value": "a number, verdict, row or column of it edited, or the file saved anew",
    "altered-length": "cut short, emptied, overwritten in part, or grown",
    "altered-place": "copied or renamed over another file, with or without its record",
    "altered-record": "its record damaged, lost, or another file's",
    "altered-together": "two writers of one file at once",
    "altered-run": "a finished run in the store, or a built program",
    "altered-source": "a published number or a registration, after there are results",
}


def share(part):
    """Return the numbers of the trials of one kind: at least one."""
    return range(max(1, round(TRIALS * part)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a finished project, its files by kind, and what their readers get from each."""
    project = make_finished(tmp_path_factory.mktemp("altered") / "project")
    kinds = {}
    for path in project.files():
        if path.parent.name != "registered":
            kinds.setdefault(pattern_of(project, path), []).append(path)
    return project, list(kinds.values()), {}


@contextmanager
def restored(*paths):
    """Put files and their records back after the block."""
    paths = [one for path in paths for one in (path, record_of(path))]
    before = {path: path.read_bytes() if path.exists() else None for path in paths}
    try:
        yield
    finally:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)


def chosen(kinds, random):
    """Return a file: every kind as often, however many of it there are."""
    return random.choice(random.choice(kinds))


def original(finished, path):
    """Return what the reader of a file gets from it when nothing was altered."""
    project, _, known = finished
    if path not in known:
        known[path] = read(project, path)
    return known[path]


def look(trial, finished, path, *altered):
    """See how the reading of `path` ends after `altered` were; a refusal names one of them."""
    found = trial.attempt(lambda: read(finished[0], path), InputError, RunError)
    if isinstance(found, Exception):
        line = str(found)
        assert any(one.name in line for one in altered), f"{line}: names none of {altered}"
        assert "\n" not in line and ("remove" in line or "run" in line), line
    else:
        trial.right(found == finished[2][path], f"other numbers, without a word, from {path}")


@pytest.mark.parametrize("kind", ["altered-bit", "altered-value", "altered-length"])
def test_altered_content_is_refused_or_means_the_same(kind, finished, tally):
    parts = {"altered-bit": 0.5, "altered-value": 0.2, "altered-length": 0.08}
    for trial in share(parts[kind]):
        random = Random(f"{kind} {trial}")
        path = chosen(finished[1], random)
        original(finished, path)
        with tally.trial("alterations", kind, TITLES[kind]) as trial, restored(path):
            content = path.read_bytes()
            if kind == "altered-bit":
                path.write_bytes(flip(random, content))
            elif kind == "altered-length":
                path.write_bytes(cut(random, content))
            else:
                path.write_bytes(edit(random, path, content))
            look(trial, finished, path, path)


def test_a_file_in_anothers_place_is_refused_or_means_the_same(finished, tally):
    several = [paths for paths in finished[1] if len(paths) > 1]
    for trial in share(0.1):
        random = Random(f"place {trial}")
        source, target = random.sample(random.choice(several), 2)
        original(finished, target)
        with (
            tally.trial("alterations", "altered-place", TITLES["altered-place"]) as trial,
            restored(source, target),
        ):
            move = random.choice([shutil.copyfile, shutil.move])
            move(source, target)
            if random.random() < 0.7:
                move(record_of(source), record_of(target))
            look(trial, finished, target, source, target)


@pytest.mark.parametrize("stage", ["results", "evaluation", "sensitivity", "batches"])
def test_a_study_over_another_is_refused(stage, finished, tally):
    """All files of a study or batch, with their records, where another's are."""
    folder = finished[0].data / stage
    for trial in share(0.01):
        random = Random(f"{stage} {trial}")
        if stage == "batches":
            names = sorted({path.name.split(".")[0] for path in folder.iterdir()})
            one, other = random.sample(names, 2)
            pairs = [(path, folder / path.name.replace(one, other)) for path in folder.iterdir()]
        else:
            one, other = random.sample(sorted(path.name for path in folder.iterdir()), 2)
            pairs = [(path, folder / other / path.name) for path in (folder / one).iterdir()]
        pairs = [
            (source, target)
            for source, target in pairs
            if source.is_file() and target.is_file() and source != target
        ]
        tables = [target for _, target in pairs if target.suffix in (".csv", ".parquet")]
        path = random.choice([table for table in tables if table.suffix != RECORD])
        original(finished, path)
        with (
            tally.trial("alterations", "altered-place", TITLES["altered-place"]) as trial,
            restored(*(target for _, target in pairs)),
        ):
            for source, target in pairs:
                shutil.copyfile(source, target)
            look(trial, finished, path, *(target for _, target in pairs))


def test_a_damaged_record_is_refused_or_means_the_same(finished, tally):
    for trial in share(0.04):
        random = Random(f"record {trial}")
        path, other = chosen(finished[1], random), chosen(finished[1], random)
        original(finished, path)
        with (
            tally.trial("alterations", "altered-record", TITLES["altered-record"]) as trial,
            restored(path),
        ):
            record = record_of(path)
            content = record.read_bytes()
            others = [flip(random, content), cut(random, content), record_of(other).read_bytes()]
            number = random.randrange(len(others) + 1)
            if number == len(others):
                record.unlink()
            else:
                record.write_bytes(others[number])
            look(trial, finished, path, path)


def test_of_two_writers_one_is_read_or_none(tmp_path, tally):
    """Two runs in one folder, or one command started twice."""
    for trial in share(0.02):
        path = tmp_path / f"results/{trial}/flows.csv"
        texts = [f"{trial} {writer}\n" * 1000 for writer in range(2)]
        writers = [
            threading.Thread(target=write_sealed, args=(path, text), daemon=True)
            for text in texts * 2
        ]
        with tally.trial("alterations", "altered-together", TITLES["altered-together"]) as trial:
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            found = trial.attempt(functools.partial(open_sealed, path), InputError)
            if isinstance(found, InputError):
                assert "flows.csv: is not what was written" in str(found)
            else:
                trial.right(found.getvalue().decode() in texts)


def test_an_altered_run_or_program_is_not_used(tmp_path, tally):
    job = make_job(tmp_path)
    names = list(job.scenarios)
    for name, scenario in job.scenarios.items():
        work = job.store.begin(name, scenario, NS3)
        job.runtime.run(work, job.limits, lambda: None)
        job.store.finish(name, work, {"cpu_s": 1.0})
    built = tmp_path / "engine"
    (built / "program").mkdir(parents=True)
    for name in ("replicate-ns2", "version", "program/driver.tcl"):
        (built / name).write_text(f"{name}\n" * 50)
    seal(built)
    for trial in share(0.03):
        random = Random(f"run {trial}")
        name = random.choice(names)
        is_run = random.random() < 0.7
        path = (
            job.store.entry(name) / random.choice(TABLES)
            if is_run
            else random.choice([p for p in built.rglob("*") if p.is_file() and p.suffix != RECORD])
        )
        content = path.read_bytes()
        with tally.trial("alterations", "altered-run", TITLES["altered-run"]) as trial:
            path.write_bytes(random.choice([flip, cut])(random, content))
            if is_run:
                with trial.refusal(RunError, f"{name}: is not a complete and intact run"):
                    read_runs(job.store, [name], "ns3", "", "flows.csv", FLOW_NUMBERS)
            else:
                with trial.refusal(InputError, "is not what was built"):
                    check_seal(built)
        path.write_bytes(content)


def exchanged(random, text):
    """Return published numbers of which two of one kind stand in each other's place, and which."""
    rows = list(csv.DictReader(io.StringIO(text)))
    one = random.choice(rows)
    alike = [r for r in rows if r["column"] == one["column"] and r["printed"] != one["printed"]]
    other = random.choice(alike)
    for name in ("value", "printed"):
        one[name], other[name] = other[name], one[name]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(one), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue(), (one["table"], one["row"], one["column"])


def test_what_was_set_before_the_results_is_not_changed_unseen(finished, tally):
    root, data = finished[0].root, finished[0].data
    study = load_study(root, EXPLORED)
    published, record = root / f"data/published/{EXPLORED}.csv", record_path(data, EXPLORED)
    assert changed_after_the_fact(root, data, study) == []
    for trial in share(0.03):
        random = Random(f"source {trial}")
        with (
            tally.trial("alterations", "altered-source", TITLES["altered-source"]) as trial,
            restored(record),
        ):
            before = published.read_text(encoding="utf-8")
            if random.random() < 0.5:
                text, (table, row, column) = exchanged(random, before)
                published.write_text(text, encoding="utf-8")
                said = f"{table}, {row}, {column}"
            else:
                record.write_bytes(random.choice([flip, cut])(random, record.read_bytes()))
                said = "its file was edited or damaged"
            # When it is judged again, the change is kept in sight, and stays so.
            seen = []
            for _ in range(2):
                seen.append(changed_after_the_fact(root, data, study))
                register(root, data, study)
            published.write_text(before, encoding="utf-8")
            seen.append(changed_after_the_fact(root, data, study))
            trial.said(seen, said)


def test_every_way_to_alter_alters(finished):
    """The harness can find fault: what it does to a file changes the file's bytes."""
    random = Random(0)
    for paths in finished[1]:
        content = paths[0].read_bytes()
        assert flip(random, content) != content
        assert any(edit(random, paths[0], content) != content for _ in range(8))
