"""The rendered release: a report in the repository that a reader opens without running anything.

A packed copy of its results stands beside it, from which it was rendered, and a stamp with the
hashes of all of that and of what decides results. So it can be told whether anything in it was
altered, whether its verdicts follow from its results, and whether code or data have moved on.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from replication.compare.agreement_table import write_agreement
from replication.engines.catalogue import ENGINES
from replication.judge.causes.atom import load_atoms
from replication.judge.evaluate import evaluate_study, merge
from replication.judge.flags.own_data import OWN_DATA, write_own_data
from replication.measure.results import Results
from replication.plan.code import closure
from replication.plan.config import load_study, study_ids
from replication.plan.stamp import (
    RELEASED,
    changed,
    file_hash,
    listed,
    require_same,
    require_sources,
    require_tables,
    study_files,
    value_hash,
)
from replication.report.archive import folder_of, pack, unpack
from replication.report.assemble import replacing
from replication.report.parts.source import read_provenance
from replication.report.render import render
from replication.study.errors import InputError, describe
from replication.study.files import atomic, digest_of, sha256_of, write_text
from replication.study.model import Document
from replication.study.published import published_path
from replication.study.sensitivity_settings import explanations_path
from replication.study.storage.seal import RECORD
from replication.study.storage.table import OWN_DATA_COLUMNS, read_rows

FOLDER = Path("reports/release")
STAMP = "stamp.json"
PROVENANCE = "provenance.json"
#: Beside the data, so that the pages alone are what a reader carries away.
RESULTS = Path("data/release/results.tar.xz")
#: Where the released results are rendered again: never where one's own report stands.
RENDERED_TO = Path("reports/html-release")
#: What the repository is willing to carry of pages.
LIMIT_BYTES = 20_000_000
#: Modules whose imports, with themselves, turn studies into scenarios and results into verdicts.
DECIDING = ("replication.plan.design", "replication.judge.evaluate")
#: Parts of the results that a rendering needs, as patterns below ``data/reproduced``.
RENDERED = (
    "*.csv",
    "*.json",
    "*.parquet",
    "conformance/*",
    "design/*.csv",
    "design/scenarios/*.json",
    "evaluation/*/*",
    "registered/*.json",
    "results/*/*.parquet",
    "maps/*/*",
    "sensitivity/*/*",
)
#: Working files among them.
_LEFT_OUT = ("goal.json", "scale.json", "scale.csv")
_RESTORE = f"restore it: git checkout -- {RESULTS.parent} {FOLDER}; or make it anew: make release"


class Stamp(Document):
    """What a release is.

    Attributes
    ----------
    commit, written, tier, engines, studies
        Of the run that its results are of, from their provenance.
    archive
        SHA-256 of the packed results.
    tables, pages
        SHA-256 of each file in the archive, and of each rendered one, by name.
    made_from
        Hashes of what decides results; see `hashes`.
    """

    commit: str | None
    written: str
    tier: str
    engines: dict[str, str]
    studies: list[str]
    archive: str
    tables: dict[str, str]
    pages: dict[str, str]
    made_from: dict[str, str]

    def parts(self) -> dict[str, str]:
        """Return everything that altering the release alters, by the names of its files."""
        return {
            RESULTS.as_posix(): self.archive,
            **{f"{RESULTS.as_posix()}: {name}": digest for name, digest in self.tables.items()},
            **{(FOLDER / name).as_posix(): digest for name, digest in self.pages.items()},
            (FOLDER / STAMP).as_posix(): value_hash(
                [self.commit, self.written, self.tier, self.engines, self.studies]
            ),
        }


def hashes(root: Path) -> dict[str, str]:
    """Return what decides results by name: each study, its published numbers, engines, code."""
    found = {}
    for study in study_ids(root):
        files = study_files(root, study)
        found[f"study {study}"] = file_hash(files["study_sha256"])
        found[f"published numbers of {study}"] = file_hash(files["published_sha256"])
        found[f"possible causes of {study}"] = file_hash(explanations_path(root, study))
    for name, engine in ENGINES.items():
        found[f"engine {name}"] = sha256_of(*engine.sources(root))
    modules = {path for name in DECIDING for path in closure(name)}
    found["design and evaluation"] = sha256_of(*modules)
    return {name: digest[:16] for name, digest in found.items()}


def make_release(root: Path, data: Path) -> str:
    """Pack finished results, render and stamp them; return a line that says so.

    Parameters
    ----------
    root, data
        The project's folder and that of its results. The release that is there is replaced.

    Raises
    ------
    InputError
        The results are missing, of several runs, or were made from other files than those that
        are there, or the release would be too large.
    """
    provenance = read_provenance(data / PROVENANCE)
    require_tables(data, provenance)
    require_sources(root, data, provenance)
    files = _results(data)
    files[PROVENANCE] = json.dumps(provenance | {RELEASED: True}, indent=2, sort_keys=True).encode()
    packed = pack(files)
    with folder_of(files) as tables, replacing(root / FOLDER) as folder:
        # Notebooks hold every chart again as an image; `make report` makes them.
        render(root, tables, tables / "no notebooks", folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size > LIMIT_BYTES:
            raise InputError(
                f"{root / FOLDER}: the pages have {size / 1e6:.1f} MB, more than "
                f"{LIMIT_BYTES / 1e6:g}; release fewer studies or engines (STUDIES=, ENGINES=)"
            )
        stamp = _stamp(packed, files, folder, hashes(root))
        text = json.dumps(stamp.model_dump(), indent=1, sort_keys=True)
        write_text(folder / STAMP, text + "\n")
        with atomic(root / RESULTS) as temporary:
            temporary.write_bytes(packed)
    return f"{root / FOLDER}: {size / 1e6:.1f} MB, tier {stamp.tier}, {', '.join(stamp.engines)}"


def _results(data: Path) -> dict[str, bytes]:
    """Return the results that a rendering needs, by name."""
    files = {file for pattern in RENDERED for file in data.glob(pattern) if file.is_file()}
    return {
        file.relative_to(data).as_posix(): file.read_bytes()
        for file in files
        if file.name not in _LEFT_OUT and file.suffix != RECORD
    }


def _stamp(
    packed: bytes, files: Mapping[str, bytes], folder: Path, made_from: dict[str, str]
) -> Stamp:
    """Return the stamp of packed results, `files`, and of the pages in `folder`."""
    provenance = json.loads(files[PROVENANCE])
    engines = provenance.get("engines") or {}
    return Stamp(
        commit=provenance.get("commit"),
        written=str(provenance.get("written")),
        tier=str((provenance.get("tier") or {}).get("id")),
        engines={name: str(engine["version"]) for name, engine in sorted(engines.items())},
        studies=sorted(provenance.get("studies") or {}),
        archive=digest_of(packed),
        tables={name: digest_of(content) for name, content in files.items()},
        pages={
            path.relative_to(folder).as_posix(): digest_of(path.read_bytes())
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / STAMP
        },
        made_from=made_from,
    )


def verify_release(root: Path) -> tuple[Stamp, dict[str, bytes]]:
    """Return the release's stamp and tables, every file of it being what was made.

    Raises
    ------
    InputError
        There is no release, a file of it is gone, altered or added, or its stamp is an older
        version's; the message names the files and the remedy.
    """
    path = root / FOLDER / STAMP
    stamp = _read_stamp(path)
    try:
        packed = (root / RESULTS).read_bytes()
    except OSError as error:
        raise InputError(f"{root / RESULTS}: {error.strerror}; {_RESTORE}") from None
    if digest_of(packed) != stamp.archive:
        raise InputError(f"release: altered since it was made: {RESULTS}; {_RESTORE}")
    try:
        tables = unpack(packed)
        now = _stamp(packed, tables, path.parent, stamp.made_from)
        recorded = dict(json.loads(tables[PROVENANCE])["tables"])
    except (InputError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{root / RESULTS}: {error}; {_RESTORE}") from None
    altered = set(changed(stamp.parts(), now.parts()))
    # The run's own record of its tables, which is one of them.
    altered |= {f"{RESULTS}: {name}" for name in recorded if now.tables.get(name) != recorded[name]}
    if altered:
        raise InputError(
            f"release: altered since it was made: {listed(sorted(altered))}; {_RESTORE}"
        )
    return stamp, tables


def _read_stamp(path: Path) -> Stamp:
    if not path.is_file():
        raise InputError(f"{path}: no such file: there is no release; `make release` makes one")
    try:
        return Stamp.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise InputError(
            f"{path}: is damaged, or an older version's ({describe(error, 2)}); {_RESTORE}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is damaged ({error}); {_RESTORE}") from None


def require_current(root: Path, stamp: Stamp) -> None:
    """Raise InputError if what decides results has changed since the release was made."""
    require_same(
        f"release: tier {stamp.tier} of {stamp.written}",
        stamp.made_from,
        hashes(root),
        f"`make release` renews it, {FOLDER}/index.html is as it was",
    )


@contextlib.contextmanager
def released_results(root: Path) -> Iterator[Path]:
    """Give a folder with the verified results of the release, which is gone after the block.

    Raises
    ------
    InputError
        As `verify_release` and `require_current`.
    """
    stamp, tables = verify_release(root)
    require_current(root, stamp)
    with folder_of(tables) as folder:
        yield folder


def check_release(root: Path) -> str:
    """Return a sentence on the release: it is whole, current and follows from its results.

    Raises
    ------
    InputError
        As `released_results`, or judging the packed results again gives other verdicts.
    """
    stamp, tables = verify_release(root)
    require_current(root, stamp)
    with folder_of(tables) as folder:
        judge_again(root, folder, stamp.studies)
        other = [name for name in tables if (folder / name).read_bytes() != tables[name]]
    if other:
        raise InputError(
            f"{root / RESULTS}: judging its results again gives another {listed(sorted(other))}; "
            f"{_RESTORE}"
        )
    return (
        f"release: tier {stamp.tier} of {stamp.written}, made from the code and data that are "
        f"here; its {len(stamp.pages)} files of pages and {len(stamp.tables)} tables are as they "
        "were made, and judging its results again gives the same verdicts"
    )


def judge_again(root: Path, data: Path, studies: list[str]) -> None:
    """Write the verdicts in `data` anew from its results, the studies a process each."""
    with ProcessPoolExecutor(min(len(studies), os.cpu_count() or 1)) as pool:
        list(pool.map(partial(_judge, root, data), studies))
    merge([data / "evaluation" / study for study in studies], data)
    write_agreement(root, data, studies)


def _judge(root: Path, data: Path, study: str) -> None:
    published = published_path(root, study)
    results = Results.load(data, study)
    folder = data / "evaluation" / study
    evaluate_study(load_study(root, study), published, results, folder, load_atoms(root, study))
    # The raw traces need not be here: what was judged from them then stands.
    write_own_data(root, data, study, read_rows(folder / OWN_DATA, OWN_DATA_COLUMNS))
