"""Unpack the headers and libraries of ns-3's wheel."""

from pathlib import Path

from replication.cli.script import job
from replication.engines.ns3 import unpack_wheel

with job(snakemake, f"unpacking the wheel of ns-3 {snakemake.wildcards.version}"):
    unpack_wheel(Path(snakemake.input.wheel), Path(snakemake.output.prefix))
