"""Execute a notebook on the results of a study, or of all for a lecture of no single study."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.report.notebooks.notebook import execute

notebook, study = Path(snakemake.input.notebook), snakemake.wildcards.get("study")
named = f"{notebook.stem} on {study}" if study else notebook.stem
with job(snakemake, f"executing notebook {named}"):
    parameters = {
        "data": str(DATA.resolve()),
        "root": str(ROOT.resolve()),
        "live": snakemake.params.live,
    }
    if study:
        parameters["study"] = study
    execute(notebook, Path(snakemake.output.notebook), parameters)
