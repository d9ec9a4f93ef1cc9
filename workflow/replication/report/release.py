"""The rendered release: a report in the repository that a reader opens without running anything.

It comes with a packed copy of the results it was rendered from, and a manifest with the SHA-256 of
every file. `check_release` says whether all is whole, and whether its verdicts follow from its
results.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from replication.compare.agreement import write_agreement
from replication.judge.cause import load_causes
from replication.judge.evaluate import evaluate_study, merge
from replication.judge.self_consistency import OWN_DATA, write_own_data
from replication.measure.results import Results
from replication.plan.config import load_study
from replication.report.archive import folder_of, pack, unpack
from replication.report.pages.source import read_provenance
from replication.report.render import render, replacing
from replication.study.errors import InputError
from replication.study.files import atomic, digest_of, file_sha256, write_text
from replication.study.published import published_path
from replication.study.storage.table import OWN_DATA_COLUMNS, read_rows

FOLDER = Path("reports/release")
MANIFEST = "stamp.json"
#: How many files a message names.
NAMED = 5
PROVENANCE = "provenance.json"
#: Beside the data, so that the pages alone are what a reader carries away.
RESULTS = Path("data/release/results.tar.xz")
#: Where the released results are rendered again: never where one's own report stands.
RENDERED_TO = Path("reports/html-release")
#: What the repository is willing to carry of pages.
LIMIT_BYTES = 20_000_000
#: Parts of the results that a rendering needs, as patterns below ``data/reproduced``.
RENDERED = (
    "*.csv",
    "*.json",
    "*.parquet",
    "design/*.csv",
    "design/scenarios/*.json",
    "evaluation/*/*",
    "results/*/*.parquet",
    "maps/*/*",
    "sensitivity/*/*",
)
#: Working files among them.
_LEFT_OUT = ("goal.json", "scale.json", "scale.csv")
_RESTORE = f"restore it: git checkout -- {RESULTS.parent} {FOLDER}; or make it anew: make release"


def make_release(root: Path, data: Path) -> str:
    """Pack finished results, render them and write the manifest; return a line that says so.

    Parameters
    ----------
    root, data
        The project's folder and that of its results. The release that is there is replaced.

    Raises
    ------
    InputError
        Results are missing, or the release would be too large.
    """
    provenance = read_provenance(data / PROVENANCE)
    files = _results(data)
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
        manifest = {"archive": digest_of(packed), "pages": _pages(folder)}
        write_text(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        with atomic(root / RESULTS) as temporary:
            temporary.write_bytes(packed)
    tier = provenance["tier"]["id"]
    return f"{root / FOLDER}: {size / 1e6:.1f} MB, tier {tier}, {', '.join(provenance['engines'])}"


def _results(data: Path) -> dict[str, bytes]:
    """Return the results that a rendering needs, by name."""
    files = {file for pattern in RENDERED for file in data.glob(pattern) if file.is_file()}
    return {
        file.relative_to(data).as_posix(): file.read_bytes()
        for file in files
        if file.name not in _LEFT_OUT
    }


def _pages(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each rendered file by its name."""
    return {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }


def verify_release(root: Path) -> dict[str, bytes]:
    """Return the release's tables, every file of it being what was made.

    Raises
    ------
    InputError
        There is no release, or a file of it is gone, altered or added; the message names it.
    """
    path = root / FOLDER / MANIFEST
    if not path.is_file():
        raise InputError(f"{path}: no such file: there is no release; `make release` makes one")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        packed, then = (root / RESULTS).read_bytes(), dict(manifest["pages"])
        same = digest_of(packed) == manifest["archive"]
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; {_RESTORE}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged ({error}); {_RESTORE}") from None
    now = _pages(path.parent)
    altered = [] if same else [RESULTS.as_posix()]
    altered += [
        (FOLDER / name).as_posix()
        for name in sorted({**then, **now})
        if then.get(name) != now.get(name)
    ]
    if altered:
        names = ", ".join(altered[:NAMED])
        raise InputError(f"release: altered since it was made: {names}; {_RESTORE}")
    try:
        return unpack(packed)
    except InputError as error:
        raise InputError(f"{root / RESULTS}: {error}; {_RESTORE}") from None


@contextlib.contextmanager
def released_results(root: Path) -> Iterator[Path]:
    """Give a folder with the verified results of the release, which is gone after the block.

    Raises
    ------
    InputError
        As `verify_release`.
    """
    with folder_of(verify_release(root)) as folder:
        yield folder


def check_release(root: Path) -> str:
    """Return a sentence on the release: it is whole and follows from its results.

    Raises
    ------
    InputError
        As `verify_release`, or judging the packed results again gives other verdicts.
    """
    tables = verify_release(root)
    with folder_of(tables) as folder:
        provenance = read_provenance(folder / PROVENANCE)
        judge_again(root, folder, sorted(provenance["studies"]))
        other = [name for name in tables if (folder / name).read_bytes() != tables[name]]
    if other:
        names = ", ".join(sorted(other)[:NAMED])
        raise InputError(
            f"{root / RESULTS}: judging its results again gives another {names}; "
            "`make release` renews it"
        )
    return (
        f"release: tier {provenance['tier']['id']} of {provenance['written']}; its {len(tables)} "
        "tables and its pages are as they were made, and judging its results again gives the same "
        "verdicts"
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
    evaluate_study(load_study(root, study), published, results, folder, load_causes(root, study))
    # The raw traces need not be here: what was judged from them then stands.
    write_own_data(root, data, study, read_rows(folder / OWN_DATA, OWN_DATA_COLUMNS))
