"""Published traces of congestion windows: which study has them, and where they are.

A study has traces if a table is called ``trace:<stem>``. Its rows are the flows of the trace and
map to flows of an experiment; its published numbers are summary figures of the trace. The raw
traces, `ss` samples of TCP senders, belong to their authors: data/published/traces.yaml has their
address. Without them only summary figures are compared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from replication.base.errors import InputError
from replication.base.files import fetch, sha256_of
from replication.base.model import Document
from replication.base.position import read_models
from replication.study.study import Study

FOLDER = Path("data/traces")
SOURCES = Path("data/published/traces.yaml")
TABLE_PREFIX = "trace:"
_GITHUB = "https://raw.githubusercontent.com"
#: End of the name of a raw trace.
TRACE_SUFFIX = ".sender-ss.csv"


class TraceSource(Document):
    """The published traces of a study: path and hash of each in a GitHub repository at a commit."""

    repository: str
    commit: str
    licence: str
    files: dict[str, dict[Literal["path", "sha256"], str]]


def load_sources(root: Path) -> dict[str, TraceSource]:
    """Return the published traces by study; InputError names a wrong field."""
    return read_models(root / SOURCES, TraceSource)


def has_traces(study: Study) -> bool:
    """Return whether a study has published traces."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def trace_files(root: Path, study: str) -> dict[str, Path]:
    """Return the raw traces of a study on this machine, by name."""
    files = sorted((root / FOLDER / study).glob(f"*{TRACE_SUFFIX}"))
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(root: Path, studies: Sequence[str]) -> str:
    """Return a hash over the studies' raw traces; empty without any."""
    hashes = []
    for study in studies:
        if files := trace_files(root, study):
            hashes.append(f"{study}:{sha256_of(*files.values())}")
    return " ".join(hashes)


def fetch_traces(root: Path, source: Path | None = None) -> str:
    """Put the published traces into `FOLDER`, verify each, and return a sentence on them.

    `source` is a folder with ``<study>/<trace>.sender-ss.csv``, or a clone of the authors'
    repository; without it they come from GitHub. InputError: one is missing or differs.
    """
    studies = load_sources(root)
    count = 0
    for study, published in studies.items():
        for name, file in published.files.items():
            target = root / FOLDER / study / f"{name}{TRACE_SUFFIX}"
            address = f"{_GITHUB}/{published.repository}/{published.commit}/{file['path']}"
            if source is not None:
                places = (source / study / target.name, source / file["path"])
                present = [place for place in places if place.is_file()]
                if not present:
                    raise InputError(f"--from: has neither {places[0]} nor {places[1]}")
                address = present[0].resolve().as_uri()
            try:
                fetch(address, target, file["sha256"])
            except InputError as error:
                if source is not None:
                    raise
                raise InputError(
                    f"{error}; without a network: `replicate fetch-traces --from FOLDER`, a clone "
                    f"of https://github.com/{published.repository}. Without traces `make report` "
                    "compares the summary figures that the project has"
                ) from None
            count += 1
    return f"{FOLDER}: {count} traces of {', '.join(studies)}; the next `make report` compares them"
