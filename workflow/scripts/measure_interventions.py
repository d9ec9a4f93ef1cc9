"""Run the interventions of an engine: stated causes, switched on and off."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.interventions import measure_interventions
from replication.explore.machine import Machine
from replication.simulate.runtime import Launch

with job(snakemake):
    machine = Machine.open(ROOT, Launch(**snakemake.params.machine))
    table = Path(snakemake.output.table)
    measure_interventions(ROOT, snakemake.wildcards.engine, machine, table)
