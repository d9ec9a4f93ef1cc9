"""Run the tests of a study's claims on what the paper prints, and on its traces if we have them."""

from replication.cli.script import DATA, ROOT, job
from replication.verdicts.self_consistency import write_own_data

study = snakemake.wildcards.study
with job(snakemake, f"judging {study} by its own data"):
    write_own_data(ROOT, DATA, study)
