"""Put the studies' cells, claims, flags and audits together."""

from replication.cli.script import DATA, job
from replication.judge.evaluate import merge

with job(snakemake, "putting the verdicts together"):
    merge([DATA / "evaluation" / study for study in snakemake.params.studies], DATA)
