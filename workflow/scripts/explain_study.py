"""Search why a study's numbers differ; the store keeps runs, so that a restart continues."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.explanation import explain_study
from replication.explore.machine import Machine
from replication.simulate.runtime import Launch

with job(snakemake):
    folder = Path(snakemake.output.explanation).parent
    machine = Machine.open(ROOT, Launch(**snakemake.params.machine))
    explain_study(ROOT, snakemake.wildcards.study, folder, machine)
