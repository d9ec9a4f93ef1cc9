"""Check that a simplification keeps every result: hash the tables of fixed runs.

    python -m tests.golden OUT      run and write each table as CSV to OUT, with OUT/sha256
    diff -r REFERENCE OUT           says what moved

Runs tier quick on three engines, a search for saxena's explanation at reduced size and one region.
Columns that name code (fingerprints, batches, hashes of inputs) are left out. This is a tool of the
issue that halves the project, to be deleted with its end.
"""

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd

from tests.workflow.project import QUICK, ROOT, copy_project
from tests.workflow.test_sensitivity_run import small

#: Columns that name code or how a job was cut.
CODE = {"batch", "cost_s", "made_from", "fingerprint", "code", "cpu_minutes", "cpu_s"}
TABLES = ("cells.csv", "claims.csv", "audit.csv", "claim_flags.csv", "agreement*.csv")
EXPLAINED = ("explanations.csv", "explained_cells.csv", "sensitivity/*.csv")
REGION = "kapadia_random_loss"


def write(table, path):
    kept = table[[name for name in table.columns if name not in CODE]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kept.to_csv(index=False), encoding="utf-8")


def tables(data, patterns, out):
    for pattern in patterns:
        for path in sorted(data.glob(pattern)):
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
            write(frame, out / path.relative_to(data))


def quick(folder, out):
    project = copy_project(folder, engines_from=ROOT)
    project.snakemake("all", **QUICK)
    data = project.root / "data/reproduced"
    for path in sorted(data.glob("results/*/flows.parquet")):
        write(pd.read_parquet(path), out / f"flows/{path.parent.name}.csv")
    tables(data, (*TABLES, "design/*.csv"), out)


def explanation(folder, out):
    project = small(copy_project(folder, engines_from=ROOT))
    project.snakemake("explain", studies="saxena")
    tables(project.root / "data/reproduced", EXPLAINED, out)


def region(folder, out):
    project = copy_project(folder, engines_from=ROOT)
    for path in (project.root / "configs/maps").glob("*.yaml"):
        if path.stem != REGION:
            path.unlink()
    project.snakemake("maps", engines="ns3", tier="quick")
    tables(project.root / "data/reproduced", ("maps.csv",), out)


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    for part in (quick, explanation, region):
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder) / "project", out / part.__name__)
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out).as_posix()}\n"
        for path in sorted(out.rglob("*.csv"))
    ]
    (out / "sha256").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
