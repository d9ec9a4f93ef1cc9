"""Put the maps' rows together."""

from pathlib import Path

from replication.cli.script import DATA, job
from replication.explore.maps.region_result import merge_maps

with job(snakemake, "putting the maps together"):
    merge_maps([Path(account) for account in snakemake.input.accounts], DATA)
