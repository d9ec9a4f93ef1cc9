"""Judge a study's claims on a modern kernel."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.machine import Machine
from replication.explore.modern_kernel import run_modern
from replication.simulate.runtime import Launch

given, folder = snakemake.params, Path(snakemake.output.claims).parent
with job(snakemake):
    machine = Machine.open(ROOT, Launch(**given.machine))
    run_modern(ROOT, snakemake.wildcards.study, given.tier, folder, machine)
