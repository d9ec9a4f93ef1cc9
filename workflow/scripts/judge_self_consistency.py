"""Apply the tests of a study's claims to what the paper prints, and to its traces if present."""

from replication.cli.script import DATA, ROOT, job
from replication.verdicts.self_consistency import write_self_consistency

study = snakemake.wildcards.study
with job(snakemake, f"testing the self-consistency of {study}"):
    write_self_consistency(ROOT, DATA, study)
