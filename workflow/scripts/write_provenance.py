"""Write what ran: hashes, versions, platform, wall and CPU time of each stage."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.report.provenance import write_provenance

with job(snakemake, "writing down what ran"):
    write_provenance(ROOT, DATA, snakemake.params.settings, Path(snakemake.output.provenance))
