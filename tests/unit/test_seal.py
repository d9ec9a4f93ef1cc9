"""Seals: what was built is what runs, and what was written is what is read."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from replication.run.launcher import Launch, make_runtime
from replication.study.errors import InputError
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.seal import (
    NAME,
    check,
    check_kernels,
    check_seal,
    open_sealed,
    place,
    read_sealed,
    record_of,
    remedy,
    seal,
    whole_or_unsealed,
    write_sealed,
)

from tests.unit.test_container import ROOT


@pytest.fixture
def built(tmp_path):
    """Return the folder of a sealed program."""
    for name in ("replicate-ns3", "version", "main.o"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    seal(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["replicate-ns3", "version"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_changed_file_is_not_run(built, name, damage):
    make_runtime(ROOT, Launch("native", "ns3", built / "replicate-ns3"), built).close()
    path = built / name
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flip" else content[:500])
    with pytest.raises(InputError, match=f"{name}: is not what was built .* run again"):
        make_runtime(ROOT, Launch("native", "ns3", built / "replicate-ns3"), built)


def test_what_lies_deeper_is_sealed_too(built):
    (built / "program").mkdir()
    (built / "program" / "reader.py").write_text("x")
    seal(built)
    (built / "program" / "reader.py").write_text("y")
    with pytest.raises(InputError, match=r"program/reader\.py: is not what was built"):
        check_seal(built)


@pytest.mark.parametrize("content", [b"", b"no seal\n", b"\xff\0  \xff\0\n", b"0  " + b"n" * 999])
def test_a_damaged_seal_is_a_broken_one(built, content):
    assert whole_or_unsealed(built).is_file()
    (built / NAME).write_bytes(content)
    assert not whole_or_unsealed(built).exists()


def test_what_a_compiler_leaves_is_not_sealed(built):
    (built / "main.o").unlink()
    (built / ".temporary").touch()
    check_seal(built)


def test_what_has_no_seal_is_taken_as_it_is(built):
    (built / NAME).unlink()
    (built / "replicate-ns3").write_bytes(b"y")
    check_seal(built)


def test_a_damaged_kernel_leaves_the_cache_and_a_whole_one_stays(tmp_path):
    kernels = [tmp_path / key for key in ("aaaa", "bbbb")]
    for kernel in kernels:
        kernel.mkdir()
        (kernel / "linux").write_bytes(b"kernel")
        (kernel / "release").write_text("6.1")
    assert list(check_kernels(tmp_path)) == []
    assert all((kernel / NAME).is_file() for kernel in kernels)
    (kernels[1] / "linux").write_bytes(b"kermel")
    (said,) = check_kernels(tmp_path)
    assert "bbbb was damaged" in said
    assert (kernels[0] / "linux").is_file() and not (kernels[1] / "linux").exists()
    # Built anew, it is sealed anew.
    (kernels[1] / "linux").write_bytes(b"kernel")
    assert list(check_kernels(tmp_path)) == []
    check_seal(kernels[1])


# -- what a later stage reads ---------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """Return a sealed table of a study's results."""
    path = tmp_path / "data" / "results" / "a" / "flows.csv"
    write_sealed(path, "flow,throughput_bps\nf,1000\n")
    return path


@pytest.mark.parametrize("damage", ["flip", "edit", "cut", "empty", "saved anew"])
def test_an_altered_file_is_refused_with_what_makes_it_anew(table, damage):
    content = table.read_bytes()
    assert read_sealed(table) == content.decode()
    altered = {
        "flip": content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
        "edit": content.replace(b"1000", b"500"),
        "cut": content[:20],
        "empty": b"",
        "saved anew": content.replace(b"\n", b"\r\n"),
    }
    table.write_bytes(altered[damage])
    said = r"flows\.csv: is not what was written .*: remove it and run `make report` \(rule collect"
    for read in (read_sealed, open_sealed, check):
        with pytest.raises(InputError, match=said):
            read(table)


def test_without_its_record_a_file_is_refused(table):
    record_of(table).unlink()
    with pytest.raises(InputError, match=r"has no record flows\.csv\.sha256: remove it and run"):
        read_sealed(table)


@pytest.mark.parametrize("with_record", [True, False])
def test_another_studys_file_is_refused_however_it_was_copied(table, with_record):
    other = table.parents[1] / "b-a" / "flows.csv"
    write_sealed(other, "flow,throughput_bps\nf,2000\n")
    shutil.copy(other, table)
    if with_record:
        shutil.copy(record_of(other), record_of(table))
    with pytest.raises(InputError, match="another file's copy"):
        read_sealed(table)


def test_a_data_folder_may_be_moved_and_its_records_checked_by_other_means(table, tmp_path):
    moved = tmp_path / "elsewhere"
    (tmp_path / "data").rename(moved)
    assert read_sealed(moved / "results" / "a" / "flows.csv").startswith("flow,")
    command = ["sha256sum", "--check", "--strict", "results/a/flows.csv.sha256"]
    assert subprocess.run(command, cwd=moved, check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("data/reproduced/cells.csv", "cells.csv"),
        ("results/data/reproduced/cells.csv", "cells.csv"),
        ("data/reproduced/design/scenarios/x.json", "design/scenarios/x.json"),
        ("d/sensitivity/x/batches/3.json", "sensitivity/x/batches/3.json"),
        ("d/conformance/ns3.recovery.csv", "conformance/ns3.recovery.csv"),
        ("reports/notebooks/x.queuing.ipynb", "x.queuing.ipynb"),
    ],
)
def test_a_place_tells_namesakes_apart_and_not_where_the_folder_is(path, known):
    assert place(Path(path)) == known


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("evaluation/x/cells.csv", "remove it and run `make report` (rule evaluate_study)"),
        ("sensitivity/x/claims.csv", "remove it and run `make sensitivity`"),
        ("maps/x/ns3.json", "remove it and run `make maps` (rule explore_map)"),
        ("reliability.json", "remove it and run `make test-faults`"),
        ("x.sensitivity.ipynb", "remove it and run `make sensitivity`"),
        ("d/design/x.csv", "remove it and run `make report` (rule design_study)"),
    ],
)
def test_every_file_has_its_maker(path, said):
    assert remedy(Path(path)).startswith(said)


def test_a_writer_killed_at_any_moment_leaves_file_and_record_that_fit(table, monkeypatch):
    """Before the file takes its place, after it, and before the record forgets the old one."""
    old, steps = read_sealed(table), []

    def killed(step, real):
        def stand_in(*given):
            steps.append(step)
            if len(steps) == moment:
                raise KeyboardInterrupt
            return real(*given)

        return stand_in

    monkeypatch.setattr(Path, "replace", killed("replace", Path.replace))
    for moment in range(1, 4):
        steps.clear()
        with pytest.raises(KeyboardInterrupt):
            write_sealed(table, f"new {moment}\n")
        assert read_sealed(table) in (old, f"new {moment}\n")
    steps.clear()
    moment = 0
    write_sealed(table, "whole\n")
    assert len(steps) == 3
    assert read_sealed(table) == "whole\n"
    assert len(record_of(table).read_text().splitlines()) == 1


def test_a_page_of_a_parquet_file_is_checked_beside_the_whole(tmp_path):
    path = tmp_path / "flows.parquet"
    write_parquet(pa.table({"x": np.arange(1000) * 0.1}), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    seal(tmp_path)
    record_of(path).unlink()
    # The whole is vouched for, the page is not.
    with pytest.raises(OSError, match="CRC"):
        read_parquet(path)


@pytest.mark.parametrize("name", ["cells.csv", "results/x/flows.parquet"])
def test_a_folder_that_is_shipped_has_one_record_of_all(tmp_path, name):
    for one in ("cells.csv", "results/x/flows.parquet", "results/y/flows.parquet"):
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).write_text(one)
    seal(tmp_path)
    assert read_sealed(tmp_path / name) == name
    (tmp_path / name).write_text("results/y/flows.parquet")
    with pytest.raises(InputError, match=rf"{name}: is not what .*{NAME} says"):
        read_sealed(tmp_path / name)
