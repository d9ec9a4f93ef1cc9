"""Search why a study's numbers differ; runs go to the store, so that a second start goes on."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.explanation import explain_study
from replication.explore.machine import Machine
from replication.simulate.runtime import Launch

with job(snakemake):
    folder = Path(snakemake.output.explanation).parent
    machine = Machine.open(ROOT, Launch(**snakemake.params.machine))
    explain_study(ROOT, snakemake.wildcards.study, folder, machine)
