"""Fetch the pinned wheel of ns-3."""

from pathlib import Path

from replication.cli.script import job
from replication.engines.ns3 import fetch_wheel

lock = Path(snakemake.input.lock)
with job(snakemake, f"fetching the pinned wheel of ns-3 {lock.stem}"):
    fetch_wheel(lock, Path(snakemake.output.wheel))
