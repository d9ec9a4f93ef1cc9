"""The released data: small files in git, from which the folder of results is made again.

What follows from them is left out: scenarios are designed again from the studies and must have the
ids that the design lists, and tables of one study are parts of those of all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from replication.design.config import Tier, load_study
from replication.design.design import design_study, write_scenarios
from replication.study.errors import InputError, describe
from replication.study.files import file_sha256, read_json, write_text
from replication.study.storage.table import (
    AUDIT_COLUMNS,
    SELF_CONSISTENCY_COLUMNS,
    read_parquet,
    read_rows,
    write_parquet,
    write_table,
)
from replication.verdicts.counts import COUNTS
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import NAME as VERDICTS

RELEASED, PAGES = Path("data/release"), Path("reports/release")
MANIFEST = RELEASED / "manifest.sha256"
#: Made from the release once it is there, by `replicate refresh-notebooks`: not in its manifest.
NOTEBOOK_PAGES = PAGES / "notebooks"
#: Where the packed series are; their address is written down later.
ARCHIVE = RELEASED / "archive.yaml"
PROVENANCE = "provenance.json"
REGIONS = "regions.parquet"
#: Where the folder of results is made, below the project's folder: one for each release.
CACHE = Path(".cache/release")
#: What is released as it is, as patterns below the folder of results. The last files name, of each
#: study, what is varied and why numbers differ; the rest of that folder are working files.
PLAIN = (
    PROVENANCE,
    "results/*/*.parquet",
    VERDICTS,
    *("cells.csv", "claims.csv", COUNTS, SELF_CONSISTENCY, "audit.csv"),
    *("agreement_*.csv", "trace_*.csv", "trace_*.parquet"),
    *("regions.csv", "explanations.csv", "explanation_causes.csv", "explained_cells.csv"),
    "sensitivity/*/*.csv",
    *("sensitivity/*/explanation.json", "sensitivity/*/input_hashes.json"),
)
#: Working files of regions.
SCENARIOS = ".scenarios.json"
#: The release is written once and read often.
_LEVEL = 19
_RESTORE = f"restore it: git checkout -- {RELEASED} {PAGES}; or make it anew: make release"


def write_released(data: Path, folder: Path) -> None:
    """Write what is released of the folder of results `data` to `folder`."""
    for path in sorted({path for pattern in PLAIN for path in data.glob(pattern)}):
        target = folder / path.relative_to(data)
        if path.suffix == ".parquet":
            write_parquet(read_parquet(path), target, _LEVEL)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for path in sorted((data / "design").glob("*.csv")):
        # As text, so that the same file comes out again.
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        _write(table, folder / "design" / f"{path.stem}.parquet")
    regions = [
        {"file": path.relative_to(data).as_posix(), "document": path.read_text(encoding="utf-8")}
        for path in sorted((data / "regions").glob("*/*.json"))
        if not path.name.endswith(SCENARIOS)
    ]
    if regions:
        _write(pd.DataFrame(regions), folder / REGIONS)


def _write(frame: pd.DataFrame, path: Path) -> None:
    write_parquet(pa.Table.from_pandas(frame, preserve_index=False), path, _LEVEL)


def manifest(root: Path) -> str:
    """Return the SHA-256 of each file of the release, a line each as `sha256sum` prints them."""
    found = (path for folder in (RELEASED, PAGES) for path in (root / folder).rglob("*"))
    return "".join(
        f"{file_sha256(path)}  {path.relative_to(root).as_posix()}\n"
        for path in sorted(found)
        if path.is_file()
        and path not in (root / MANIFEST, root / ARCHIVE)
        and path.parent != root / NOTEBOOK_PAGES
    )


def verified(root: Path) -> Path:
    """Return the folder of the released data, every file of the release being what was made.

    InputError: there is no release, or names a file of it that is gone, altered or added.
    """
    path = root / MANIFEST
    if not path.is_file():
        raise InputError(f"{path}: no such file: there is no release; `make release` makes one")
    then = _lines(path.read_text(encoding="utf-8", errors="replace"))
    now = _lines(manifest(root))
    altered = [name for name in sorted({**then, **now}) if then.get(name) != now.get(name)]
    if altered:
        more = f" and {len(altered) - 5} more" if len(altered) > 5 else ""
        raise InputError(
            f"release: altered since it was made: {', '.join(altered[:5])}{more}; {_RESTORE}"
        )
    return root / RELEASED


def _lines(text: str) -> dict[str, str]:
    pairs = [line.partition("  ") for line in text.splitlines()]
    return {name: digest for digest, _, name in pairs}


def released_results(root: Path) -> Path:
    """Return a folder of results made from the verified release; it is kept for the next time.

    InputError as `verified`, or where a study no longer designs the scenarios that were run.
    """
    released = verified(root)
    folder = root / CACHE / file_sha256(root / MANIFEST)[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            restore(root, released, Path(work) / "data")
            if not folder.is_dir():
                (Path(work) / "data").rename(folder)
    return folder


def restore(root: Path, released: Path, folder: Path) -> None:
    """Make a folder of results from released data."""
    shutil.copytree(released, folder, ignore=shutil.ignore_patterns("design", REGIONS))
    provenance = read_json(folder / PROVENANCE)
    for path in sorted((released / "design").glob("*.parquet")):
        study, table = path.stem, read_parquet(path).to_pandas()
        write_text(folder / "design" / f"{study}.csv", table.to_csv(index=False))
        _write_scenarios(root, study, table, provenance, folder)
        _write_evaluation(folder, study)
    if (released / REGIONS).is_file():
        for row in read_parquet(released / REGIONS).to_pylist():
            write_text(folder / row["file"], row["document"])


def _write_scenarios(
    root: Path, name: str, design: pd.DataFrame, provenance: Mapping[str, Any], folder: Path
) -> None:
    """Write the scenarios of a study's design, designed again and checked by their ids."""
    try:
        tier = Tier.model_validate(provenance["tier"])
    except ValidationError as error:
        raise InputError(f"{RELEASED / PROVENANCE}: {describe(error)}; {_RESTORE}") from None
    version = provenance["config"].get("ns3_version")
    options = {} if version is None else {"ns3_version": version}
    engines = list(dict.fromkeys(design["engine"]))
    runs = design_study(load_study(root, name), tier, engines, **options)
    scenarios = {run.scenario_id: run.scenario for run in runs}
    wanted = set(design["scenario"])
    if lacking := sorted(wanted - scenarios.keys()):
        raise InputError(
            f"configs/studies/{name}: does not design {len(lacking)} of {len(wanted)} released "
            f"scenarios, such as {lacking[0]}: the study has changed since the release was made; "
            "`make release` renews it"
        )
    write_scenarios({key: scenarios[key] for key in wanted}, name, folder / "design")


def _write_evaluation(folder: Path, study: str) -> None:
    own = folder / "evaluation" / study
    table = read_parquet(folder / VERDICTS)
    write_parquet(table.filter(pc.equal(table["study"], study)), own / VERDICTS)
    tables = {SELF_CONSISTENCY: SELF_CONSISTENCY_COLUMNS, "audit.csv": AUDIT_COLUMNS}
    for name, columns in tables.items():
        rows = [row for row in read_rows(folder / name, columns) if row["study"] == study]
        write_table(own / name, rows, columns)


def results_in(folder: Path) -> tuple[Path, str]:
    """Return where the tables of results are, and their tier; empty where that is not said.

    `folder` has the tables itself, or is a clone with results of its own or a release. InputError
    if it is neither.
    """
    for found in (folder, folder / "data" / "reproduced", folder / RELEASED):
        if (found / "cells.csv").is_file():
            path = found / PROVENANCE
            return found, str(read_json(path)["tier"]["id"]) if path.is_file() else ""
    raise InputError(
        f"{folder}: is no folder with cells.csv; give one, such as data/reproduced or {RELEASED}"
    )
