"""The release: results small enough for git, checked by a manifest of SHA-256 checksums.

`data/release` has the results and `reports/release` their pages. Everything that follows from the
results is left out: scenarios are designed again, from the release's copy of each study, and
checked by their ids, and tables of one study are filtered from the tables of all studies. The
series of every run go into a separate archive.
"""

import fcntl
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow.compute as pc
from pydantic import AfterValidator, Field

from replication.base import files
from replication.base import table as tables
from replication.base.errors import InputError
from replication.base.model import Document
from replication.base.position import read_model
from replication.base.table import (
    Row,
    flat,
    in_order,
    read_parquet,
    read_rows,
    write_frame,
    write_parquet,
)
from replication.design.config import Tier, load_study_of, study_files
from replication.design.design import design_study, write_scenarios
from replication.design.input_hashes import code
from replication.metrics.collect import SERIES_KEYS, series_files
from replication.report.manifest import (
    ARCHIVE,
    CRATE,
    MANIFEST,
    PROVENANCE,
    RELEASED,
    WORKFLOW,
    lines_of,
    listing,
    require_unaltered,
)
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import COUNTS
from replication.verdicts.verdict_table import NAME as VERDICTS

REGIONS = "regions.parquet"
#: Where results are restored, and the file there that says what they are made from.
CACHE, _NOTE = Path(".cache/release"), "checksums.sha256"
_RESTORED = Path("data")
#: Where the released results are rendered, so that the user's own report is kept.
RENDERED_TO = Path("reports/html-release")
#: Where the archive of series is made or fetched, and where it is unpacked.
PACKED, SERIES = Path("data"), Path("data/series")
#: Tables that follow from the results, of all studies.
JUDGED = ("cells.csv", "claims.csv", COUNTS, SELF_CONSISTENCY, "audit.csv")
#: Files whose content is released unchanged, as patterns below the folder of results.
PLAIN = (
    PROVENANCE,
    "results/*/*.parquet",
    VERDICTS,
    *JUDGED,
    "agreement_*.csv",
    "trace_*.csv",
    "trace_*.parquet",
    "regions.csv",
    "explanations.csv",
    "explanation_causes.csv",
    "explained_cells.csv",
    "sensitivity/*/*.csv",
    "sensitivity/*/explanation.json",
    "sensitivity/*/input_hashes.json",
)
#: A file of the archive of series.
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_.-]*/[a-z0-9][a-z0-9_.-]*\.parquet")
_NOT_PACKED = "it is no archive that `make release` wrote"
#: What is not copied when results are restored.
_NOT_RESTORED = shutil.ignore_patterns(
    "design", REGIONS, MANIFEST.name, ARCHIVE.name, CRATE, WORKFLOW
)
#: The release is written once and read often, so it is compressed hard.
_LEVEL = 19
#: The released order of samples, and columns that change little from one row to the next.
_ORDER = ("engine", "scenario", "flow", "link", "time_s")
_SLOW = {
    "series.parquet": ("time_s", "cwnd_bytes", "delay_s", "queue_packets"),
    "flows.parquet": (
        "delay_mean_s",
        "rtt_mean_s",
        "packets_sent",
        "packets_received",
        "loss_rate",
        "throughput_bps",
        "goodput_bps",
        "delivery_ratio",
    ),
}


def _archive_name(name: str) -> str:
    if not re.fullmatch(r"series-[0-9a-f]{12}\.zip", name):
        raise ValueError("must be series-<12 hex digits>.zip, without a folder")
    return name


class Archive(Document):
    """The archive of a release's series, which is not in git."""

    file: Annotated[str, AfterValidator(_archive_name)]
    """Name in the folder `data`."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(gt=0)]
    """Size; the series are packed without compression, so they are smaller."""
    address: str | None = None
    """Where it was put."""


def write_released(root: Path, data: Path, folder: Path) -> None:
    """Write the part of the results in `data` that is released, and its studies, to `folder`."""
    plain = set(flat(data.glob(pattern) for pattern in PLAIN))
    for path in sorted(plain):
        target = folder / path.relative_to(data)
        if path.suffix == ".parquet":
            table = read_parquet(path)
            if path.name == "series.parquet":
                table = in_order(table, _ORDER)
            write_parquet(table, target, _LEVEL, _SLOW.get(path.name, ()))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for path in sorted((data / "design").glob("*.csv")):
        # Fields are text, so that restoring gives the same bytes.
        rows = read_rows(path, tables.DESIGN_COLUMNS)
        write_frame(pd.DataFrame(rows), folder / "design" / f"{path.stem}.parquet", _LEVEL)
        for document in study_files(root, path.stem):
            copied = folder / document.relative_to(root)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(document, copied)
    regions = []
    for path in sorted((data / "regions").glob("*/*.json")):
        # A working file has the scenarios.
        if not path.name.endswith(".scenarios.json"):
            name = path.relative_to(data).as_posix()
            regions.append({"file": name, "document": path.read_text(encoding="utf-8")})
    if regions:
        write_frame(pd.DataFrame(regions), folder / REGIONS, _LEVEL)


def released_results(root: Path) -> Path:
    """Check the released data against the manifest and return them, restored into a cache.

    The cache is restored anew if a file in it was altered, or if the release or the code that
    designs has changed. InputError: a file of the released data was altered, or the code designs
    other scenarios.
    """
    digests = require_unaltered(root, _is_result)
    folder, made_from = root / CACHE, _made_from(digests)
    if not _is_restored(folder, made_from):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            # Another process may restore the same release now.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_restored(folder, made_from):
                with replacing(folder) as fresh:
                    restore(root / RELEASED, fresh / _RESTORED)
                    note = made_from + lines_of(listing(fresh, _RESTORED).digests)
                    files.write_text(fresh / _NOTE, note)
    return folder / _RESTORED


def _is_result(name: Path) -> bool:
    return name.is_relative_to(RELEASED) and name != ARCHIVE


def _made_from(digests: Mapping[str, str]) -> str:
    """Return the lines of the note on what decides how the release is restored."""
    inputs = {
        "release": files.digest_of(lines_of(digests).encode()),
        "code": files.digest_of((code().simulate + files.file_sha256(Path(__file__))).encode()),
    }
    return lines_of(inputs)


def _is_restored(folder: Path, made_from: str) -> bool:
    """Return whether a folder has what was restored into it, from the same inputs."""
    try:
        note = (folder / _NOTE).read_bytes()
        digests, odd = listing(folder, _RESTORED)
    except OSError:
        return False
    return not odd and note == (made_from + lines_of(digests)).encode()


def restore(released: Path, folder: Path) -> None:
    """Write a folder of results from released data."""
    shutil.copytree(released, folder, ignore=_NOT_RESTORED)
    for path in sorted(folder.glob("results/*/series.parquet")):
        write_parquet(in_order(read_parquet(path), SERIES_KEYS), path)
    provenance = files.read_json(folder / PROVENANCE)
    verdicts = read_parquet(folder / VERDICTS)
    columns = tables.SELF_CONSISTENCY_COLUMNS
    of_papers = read_rows(folder / SELF_CONSISTENCY, columns)
    for path in sorted((released / "design").glob("*.parquet")):
        study = path.stem
        design: list[Row] = read_parquet(path).to_pylist()
        tables.write_table(folder / "design" / f"{study}.csv", design, tables.DESIGN_COLUMNS)
        _write_scenarios(released, study, design, provenance, folder)
        evaluation = folder / "evaluation" / study
        write_parquet(verdicts.filter(pc.equal(verdicts["study"], study)), evaluation / VERDICTS)
        rows = [row for row in of_papers if row["study"] == study]
        tables.write_table(evaluation / SELF_CONSISTENCY, rows, columns)
    if (released / REGIONS).is_file():
        for row in read_parquet(released / REGIONS).to_pylist():
            files.write_text(folder / row["file"], row["document"])


def _write_scenarios(
    released: Path, name: str, design: Sequence[Row], provenance: Mapping[str, Any], folder: Path
) -> None:
    """Design the scenarios of a study again and write those that the release used.

    The study is the release's, so a change of it in configs/ does not matter here.
    """
    tier = Tier.model_validate(provenance["tier"])
    version = provenance["config"].get("ns3_version")
    options = {} if version is None else {"ns3_version": version}
    engines = list(dict.fromkeys(row["engine"] for row in design))
    runs = design_study(load_study_of(released, released, name), tier, engines, **options)
    scenarios = {run.scenario_id: run.scenario for run in runs}
    wanted = {row["scenario"] for row in design}
    if lacking := sorted(wanted - scenarios.keys()):
        raise InputError(
            f"{RELEASED}: study {name} does not design {len(lacking)} of its {len(wanted)} "
            f"scenarios, such as {lacking[0]}: the code that designs has changed since the release "
            "was made; `make release` renews it"
        )
    write_scenarios({key: scenarios[key] for key in wanted}, name, folder / "design")


def results_in(folder: Path) -> tuple[Path, str]:
    """Return the folder of result tables in a folder, clone or release, and its tier.

    The tier is empty where no provenance.json names it. InputError: there are no tables.
    """
    for results in (folder, folder / "data" / "reproduced", folder / RELEASED):
        if (results / "cells.csv").is_file():
            path = results / PROVENANCE
            tier = str(files.read_json(path)["tier"]["id"]) if path.is_file() else ""
            return results, tier
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
    require_unaltered(root, lambda name: name == ARCHIVE)
    archive = read_model(root / ARCHIVE, Archive)
    if address is None and archive.address is None:
        raise InputError(
            f"{ARCHIVE}: has no address: {archive.file} is not published yet; give an address as "
            "an argument, or run `make report`, which simulates it"
        )
    packed = root / PACKED / archive.file
    files.fetch(address or str(archive.address), packed, archive.sha256, archive.bytes)
    with replacing(root / SERIES) as folder:
        try:
            _unpack(packed, folder)
        except (zipfile.BadZipFile, RuntimeError, EOFError) as error:
            raise InputError(f"{packed}: {error}; {_NOT_PACKED}") from None
    return f"{SERIES}: the series of every run, a folder of Parquet files for each study"


def _unpack(packed: Path, folder: Path) -> None:
    """Unpack an archive of series; InputError before anything is written if it has other files."""
    with zipfile.ZipFile(packed) as content:
        members = content.infolist()
        for member in members:
            if not _MEMBER.fullmatch(member.filename):
                raise InputError(
                    f"{packed}: contains {member.filename!r}, which is no <study>/<name>.parquet; "
                    f"{_NOT_PACKED}"
                )
        unpacked = sum(member.file_size for member in members)
        size = packed.stat().st_size
        if unpacked > size:
            raise InputError(f"{packed}: has {size} bytes, but {unpacked} unpacked; {_NOT_PACKED}")
        content.extractall(folder)


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
