"""Compare the engines' verdicts and, where they differ, what they measured."""

from replication.cli.script import DATA, ROOT, job
from replication.compare.agreement import write_agreement

with job(snakemake, "comparing the engines"):
    write_agreement(ROOT, DATA, snakemake.params.studies)
