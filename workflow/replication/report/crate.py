"""The report described for machines: an RO-Crate 1.1 of its files and of the run behind them."""

from __future__ import annotations

import datetime
import json
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replication.study.files import write_text

FILE = "ro-crate-metadata.json"
NAME = "Do these papers' numbers hold? A replication of published TCP studies"
DESCRIPTION = (
    "Published numbers and claims of TCP studies beside those of rebuilt experiments: verdicts, "
    "intervals, parameters with their sources, runs and charts. index.html is the report."
)
LICENCE = "https://spdx.org/licenses/MIT"
#: Ends of file names to what the files are.
_KINDS = {
    "cells.csv": "Published numbers beside the reproduced ones, with verdicts",
    "claims.csv": "Claims of the papers with statistic and verdict",
    "claim_flags.csv": "Vacuous verdicts on claims, and the papers' own data under their tests",
    "own_data.csv": "The claims' tests on the papers' own numbers and traces",
    "audit.csv": "Published numbers against physical bounds",
    "dictionary.csv": "What each column of the tables means",
    "provenance.json": "Configuration, versions, hashes and times of the run",
    ".design.parquet": "Points, replicates and scenarios of a study",
    ".quantities.parquet": "Means and intervals of the headline metrics at every point",
    ".flows.parquet": "Every flow of every run of a study",
    "index.html": "The report",
}


def write_crate(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Describe the files of a rendered report in ``ro-crate-metadata.json``.

    Parameters
    ----------
    folder
        The report's folder; pages and tables in it are listed one by one, charts are not.
    provenance
        The document provenance.json.
    """
    from rocrate.rocrate import ROCrate

    crate = ROCrate()
    crate.name, crate.description, crate.license = NAME, DESCRIPTION, LICENCE
    written = _moment(str(provenance.get("written", "")))
    crate.datePublished = written
    files = [
        crate.add_file(
            path, dest_path=path.relative_to(folder).as_posix(), properties=_properties(path)
        )
        for path in sorted([*folder.glob("*.html"), *folder.glob("data/*.*")])
    ]
    crate.mainEntity = next(file for file in files if file.id == "index.html")
    _add_run(crate, provenance, files, written)
    document = crate.metadata.generate()
    document["@graph"].sort(key=lambda entity: str(entity["@id"]))
    write_text(folder / FILE, json.dumps(document, indent=1, sort_keys=True) + "\n")


def _moment(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        # Unknown, and the same in every rendering.
        return datetime.datetime.fromtimestamp(0, datetime.UTC)


def _properties(path: Path) -> dict[str, Any]:
    kind, _ = mimetypes.guess_type(path.name)
    if path.suffix == ".parquet":
        kind = "application/vnd.apache.parquet"
    properties: dict[str, Any] = {
        "name": path.name,
        "contentSize": str(path.stat().st_size),
        "encodingFormat": kind or "application/octet-stream",
    }
    for end, words in _KINDS.items():
        if path.name.endswith(end):
            properties["description"] = words
    return properties


def _add_run(
    crate: Any, provenance: Mapping[str, Any], files: list[Any], written: datetime.datetime
) -> None:
    from rocrate.model.contextentity import ContextEntity

    tools = [
        crate.add(
            ContextEntity(
                crate,
                f"#{name}",
                {"@type": "SoftwareApplication", "name": name, "version": str(engine["version"])},
            )
        )
        for name, engine in (provenance.get("engines") or {}).items()
    ]
    tier = provenance.get("tier") or {}
    run = crate.add(
        ContextEntity(
            crate,
            "#run",
            {
                "@type": "CreateAction",
                "name": f"Run of tier {tier.get('id', 'unknown')}",
                "description": f"make report; commit {provenance.get('commit') or 'unknown'}",
                "endTime": written.isoformat(),
            },
        )
    )
    run["instrument"] = tools
    run["result"] = [file for file in files if file.id.startswith("data/")]
    crate.root_dataset["mentions"] = [run]
