"""Find where a claim holds on an engine; the store keeps runs, so that a restart continues."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.machine import Machine
from replication.explore.regions.region_result import run_region
from replication.simulate.runtime import Launch

given, folder = snakemake.params, Path(snakemake.output.result).parent
with job(snakemake):
    machine = Machine.open(ROOT, Launch(**given.machine))
    run_region(ROOT, snakemake.wildcards.region, given.tier, folder, machine)
