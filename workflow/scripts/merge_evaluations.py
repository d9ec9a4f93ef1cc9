"""Put the studies' cells, claims, flags and audits together."""

from replication.cli.script import DATA, job
from replication.verdicts.evaluate import merge

with job(snakemake, "putting the verdicts together"):
    merge([DATA / "evaluation" / study for study in snakemake.params.studies], DATA)
