"""Execute a notebook on the results of a study."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.report.notebooks.notebook import execute

notebook, study = Path(snakemake.input.notebook), snakemake.wildcards.study
with job(snakemake, f"executing notebook {notebook.stem} on {study}"):
    folders = {"data": str(DATA.resolve()), "root": str(ROOT.resolve())}
    parameters = {"study": study, **folders, "live": snakemake.params.live}
    execute(notebook, Path(snakemake.output.notebook), parameters)
