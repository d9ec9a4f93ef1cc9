"""Put the studies' cells, claims, self-consistency and audits together, and count verdicts."""

from replication.cli.script import DATA, ROOT, job
from replication.verdicts.evaluate import merge
from replication.verdicts.verdict_table import primary_engines

with job(snakemake, "putting the verdicts together"):
    studies = snakemake.params.studies
    evaluations = [DATA / "evaluation" / study for study in studies]
    merge(evaluations, primary_engines(ROOT, DATA, studies), DATA)
