"""The rendered release: a report in the repository that a reader opens without running anything.

A stamp beside it holds the hashes of all that decides results, as they were when it was made, so
that it can say for itself when the code or the data have moved on. A packed copy of its results
lets it be rendered again without simulating.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication.config import load_config, study_ids
from replication.engine import ENGINES
from replication.errors import InputError
from replication.files import atomic, sha256_of, write_text
from replication.pipeline import closure
from replication.report import render

FOLDER = Path("reports/release")
STAMP = "stamp.json"
#: Beside the data, so that the pages alone are what a reader carries away.
RESULTS = Path("data/release/results.tar.xz")
#: What the repository is willing to carry of pages.
LIMIT_BYTES = 15_000_000
#: Modules whose imports, with themselves, turn studies into scenarios and results into verdicts.
DECIDING = ("design", "evaluate")
#: Parts of the results that a rendering needs, as patterns below ``data/reproduced``.
RENDERED = (
    "*.csv",
    "*.json",
    "*.parquet",
    "conformance/*",
    "design/*.csv",
    "design/scenarios/*.json",
    "evaluation/*/*.csv",
    "registered/*.json",
    "results/*/*.parquet",
    "sensitivity/*/*",
)
#: Working files among them.
_LEFT_OUT = ("goal.json", "ladder.json", "scale.json", "scale.csv")


def hashes(root: Path) -> dict[str, str]:
    """Return what decides results by name: each study, its published numbers, engines, code."""
    found = {}
    for study in study_ids(root):
        found[f"study {study}"] = sha256_of(root / "configs" / "studies" / f"{study}.yaml")
        published = root / "data" / "published" / f"{study}.csv"
        found[f"published numbers of {study}"] = sha256_of(published)
    for name, engine in ENGINES.items():
        found[f"engine {name}"] = sha256_of(*engine.sources(root))
    modules = {path for name in DECIDING for path in closure(name)}
    found["design and evaluation"] = sha256_of(*modules)
    return {name: digest[:16] for name, digest in found.items()}


def make_release(root: Path, data: Path, folder: Path) -> str:
    """Render a release from finished results and stamp it; return a line that says so.

    Parameters
    ----------
    root, data
        The project's folder and that of its results.
    folder
        Where the release goes; what is there is replaced.

    Raises
    ------
    InputError
        The results are missing, were made from other files than those that are there, or the
        release would be too large.
    """
    provenance = _provenance(root, data)
    _refuse_stale(root, data, provenance)
    # Notebooks hold every chart again as an image; `make report` makes them.
    render(root, data, folder / "no notebooks", folder)
    _pack(data, root / RESULTS)
    engines = {k: str(v["version"]) for k, v in (provenance.get("engines") or {}).items()}
    stamp = {
        "commit": provenance.get("commit"),
        "written": provenance.get("written"),
        "tier": (provenance.get("tier") or {}).get("id"),
        "engines": engines,
        "results": {name: sha256_of(data / name)[:16] for name in ("cells.csv", "claims.csv")},
        "made_from": hashes(root),
    }
    write_text(folder / STAMP, json.dumps(stamp, indent=1, sort_keys=True) + "\n")
    size = _size(folder)
    if size > LIMIT_BYTES:
        raise InputError(
            f"{folder}: the release has {size / 1e6:.1f} MB, more than {LIMIT_BYTES / 1e6:g}; "
            "release fewer studies or engines (STUDIES=, ENGINES=)"
        )
    return f"{folder}: {size / 1e6:.1f} MB, tier {stamp['tier']}, {', '.join(engines)}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _provenance(root: Path, data: Path) -> dict[str, Any]:
    from replication.report_source import Source

    return Source.load(root, data).provenance


def _refuse_stale(root: Path, data: Path, provenance: dict[str, Any]) -> None:
    """Refuse results that were not made from the files of this project."""
    version = (provenance.get("config") or {}).get("ns3_version")
    given = {"ns3_version": version} if version else {}
    config = load_config(root / "configs" / "config.yaml", given)
    stale = []
    for study, known in (provenance.get("studies") or {}).items():
        paths = {
            "study_sha256": root / "configs" / "studies" / f"{study}.yaml",
            "published_sha256": root / "data" / "published" / f"{study}.csv",
        }
        stale += [str(path) for key, path in paths.items() if known.get(key) != sha256_of(path)]
    for name, known in (provenance.get("engines") or {}).items():
        if known.get("fingerprint") != config.engine(name).fingerprint(root):
            stale.append(f"engine {name}")
    if stale:
        raise InputError(
            f"{data}: was made from another version of {', '.join(stale)}; run `make report` first"
        )


def _pack(data: Path, path: Path) -> None:
    """Pack the results that a rendering needs; the same results give the same bytes."""
    files = sorted({file for pattern in RENDERED for file in data.glob(pattern) if file.is_file()})
    with atomic(path) as temporary, tarfile.open(temporary, "w:xz", preset=6) as archive:
        for file in files:
            if file.name in _LEFT_OUT:
                continue
            entry = tarfile.TarInfo(file.relative_to(data).as_posix())
            entry.size = file.stat().st_size
            entry.mode = 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)


@contextlib.contextmanager
def released_results(root: Path) -> Iterator[Path]:
    """Give a folder with the results of the release, which is gone after the block.

    Raises
    ------
    InputError
        There is no release, or its archive is damaged.
    """
    path = root / RESULTS
    if not path.is_file():
        raise InputError(f"{path}: no such file; there are no results to render: run `make report`")
    with tempfile.TemporaryDirectory() as folder:
        try:
            _unpack(path, Path(folder))
        except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
            raise InputError(f"{path}: is damaged ({error}); restore it with git") from None
        yield Path(folder)


def _unpack(path: Path, folder: Path) -> None:
    with tarfile.open(path, "r:xz") as archive:
        for entry in archive:
            target = folder / entry.name
            content = archive.extractfile(entry)
            if content is None or ".." in target.parts or not target.is_relative_to(folder):
                raise tarfile.TarError(f"unexpected entry {entry.name!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


def state(root: Path) -> str:
    """Return a sentence on the release: what of its making has changed since, if anything."""
    path = root / FOLDER / STAMP
    if not path.is_file():
        return f"release: there is none in {FOLDER.as_posix()}; `make release` makes one"
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
        then: dict[str, str] = dict(stamp["made_from"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged ({error}); restore it with git") from None
    now = hashes(root)
    changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    made = f"release: tier {stamp.get('tier')} of {stamp.get('written')}"
    if not changed:
        return f"{made}, made from the code and data that are here"
    return f"{made}, made from other versions of: {', '.join(changed)}; `make release` renews it"
