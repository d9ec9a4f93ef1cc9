"""The raw traces of studies: which there are, where they are, and how they are fetched.

A study has traces where a table is called ``trace:<stem>``: its rows are the flows of the trace
and map to flows of an experiment, its published numbers are summary figures of the trace. The raw
traces are their authors': data/published/traces.yaml says where they are, `make traces` puts them
into data/traces. Without them the summary figures are compared alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from replication.study.errors import InputError
from replication.study.fetch import fetch
from replication.study.files import file_sha256, parse_yaml, sha256_of
from replication.study.model import Document
from replication.study.study import Study

FOLDER = Path("data/traces")
SOURCES = Path("data/published/traces.yaml")
TABLE_PREFIX = "trace:"
#: How the name of a raw trace ends.
TRACE_SUFFIX = ".sender-ss.csv"


class TraceFile(Document):
    """Where a trace is in its authors' repository, and its hash."""

    path: str
    sha256: str


class TraceSource(Document):
    """The published traces of a study: a public repository on GitHub at a commit."""

    repository: str
    commit: str
    licence: str
    files: dict[str, TraceFile]


def has_traces(study: Study) -> bool:
    """Return whether traces were published with a study."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def trace_files(root: Path, study: str) -> dict[str, Path]:
    """Return trace name to file of the raw traces of a study that are there."""
    files = sorted((root / FOLDER / study).glob(f"*{TRACE_SUFFIX}"))
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(root: Path, studies: Sequence[str]) -> str:
    """Return a hash over the raw traces of the studies; empty without any."""
    hashes = [
        f"{study}:{sha256_of(*files.values())}"
        for study in studies
        if (files := trace_files(root, study))
    ]
    return " ".join(hashes)


def fetch_traces(root: Path, source: Path | None = None) -> str:
    """Put the published traces into `FOLDER`, each with its hash; return a line that says so.

    `source` is a folder with ``<study>/<trace>.sender-ss.csv``, or a clone of the authors'
    repository; by default they come from GitHub. InputError where one cannot be had or differs.
    """
    studies = parse_yaml((root / SOURCES).read_bytes())
    count = 0
    for study, document in studies.items():
        published = TraceSource.model_validate(document)
        for name, file in published.files.items():
            target = root / FOLDER / study / f"{name}{TRACE_SUFFIX}"
            if source is None:
                _fetch(published, file, target)
            else:
                _copy([source / study / target.name, source / file.path], file, target)
            count += 1
    return f"{FOLDER}: {count} traces of {', '.join(studies)}; the next `make report` compares them"


def _fetch(published: TraceSource, file: TraceFile, target: Path) -> None:
    place = f"{published.repository}/{published.commit}/{file.path}"
    try:
        fetch(f"https://raw.githubusercontent.com/{place}", target, file.sha256)
    except InputError as error:
        raise InputError(
            f"{error}; without a network: `replicate fetch-traces --from FOLDER`, a clone of "
            f"https://github.com/{published.repository}. Without traces `make report` compares "
            "the summary figures that the project has"
        ) from None


def _copy(places: Sequence[Path], file: TraceFile, target: Path) -> None:
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"--from: has neither {places[0]} nor {places[1]}")
    if file_sha256(found) != file.sha256:
        raise InputError(f"{found}: differs from the published trace (SHA-256)")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, target)
