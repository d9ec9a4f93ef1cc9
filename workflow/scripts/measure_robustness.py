"""Write shares and effects of a study's design points."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.explore.robustness import measure_study

study, folder = snakemake.wildcards.study, Path(snakemake.output.input_hashes).parent
with job(snakemake, f"measuring how robust {study} is"):
    measure_study(ROOT, study, folder, DATA, snakemake.params.ns3_version)
