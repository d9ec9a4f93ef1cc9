"""The release: results small enough for git, checked by a manifest of SHA-256 checksums.

`data/release` has the results and `reports/release` their pages. Everything that follows from the
results is left out: scenarios are designed again and checked by their ids, and tables of one study
are filtered from the tables of all studies. The series of every run go into a separate archive.
"""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from replication.compare.agreement import TABLES, write_agreement
from replication.design.config import Tier, load_study
from replication.design.design import design_study, write_scenarios
from replication.metrics.collect import series_files
from replication.metrics.results import Results
from replication.study import files
from replication.study import table as tables
from replication.study.errors import InputError
from replication.study.model import Document
from replication.study.position import read_model
from replication.study.published import published_path
from replication.study.table import Row, read_parquet, read_rows, write_parquet
from replication.verdicts.evaluate import evaluate_study, merge
from replication.verdicts.self_consistency import SELF_CONSISTENCY, write_self_consistency
from replication.verdicts.verdict_table import COUNTS, primary_engines
from replication.verdicts.verdict_table import NAME as VERDICTS

RELEASED, PAGES = Path("data/release"), Path("reports/release")
MANIFEST = RELEASED / "manifest.sha256"
#: Written by `replicate refresh-notebooks` after the release, so the manifest leaves them out.
NOTEBOOK_PAGES = PAGES / "notebooks"
#: Describes the archive of series. Its address is added later, so the manifest leaves it out.
ARCHIVE = RELEASED / "archive.yaml"
PROVENANCE = "provenance.json"
REGIONS = "regions.parquet"
#: Where results are restored, in one folder for each release.
CACHE = Path(".cache/release")
#: Where the released results are rendered, so that the user's own report is kept.
RENDERED_TO = Path("reports/html-release")
#: Where the archive of series is made or fetched, and where it is unpacked.
PACKED, SERIES = Path("data"), Path("data/series")
#: Tables that follow from the results, of all studies.
JUDGED = ("cells.csv", "claims.csv", COUNTS, SELF_CONSISTENCY, "audit.csv")
#: Files that are released unchanged, as patterns below the folder of results.
PLAIN = (
    *(PROVENANCE, "results/*/*.parquet", VERDICTS, *JUDGED),
    *("agreement_*.csv", "trace_*.csv", "trace_*.parquet"),
    *("regions.csv", "explanations.csv", "explanation_causes.csv", "explained_cells.csv"),
    "sensitivity/*/*.csv",
    *("sensitivity/*/explanation.json", "sensitivity/*/input_hashes.json"),
)
#: The release is written once and read often, so it is compressed hard.
_LEVEL = 19


class Archive(Document):
    """The archive of a release's series, which is not in git; `address` is where it was put."""

    file: str
    sha256: str
    bytes: int
    address: str | None = None


def write_released(data: Path, folder: Path) -> None:
    """Write the part of the results in `data` that is released to `folder`."""
    for path in sorted({path for pattern in PLAIN for path in data.glob(pattern)}):
        target = folder / path.relative_to(data)
        if path.suffix == ".parquet":
            write_parquet(read_parquet(path), target, _LEVEL)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for path in sorted((data / "design").glob("*.csv")):
        # Fields are text, so that restoring gives the same bytes.
        rows = read_rows(path, tables.DESIGN_COLUMNS)
        _write(rows, folder / "design" / f"{path.stem}.parquet")
    regions = [
        {"file": path.relative_to(data).as_posix(), "document": path.read_text(encoding="utf-8")}
        for path in sorted((data / "regions").glob("*/*.json"))
        if not path.name.endswith(".scenarios.json")  # a working file
    ]
    if regions:
        _write(regions, folder / REGIONS)


def _write(rows: Sequence[Row], path: Path) -> None:
    table = pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)
    write_parquet(table, path, _LEVEL)


def manifest(root: Path) -> str:
    """Return the SHA-256 of each file of the release, one line a file, as `sha256sum` prints it."""
    found = {path for folder in (RELEASED, PAGES) for path in (root / folder).rglob("*")}
    left_out = {root / MANIFEST, root / ARCHIVE, *(root / NOTEBOOK_PAGES).glob("*")}
    return "".join(
        f"{files.file_sha256(path)}  {path.relative_to(root).as_posix()}\n"
        for path in sorted(found - left_out)
        if path.is_file()
    )


def released_results(root: Path) -> Path:
    """Check the release against its manifest and return its results, restored into a cache.

    InputError: a file of the release was altered, or a study no longer designs its scenarios.
    """
    path = root / MANIFEST
    changed = set(files.read_text(path).splitlines()) ^ set(manifest(root).splitlines())
    if names := sorted({line.partition("  ")[2] for line in changed}):
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise InputError(
            f"release: altered since it was made: {', '.join(names[:5])}{more}; restore it: "
            f"git checkout -- {RELEASED} {PAGES}; or make it anew: make release"
        )
    folder = root / CACHE / files.file_sha256(path)[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            restore(root, root / RELEASED, Path(work) / "data")
            if not folder.is_dir():
                (Path(work) / "data").rename(folder)
    return folder


def restore(root: Path, released: Path, folder: Path) -> None:
    """Write a folder of results from released data."""
    shutil.copytree(released, folder, ignore=shutil.ignore_patterns("design", REGIONS))
    provenance = files.read_json(folder / PROVENANCE)
    verdicts, columns = read_parquet(folder / VERDICTS), tables.SELF_CONSISTENCY_COLUMNS
    of_papers = read_rows(folder / SELF_CONSISTENCY, columns)
    for path in sorted((released / "design").glob("*.parquet")):
        study, design = path.stem, read_parquet(path).to_pylist()
        tables.write_table(folder / "design" / f"{study}.csv", design, tables.DESIGN_COLUMNS)
        _write_scenarios(root, study, design, provenance, folder)
        own = folder / "evaluation" / study
        write_parquet(verdicts.filter(pc.equal(verdicts["study"], study)), own / VERDICTS)
        rows = [row for row in of_papers if row["study"] == study]
        tables.write_table(own / SELF_CONSISTENCY, rows, columns)
    if (released / REGIONS).is_file():
        for row in read_parquet(released / REGIONS).to_pylist():
            files.write_text(folder / row["file"], row["document"])


def _write_scenarios(
    root: Path, name: str, design: Sequence[Row], provenance: Mapping[str, Any], folder: Path
) -> None:
    """Design the scenarios of a study again and write those that the release used."""
    tier = Tier.model_validate(provenance["tier"])
    version = provenance["config"].get("ns3_version")
    options = {} if version is None else {"ns3_version": version}
    engines = list(dict.fromkeys(row["engine"] for row in design))
    runs = design_study(load_study(root, name), tier, engines, **options)
    scenarios = {run.scenario_id: run.scenario for run in runs}
    wanted = {row["scenario"] for row in design}
    if lacking := sorted(wanted - scenarios.keys()):
        raise InputError(
            f"configs/studies/{name}: does not design {len(lacking)} of {len(wanted)} released "
            f"scenarios, such as {lacking[0]}: the study has changed since the release was made; "
            "`make release` renews it"
        )
    write_scenarios({key: scenarios[key] for key in wanted}, name, folder / "design")


def results_in(folder: Path) -> tuple[Path, str]:
    """Return the folder of result tables in a folder, clone or release, and its tier.

    The tier is empty where no provenance.json names it. InputError: there are no tables.
    """
    for found in (folder, folder / "data" / "reproduced", folder / RELEASED):
        if (found / "cells.csv").is_file():
            path = found / PROVENANCE
            return found, str(files.read_json(path)["tier"]["id"]) if path.is_file() else ""
    raise InputError(
        f"{folder}: is no folder with cells.csv; give one, such as data/reproduced or {RELEASED}"
    )


def pack_series(root: Path, data: Path, studies: Sequence[str]) -> Archive:
    """Pack the series of every run of the studies into one ZIP file below `PACKED`."""
    work = root / PACKED / "series.zip"
    with files.atomic(work) as temporary, zipfile.ZipFile(temporary, "w") as packed:
        for study in studies:
            for path in series_files(data, study):
                packed.writestr(zipfile.ZipInfo(f"{study}/{path.name}"), path.read_bytes())
    digest = files.file_sha256(work)
    path = work.rename(work.with_name(f"series-{digest[:12]}.zip"))
    return Archive(file=path.name, sha256=digest, bytes=path.stat().st_size)


def fetch_results(root: Path, address: str | None = None) -> str:
    """Fetch the archive of series, verify and unpack it; return a line that says where it is.

    InputError: no address is known, it cannot be reached, or it has a different file.
    """
    archive = read_model(root / ARCHIVE, Archive)
    if address is None and archive.address is None:
        raise InputError(
            f"{ARCHIVE}: has no address: {archive.file} is not published yet; give an address as "
            "an argument, or run `make report`, which simulates it"
        )
    packed = root / PACKED / archive.file
    files.fetch(address or str(archive.address), packed, archive.sha256)
    with replacing(root / SERIES) as folder, zipfile.ZipFile(packed) as content:
        content.extractall(folder)
    return f"{SERIES}: the series of every run, a folder of Parquet files for each study"


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give a new folder that replaces `out` only if the block succeeds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        fresh, old = Path(work) / "new", Path(work) / "old"
        fresh.mkdir()
        yield fresh
        if out.exists():
            out.replace(old)
        fresh.replace(out)


def check_release(root: Path) -> str:
    """Check the files of the release, and its verdicts against its results; return a sentence.

    InputError names the files that differ.
    """
    results = released_results(root)
    provenance = files.read_json(results / PROVENANCE)
    with tempfile.TemporaryDirectory() as work:
        again = shutil.copytree(results, Path(work) / "data")
        studies = sorted(path.stem for path in (again / "design").glob("*.csv"))
        with ProcessPoolExecutor(min(len(studies), os.cpu_count() or 1)) as pool:
            list(pool.map(partial(_judge, root, again), studies))
        evaluations = [again / "evaluation" / study for study in studies]
        merge(evaluations, primary_engines(root, again, studies), again)
        write_agreement(root, again, studies)
        judged = [(name, again / name, results / name) for name in (*JUDGED, *TABLES)]
        differing = [name for name, ours, old in judged if ours.read_bytes() != old.read_bytes()]
        if not read_parquet(again / VERDICTS).equals(read_parquet(results / VERDICTS)):
            differing.append(VERDICTS)
    if differing:
        raise InputError(
            f"{RELEASED}: judging its features and flows again gives a different "
            f"{', '.join(differing)}; `make release` renews it"
        )
    return (
        f"release: tier {provenance['tier']['id']} of {provenance['written']}; its data and pages "
        "are unaltered, and judging its features and flows again gives the same verdicts"
    )


def _judge(root: Path, data: Path, study: str) -> None:
    folder, results = data / "evaluation" / study, Results.load(data, study)
    evaluate_study(load_study(root, study), published_path(root, study), results, folder)
    # Rows that rest on raw traces are kept, since the traces may not be here.
    kept = read_rows(folder / SELF_CONSISTENCY, tables.SELF_CONSISTENCY_COLUMNS)
    write_self_consistency(root, data, study, kept)
