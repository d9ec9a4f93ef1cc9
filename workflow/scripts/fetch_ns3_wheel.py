"""Fetch the pinned wheel of ns-3, and unpack its headers and libraries."""

from pathlib import Path

from replication.cli.script import job
from replication.engines.ns3 import fetch_wheel

with job(snakemake, f"fetching the pinned wheel of ns-3 {snakemake.wildcards.version}"):
    fetch_wheel(Path(snakemake.input.lock), Path(snakemake.output.prefix))
