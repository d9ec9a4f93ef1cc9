"""Write the table of all regions."""

from pathlib import Path

from replication.cli.script import DATA, job
from replication.explore.regions.region_result import merge_regions

with job(snakemake, "putting the regions together"):
    merge_regions([Path(result) for result in snakemake.input.results], DATA)
