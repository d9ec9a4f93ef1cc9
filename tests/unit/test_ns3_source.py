"""ns-3's sources: known by git's own hashes, and refused where anything of them is another."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from replication.engines.git_object import git_object
from replication.engines.ns3_source import (
    PINNED,
    PROFILES,
    TOOLS,
    Ns3Source,
    build_ns3,
    built_ns3,
    lay_out,
    require_objects,
)
from replication.engines.ns3_version import NS3_VERSION
from replication.plan.pipeline import Pipeline
from replication.study.errors import InputError, RunError
from replication.study.files import read_model

ROOT = Path(__file__).parents[2]


def git(folder, *words):
    names = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.autocrlf=false"]
    done = subprocess.run(
        ["git", "-C", folder, *names, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def release(tmp_path):
    """Return a committed folder with what is hard about hashes, and what is pinned of it."""
    folder = tmp_path / "ns-3"
    for name, text in {
        "VERSION": "3.44",
        "src/core/a/b.cc": "b",
        "src/core/a.cc": "a",  # before a/ by name, as git sorts folders with a slash
        "src/core/a0": "0",
        "src/core/run.sh": "#!/bin/sh",
        "src/other/c.cc": "c",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "src/core/run.sh").chmod(0o755)
    (folder / "src/core/link").symlink_to("a.cc")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "c")
    (folder / "src/core/empty").mkdir()
    parts = {part: git(folder, "rev-parse", f"HEAD:{part}") for part in ("VERSION", "src/core")}
    pinned = Ns3Source(
        release="3.44.post0", commit="0" * 40, licence="l", parts=parts, options={"A": "B"}
    )
    return folder, pinned


def packed(folder, path):
    with tarfile.open(path, "w:xz") as archive:
        archive.add(folder, "ns-3.44")
    return path


def test_hashes_are_gits(release):
    folder, pinned = release
    for part, expected in pinned.parts.items():
        assert git_object(folder / part) == expected


@pytest.mark.parametrize("is_packed", [True, False])
def test_only_the_pinned_parts_are_laid_out(release, tmp_path, is_packed):
    folder, pinned = release
    source = packed(folder, tmp_path / "s.tar.xz") if is_packed else folder
    lay_out(source, pinned, tmp_path / "out")
    assert (tmp_path / "out/src/core/run.sh").stat().st_mode & 0o100
    assert not (tmp_path / "out/src/other").exists()


@pytest.mark.parametrize("change", ["content", "mode", "name", "gone", "more"])
def test_another_part_is_refused_by_name(release, tmp_path, change):
    folder, pinned = release
    core = folder / "src/core"
    if change == "content":
        (core / "a/b.cc").write_text("B")
    elif change == "mode":
        (core / "run.sh").chmod(0o644)
    elif change == "name":
        (core / "a0").rename(core / "a1")
    elif change == "more":
        (core / "new.cc").write_text("n")
    else:
        shutil.rmtree(core)
    with pytest.raises(InputError, match=r"src/core: is .* by git's hash, and [0-9a-f]{40} in"):
        lay_out(folder, pinned, tmp_path / "out")


def test_what_is_no_release_is_refused(release, tmp_path):
    _, pinned = release
    empty, damaged, outside = (tmp_path / name for name in ("e", "d.tar.xz", "o.tar"))
    empty.mkdir()
    damaged.write_bytes(b"no archive")
    with tarfile.open(outside, "w") as archive:
        entry = tarfile.TarInfo("../escaped")
        archive.addfile(entry, io.BytesIO(b""))
    for source, words in (
        (tmp_path / "missing", "is not there"),
        (empty, "holds no ns-3"),
        (damaged, "cannot be unpacked"),
        (outside, "cannot be unpacked"),
    ):
        with pytest.raises(InputError, match=f"NS3_SOURCE: .*{words}"):
            lay_out(source, pinned, tmp_path / "out")
    assert not (tmp_path.parent / "escaped").exists()


def test_a_profile_of_other_objects_is_refused(tmp_path):
    for name in ("src/core/unity_0.cxx.o", "src/core/unity_0.cxx.gcda"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    require_objects(tmp_path)
    (tmp_path / "src/core/unity_1.cxx.gcda").touch()
    with pytest.raises(RunError, match=r"unity_1\.cxx\.gcda counts for no object.*make profile"):
        require_objects(tmp_path)


def test_the_kept_profile_is_of_ns3s_own_objects_and_nothing_else(tmp_path):
    (kept,) = (ROOT / PROFILES).glob("*.tar.xz")
    with tarfile.open(kept) as archive:
        counts = {entry.name: archive.extractfile(entry).read() for entry in archive}
    modules = {name.split("/")[1] for name in counts}
    assert {"core", "network", "internet", "point-to-point", "traffic-control"} <= modules
    # GCC's own mark of such a file, little-endian, and no time in it.
    assert {content[:4] for content in counts.values()} == {b"adcg"}
    assert {content[8:12] for content in counts.values()} == {bytes(4)}


def test_without_a_source_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("NS3_SOURCE", raising=False)
    with pytest.raises(InputError, match="NS3_SOURCE: is not set"):
        build_ns3(ROOT, tmp_path / "out", 1)


def test_it_takes_the_place_of_the_wheel_of_its_release_alone():
    assert read_model(ROOT / PINNED, Ns3Source).release == NS3_VERSION
    assert "--hash=sha256:" in (ROOT / TOOLS).read_text(encoding="utf-8")


def test_what_was_built_is_taken_and_named(tmp_path, monkeypatch):
    monkeypatch.delenv("NS3_SOURCE", raising=False)
    for name in ("configs", "data/published", "workflow/engines"):
        shutil.copytree(ROOT / name, tmp_path / name)
    settings = {"engines": "ns3", "studies": "saxena", "tier": "quick"}
    pipeline = Pipeline.load(tmp_path, settings)
    (wheel,) = pipeline.ns3_prefix(NS3_VERSION)
    assert "wheel" in str(wheel) and "from_source" not in pipeline.settings
    built = built_ns3(tmp_path)
    monkeypatch.setenv("NS3_SOURCE", "any")
    assert [tmp_path / path for path in pipeline.ns3_prefix(NS3_VERSION)] == [built]
    monkeypatch.delenv("NS3_SOURCE")
    built.mkdir(parents=True)
    assert [tmp_path / path for path in pipeline.ns3_prefix(NS3_VERSION)] == [built]
    assert '"from_source": true' in pipeline.settings
    (other,) = pipeline.ns3_prefix("3.43.post9")
    assert "wheel" in str(other) and pipeline.ns3_prefix("3.37") == []
