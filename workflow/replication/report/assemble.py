"""Assemble: the report's parts put together, with the data to download and what pages share."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from altair.utils.schemapi import debug_mode

from replication.compare.agreement import TABLES
from replication.judge.flags.claim_flag import FLAGS
from replication.judge.flags.own_data import OWN_DATA
from replication.report.charts.run import run_chart
from replication.report.pages.traces import FILES as TRACE_FILES
from replication.report.parts.figure import chart_script, copy_download, study_downloads
from replication.report.parts.source import Source
from replication.study.files import write_text
from replication.study.report_page import MADE_OF
from replication.study.storage.table import read_frame

PACKAGE = Path(__file__).parent
#: Merged results that a reader can download from the pages.
DOWNLOADS = ("cells.csv", "claims.csv", FLAGS, OWN_DATA, "audit.csv", "provenance.json")
#: Those that not every folder of results has.
OPTIONAL_DOWNLOADS = (*MADE_OF, *TRACE_FILES, *TABLES)
#: What each column of the downloads means.
DICTIONARY = PACKAGE / "dictionary.csv"
#: Hosts that the bundled libraries mention; XML namespaces are names, not addresses.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def assemble(source: Source, parts: Sequence[Path], out: Path) -> None:
    """Put the report together.

    Parameters
    ----------
    source
        What the report is made from.
    parts
        The folders that `report.render.write_part` wrote.
    out
        The report's folder, replaced as a whole.

    Raises
    ------
    InputError
        A result to download is missing or damaged.
    """
    with replacing(out) as folder:
        for part in parts:
            shutil.copytree(part, folder, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
        _copy_data(source, folder / "data")
        _write_assets(folder)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give a new folder beside `out` that takes its place only if the block succeeds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        fresh, old = Path(work) / "new", Path(work) / "old"
        fresh.mkdir()
        yield fresh
        if out.exists():
            out.replace(old)
        try:
            fresh.replace(out)
        except OSError:
            if old.exists():
                old.replace(out)
            raise


def _write_assets(folder: Path) -> None:
    shutil.copytree(PACKAGE / "assets", folder / "assets")
    write_text(folder / "assets" / "vega.js", _vega_bundle())
    with debug_mode(False):
        write_text(folder / "charts" / "run.js", chart_script("run", run_chart().to_dict()))


@cache
def _vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that leaves only `vegaEmbed` behind."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    notice = "/* Vega, Vega-Lite, Vega-Embed: BSD 3-Clause License, Vega contributors. */"
    return f"{notice}\n(() => {{\n{_ADDRESS.sub('', bundle)}\n}})();\n"


def _copy_data(source: Source, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in DOWNLOADS:
        _copy(source.data / name, folder / name)
    copy_download(DICTIONARY, folder / DICTIONARY.name)
    for name in OPTIONAL_DOWNLOADS:
        if (source.data / name).is_file():
            _copy(source.data / name, folder / name)
    for study in source.studies:
        for end, download in study_downloads(source.data, study).items():
            if download.path.suffix == ".csv":
                # A tenth of the size; every number is the same.
                table = read_frame(download.path)
                table.to_parquet(folder / f"{study}.{end}", index=False)
            else:
                _copy(download.path, folder / f"{study}.{end}")


def _copy(source: Path, target: Path) -> None:
    copy_download(source, target)
