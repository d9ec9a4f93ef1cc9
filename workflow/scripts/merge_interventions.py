"""Write the table of the interventions on all engines."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.interventions import merge_interventions

with job(snakemake, "putting the interventions together"):
    folders = [Path(table).parent for table in snakemake.input.tables]
    merge_interventions(ROOT, folders, Path(snakemake.output.table))
