"""Where the raw traces of a study are, and whether it has any.

A study has traces where a table is called ``trace:<stem>``: its rows are the flows of the trace
and map to flows of an experiment, its published numbers are summary figures of the trace. The raw
traces themselves are not part of the project. They are looked for in ``<folder>/<study>/``, the
folder being that of `REPLICATION_TRACES`, by default ``../shared/traces`` beside the project; an
empty `REPLICATION_TRACES` means none. Without them the summary figures are compared alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from replication.study.errors import InputError
from replication.study.files import sha256_of
from replication.study.study import Study

ENVIRONMENT = "REPLICATION_TRACES"
DEFAULT_FOLDER = Path("..") / "shared" / "traces"
TABLE_PREFIX = "trace:"
#: How the name of a raw trace ends.
TRACE_SUFFIX = ".sender-ss.csv"


def has_traces(study: Study) -> bool:
    """Return whether traces were published with a study."""
    return any(table.id.startswith(TABLE_PREFIX) for table in study.tables)


def find_folder(root: Path, given: Path | None = None) -> Path | None:
    """Return the folder that holds a folder of raw traces for each study, or None.

    The folder `given` takes the place of the environment's and the default one below `root`;
    InputError where one was asked for that is not there.
    """
    text = os.environ.get(ENVIRONMENT)
    if given is None and text == "":
        return None
    if given is None and text is None:
        default = root / DEFAULT_FOLDER
        return default if default.is_dir() else None
    folder = given or Path(str(text))
    if not folder.is_dir():
        raise InputError(
            f"{ENVIRONMENT}: {folder} is not a folder; name the one that holds <study>/*"
            f"{TRACE_SUFFIX}, or leave it empty to compare the committed figures alone"
        )
    return folder


def trace_files(folder: Path | None, study: str) -> dict[str, Path]:
    """Return trace name to file of the raw traces of a study; none without a folder."""
    files = sorted((folder / study).glob(f"*{TRACE_SUFFIX}")) if folder else []
    return {path.name.removesuffix(TRACE_SUFFIX): path for path in files}


def traces_hash(folder: Path | None, studies: Sequence[str]) -> str:
    """Return a hash over the raw traces of the studies; empty without any."""
    hashes = [
        f"{study}:{sha256_of(*files.values())}"
        for study in studies
        if (files := trace_files(folder, study))
    ]
    return " ".join(hashes)
