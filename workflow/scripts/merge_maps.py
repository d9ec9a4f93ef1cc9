"""Put the maps' rows together."""

from pathlib import Path

from replication.cli.script import DATA, job
from replication.explore.maps.region_result import merge_maps

with job(snakemake, "putting the maps together"):
    merge_maps([Path(result) for result in snakemake.input.results], DATA)
