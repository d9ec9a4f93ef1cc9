"""Join a study's batches, and compute the features of their series."""

from replication.cli.script import DATA, ROOT, job
from replication.design.config import load_study
from replication.metrics.collect import collect_study
from replication.study.finding_model import load_findings

study = snakemake.wildcards.study
with job(snakemake, f"collecting the results of {study}"):
    collect_study(load_study(ROOT, study), DATA, load_findings(ROOT, study))
