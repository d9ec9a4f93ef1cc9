"""The release: data small enough for git, and a report that a reader opens without running it.

`data/release` has the results (`report.released`), `reports/release` the pages, which link to them,
and one manifest the SHA-256 of every file. `check_release` says whether all is whole, and whether
its verdicts follow from its features and flows. The series of every run are packed apart, for a
place that takes large files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import yaml

from replication.compare.agreement import TABLES, write_agreement
from replication.design.config import load_study
from replication.metrics.collect import series_files
from replication.metrics.results import Results
from replication.report.released import (
    ARCHIVE,
    MANIFEST,
    PAGES,
    PROVENANCE,
    RELEASED,
    manifest,
    released_results,
    restore,
    write_released,
)
from replication.report.render import render, replacing
from replication.study.errors import InputError
from replication.study.files import atomic, fetch, file_sha256, read_json, write_text
from replication.study.model import Document
from replication.study.published import published_path
from replication.study.storage.table import SELF_CONSISTENCY_COLUMNS, read_parquet, read_rows
from replication.verdicts.counts import COUNTS
from replication.verdicts.evaluate import evaluate_study, merge
from replication.verdicts.self_consistency import SELF_CONSISTENCY, write_self_consistency
from replication.verdicts.verdict_table import NAME as VERDICTS
from replication.verdicts.verdict_table import primary_engines

#: Where the released results are rendered again: never where one's own report stands.
RENDERED_TO = Path("reports/html-release")
#: What the repository is willing to carry: of data, and of pages without those of notebooks, which
#: come later and have one MB.
LIMITS = {RELEASED: 7_000_000, PAGES: 7_000_000}
#: Where the packed series are made or fetched, and where they are unpacked.
PACKED, SERIES = Path("data"), Path("data/series")
_JUDGED = ("cells.csv", "claims.csv", COUNTS, SELF_CONSISTENCY, "audit.csv", *TABLES)


class Archive(Document):
    """The packed series of a release, which are not in git, and once put there their address."""

    file: str
    sha256: str
    bytes: int
    address: str | None = None


def make_release(root: Path, data: Path) -> str:
    """Release finished results: their data, pages and manifest; return a line that says so.

    InputError: results are missing, or the release would be too large.
    """
    provenance = read_json(data / PROVENANCE)
    studies = sorted(path.stem for path in (data / "design").glob("*.csv"))
    archive = pack_series(root, data, studies)
    with (
        tempfile.TemporaryDirectory() as work,
        replacing(root / PAGES) as pages,
        replacing(root / RELEASED) as released,
    ):
        write_released(data, released)
        results = Path(work) / "data"
        restore(root, released, results)
        # Notebooks hold every chart again as an image; `make report` makes them.
        link = os.path.relpath(RELEASED, PAGES)
        render(root, results, results / "no notebooks", pages, link)
        sizes = [_size(released, RELEASED), _size(pages, PAGES)]
        text = yaml.safe_dump(archive.model_dump(exclude_none=True), sort_keys=False)
        write_text(released / ARCHIVE.name, text)
    write_text(root / MANIFEST, manifest(root))
    tier, engines = provenance["tier"]["id"], ", ".join(provenance["engines"])
    return (
        f"{RELEASED}: {sizes[0]:.1f} MB, {PAGES}: {sizes[1]:.1f} MB, tier {tier}, {engines}; "
        f"{PACKED / archive.file}: {archive.bytes / 1e6:.1f} MB, not for git"
    )


def _size(folder: Path, name: Path) -> float:
    """Return the MB in a folder; InputError where they are too many."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LIMITS[name]:
        raise InputError(
            f"{name}: would have {size / 1e6:.1f} MB, more than {LIMITS[name] / 1e6:g}; release "
            "fewer studies or engines (STUDIES=, ENGINES=)"
        )
    return size / 1e6


def pack_series(root: Path, data: Path, studies: Sequence[str]) -> Archive:
    """Pack the series of every run of the studies into one ZIP file below `PACKED`."""
    work = root / PACKED / "series.zip"
    with atomic(work) as temporary, zipfile.ZipFile(temporary, "w") as packed:
        for study in studies:
            for path in series_files(data, study):
                entry = zipfile.ZipInfo(f"{study}/{path.name}")
                packed.writestr(entry, path.read_bytes())
    digest = file_sha256(work)
    path = work.rename(work.with_name(f"series-{digest[:12]}.zip"))
    return Archive(file=path.name, sha256=digest, bytes=path.stat().st_size)


def fetch_results(root: Path, address: str | None = None) -> str:
    """Fetch the packed series, from where archive.yaml says, and unpack them; return a line on it.

    InputError: there is no address, it cannot be reached, or it has another file.
    """
    path = root / ARCHIVE
    if not path.is_file():
        raise InputError(f"{path}: no such file: there is no release; `make release` makes one")
    archive = Archive.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    if address is None and archive.address is None:
        raise InputError(
            f"{ARCHIVE}: has no address: {archive.file} was not put anywhere yet; give an address "
            "as an argument, or run `make report`, which simulates it"
        )
    packed = root / PACKED / archive.file
    fetch(address or str(archive.address), packed, archive.sha256)
    with replacing(root / SERIES) as folder, zipfile.ZipFile(packed) as content:
        content.extractall(folder)
    return f"{SERIES}: the series of every run, a folder of Parquet files for each study"


def check_release(root: Path) -> str:
    """Return a sentence on the release: it is whole and follows from its results.

    InputError: a file is not what was made, or judging again gives other verdicts.
    """
    results = released_results(root)
    provenance = read_json(results / PROVENANCE)
    with tempfile.TemporaryDirectory() as work:
        again = shutil.copytree(results, Path(work) / "data")
        studies = sorted(path.stem for path in (results / "design").glob("*.csv"))
        judge_again(root, again, studies)
        other = [
            name for name in _JUDGED if (again / name).read_bytes() != (results / name).read_bytes()
        ]
        if not read_parquet(again / VERDICTS).equals(read_parquet(results / VERDICTS)):
            other.append(VERDICTS)
    if other:
        raise InputError(
            f"{RELEASED}: judging its features and flows again gives another {', '.join(other)}; "
            "`make release` renews it"
        )
    return (
        f"release: tier {provenance['tier']['id']} of {provenance['written']}; its data and pages "
        "are as they were made, and judging its features and flows again gives the same verdicts"
    )


def judge_again(root: Path, data: Path, studies: list[str]) -> None:
    """Write the verdicts in `data` anew from its results, the studies a process each."""
    with ProcessPoolExecutor(min(len(studies), os.cpu_count() or 1)) as pool:
        list(pool.map(partial(_judge, root, data), studies))
    evaluations = [data / "evaluation" / study for study in studies]
    merge(evaluations, primary_engines(root, data, studies), data)
    write_agreement(root, data, studies)


def _judge(root: Path, data: Path, study: str) -> None:
    published = published_path(root, study)
    results = Results.load(data, study)
    folder = data / "evaluation" / study
    evaluate_study(load_study(root, study), published, results, folder)
    # The raw traces need not be here: what was judged from them then stands.
    kept = read_rows(folder / SELF_CONSISTENCY, SELF_CONSISTENCY_COLUMNS)
    write_self_consistency(root, data, study, kept)
