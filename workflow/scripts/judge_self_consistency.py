"""Run the tests of a study's claims on what the paper prints, and on its traces if we have them."""

from replication.cli.script import DATA, ROOT, job
from replication.verdicts.self_consistency import write_self_consistency

study = snakemake.wildcards.study
with job(snakemake, f"judging {study} by its own data"):
    write_self_consistency(ROOT, DATA, study)
